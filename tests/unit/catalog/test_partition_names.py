"""Which partition fields can be in one table, as Iceberg merges the fields of all its specs by name."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.metadata import read_table
from dbt_arctic.catalog.partition_names import PartitionField, has_ambiguous_name, with_default_name

SCHEMA = {
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "int", "required": False},
        {"id": 2, "name": "at", "type": "timestamp", "required": False},
    ],
}


def spec(spec_id: int, *fields: tuple[str, str, int]) -> dict[str, Any]:
    """A partition spec of fields, each with its name, transform and source column."""
    return {
        "spec-id": spec_id,
        "fields": [{"name": name, "transform": of, "source-id": source} for name, of, source in fields],
    }


def stored(*specs: dict[str, Any]) -> tuple[PartitionField, ...]:
    document = {
        "format-version": 2,
        "location": "file:/t",
        "schemas": [SCHEMA],
        "current-schema-id": 0,
        "partition-specs": specs,
        "default-spec-id": specs[-1]["spec-id"],
    }
    return read_table("shop", "orders", document).state.partition_fields


def test_the_fields_of_all_specs_are_read() -> None:
    fields = stored(
        spec(0, ("id_bucket", "bucket[2]", 1)), spec(1, ("at_day", "day", 2), ("part", "identity", 9))
    )
    assert fields == (
        PartitionField("id_bucket", "bucket(2, id)"),
        PartitionField("at_day", "days(at)"),
        PartitionField("part", "#9"),
    )


@pytest.mark.parametrize(
    ("specs", "new", "is_ambiguous"),
    [
        ([("id", "identity", 1)], "id", False),
        ([("id", "identity", 1)], "ID", True),
        ([("id_bucket", "bucket[2]", 1)], "bucket(2, id)", False),
        ([("id_bucket", "bucket[2]", 1)], "bucket(4, id)", True),
        ([("id_trunc", "truncate[2]", 1)], "truncate(4, id)", True),
        ([("id_bucket", "bucket[2]", 1), ("id_bucket_4", "bucket[4]", 1)], "bucket(2, id)", False),
        ([("id_bucket", "bucket[2]", 1), ("id_bucket_4", "bucket[4]", 1)], "bucket(4, id)", True),
        ([("at_day", "day", 2)], "months(at)", False),
        ([("at_day", "day", 2)], "at_day", True),
        ([("at", "identity", 7)], "at", True),
    ],
)
def test_a_field_needs_a_name_of_its_own(
    specs: list[tuple[str, str, int]], new: str, is_ambiguous: bool
) -> None:
    fields = stored(*(spec(number, field) for number, field in enumerate(specs)))
    assert not has_ambiguous_name(fields)
    assert has_ambiguous_name((*fields, with_default_name(new))) is is_ambiguous


def test_a_table_that_is_ambiguous_stays_so_whatever_its_new_partitioning() -> None:
    fields = stored(spec(0, ("id_bucket", "bucket[2]", 1)), spec(1, ("id_bucket", "bucket[4]", 1)))
    assert has_ambiguous_name(fields)
