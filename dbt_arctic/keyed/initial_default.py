"""SQL of the value of a column, or of a field, in rows that were written before it was added.

It is NULL unless the engine that added it gave a default. Spark adds it to the rows of a table, but not to
those of an older snapshot, which it reads with the columns of that time.
"""

from __future__ import annotations

import json

from dbt_arctic.data_type import kind_of
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.names import literal


def initial_value(initial: str, type_: str) -> str:
    """SQL of a value of the type.

    :param initial: the value as JSON, in Iceberg's serialization of single values; empty for NULL.
    :raises VersionUnavailable: it is the value of a nested type.

    >>> initial_value("", "int"), initial_value("5", "int"), initial_value('"0aff"', "binary")
    ('CAST(NULL AS int)', "CAST('5' AS int)", "unhex('0aff')")
    """
    if not initial:
        return f"CAST(NULL AS {type_})"
    # Numbers keep their digits.
    value = json.loads(initial, parse_int=str, parse_float=str)
    if not isinstance(value, str | bool):
        raise VersionUnavailable(
            f"older rows have the default {initial} in a column of the type {type_}",
            where=type_,
            why="a column of this type was added by another engine, with a default that is not supported",
            fix="read the current version of the table",
        )
    text = literal(str(value).lower() if isinstance(value, bool) else value)
    return f"unhex({text})" if kind_of(type_) == "binary" else f"CAST({text} AS {type_})"
