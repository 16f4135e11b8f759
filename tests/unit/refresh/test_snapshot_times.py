"""The error about a snapshot's stored times only suggests a conversion that Iceberg can do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.catalog.partition_names import with_default_name
from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.snapshot_times import OwnColumns

TIMES = ("dbt_valid_from", "dbt_updated_at", "dbt_valid_to")


@pytest.mark.parametrize(
    ("time", "stored", "fields", "is_convertible"),
    [
        ("timestamp", "date", (), True),
        ("timestamp", "date", ("id",), True),
        ("timestamp", "date", ("id", "days(dbt_valid_from)"), False),
        ("timestamp_ntz", "timestamp", ("days(dbt_valid_from)",), True),
    ],
)
def test_times_that_the_table_is_partitioned_by_are_converted_only_to_types_with_the_same_partitions(
    time: str, stored: str, fields: tuple[str, ...], is_convertible: bool
) -> None:
    own = OwnColumns(
        "kept", {one: one for one in (*TIMES, "dbt_scd_id")}, "at", time, "string", hard_deletes="ignore"
    )
    columns = [Column("id", "int"), *(Column(one, stored) for one in TIMES)]
    state = SimpleNamespace(
        columns=[CatalogColumn(one.name, one.type) for one in columns],
        partitioning=fields,
        partition_fields=tuple(map(with_default_name, fields)),
    )
    with pytest.raises(SchemaChanged) as refused:
        own.refuse_other_types(columns, cast(Any, state))
    fix = refused.value.fix
    assert f"set updated_at to 'cast(at as {stored})'" in fix
    assert ("pre_hook" in fix) is is_convertible
    layout = f" partitioned by ({', '.join(fields)})" if fields else ""
    assert (f"using iceberg{layout} as select * except" in fix) is is_convertible
