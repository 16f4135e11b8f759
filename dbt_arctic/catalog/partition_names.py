"""The names that Iceberg gives to the fields of a table's partition specs, which may not be ambiguous."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WITH_ARGUMENT = re.compile(r"(bucket|truncate)\(\d+, (.+)\)", re.DOTALL)
_OF_TIME = re.compile(r"(year|month|day|hour)s\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class PartitionField:
    """A field of a partition spec.

    :param name: its name in the table's metadata, as ``at_day``.
    :param text: its transform and column, as ``days(at)``; a column that the table no longer has is shown by
        its field id.
    """

    name: str
    text: str


def with_default_name(text: str) -> PartitionField:
    """A field with the name that Iceberg gives to it in a new table.

    >>> with_default_name("day"), with_default_name("bucket(8, Id)"), with_default_name("days(at)")
    (PartitionField(name='day', text='day'), PartitionField(name='Id_bucket', text='bucket(8, Id)'), \
PartitionField(name='at_day', text='days(at)'))
    """
    if match := _WITH_ARGUMENT.fullmatch(text):
        suffix = {"bucket": "bucket", "truncate": "trunc"}[match[1]]
        return PartitionField(f"{match[2]}_{suffix}", text)
    if match := _OF_TIME.fullmatch(text):
        return PartitionField(f"{match[2]}_{match[1]}", text)
    return PartitionField(text, text)


def has_ambiguous_name(fields: Iterable[PartitionField]) -> bool:
    """Whether two different fields have the same name, case-insensitively.

    Iceberg merges the fields of all partition specs of a table into one struct. If a name is ambiguous in
    it, every later MERGE and UPDATE of the table fails, and its metadata tables cannot be read. Iceberg
    avoids such names in ``ALTER TABLE``, but not in ``CREATE OR REPLACE TABLE``.

    :param fields: the fields of all specs, oldest first. A field that was renamed has its newest name.
    """
    names = {field.text: field.name.lower() for field in fields}
    return len(set(names.values())) < len(names)
