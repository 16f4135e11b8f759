"""What a table holds on Spark, in the form in which the oracle's tables are compared with it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow

from dbt_arctic.data_type import Array, DataType, Map, Struct, parse_type
from tests.dbt.random.columns import Table
from tests.dbt.random.project import Model
from tests.dbt.random.snapshots import LAST_DAY
from tests.dbt.random.stored_values import NotExact, TooLarge, keep
from tests.dbt.random.values import Pairs, canonical, comparable_type, instant

SNAPSHOT_COLUMNS = {"dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to", "dbt_is_deleted"}
CURRENT_ENDS = (None, LAST_DAY, LAST_DAY.date())
"""The ends of current records of snapshots: see ``CURRENT_END``."""
Rows = Counter[Any]


@dataclass(frozen=True)
class StoredTable:
    """What a table holds: the types by names in small letters, and each row as often as it is there.

    Types have the fields of their structs in alphabetical order: the place of a field means nothing.
    """

    types: dict[str, str]
    rows: Rows

    def describe(self, other: StoredTable) -> str:
        if self.types != other.types:
            return f"columns {other.types}, expected {self.types}"
        missing, more = self.rows - other.rows, other.rows - self.rows
        return f"rows missing {in_order(missing)}, too many {in_order(more)}"


def in_order(rows: Rows) -> list[Any]:
    return sorted(rows.elements(), key=repr)


def is_own(model: Model, name: str) -> bool:
    return model.kind == "snapshot" and name in SNAPSHOT_COLUMNS


def as_row(model: Model, values: dict[str, Any], types: dict[str, str]) -> Any:
    own = {name.lower(): value for name, value in values.items() if is_own(model, name.lower())}
    cells = sorted(
        (name.lower(), canonical(value, types[name.lower()]))
        for name, value in values.items()
        if name.lower() not in own
    )
    if model.kind != "snapshot":
        return tuple(cells)
    end = own["dbt_valid_to"]
    if end is not None and types["dbt_valid_to"] == "timestamp_ntz":
        end = instant(end)
    return (*cells, own.get("dbt_is_deleted") == "True", end not in CURRENT_ENDS)


def as_found(model: Model, table: Table) -> StoredTable:
    types = {name.lower(): one for name, one in table.types.items()}
    rows: Rows = Counter()
    for place, row in enumerate(table.rows):
        cells = tuple(
            sorted((name.lower(), canonical(value, types[name.lower()])) for name, value in row.items())
        )
        if model.kind == "snapshot":
            rows[(*cells, place in table.deleted, place in table.ended)] += 1
        else:
            rows[cells] += 1
    return StoredTable({name: comparable_type(one) for name, one in types.items()}, rows)


def with_columns_of(before: Table, found: StoredTable, *, may_drop: bool) -> Table | None:
    """A table with other columns, and with its old rows in them; ``None`` where no run leaves that.

    :param may_drop: whether columns may be missing, and fields in them.
    """
    names = {name.lower(): name for name in before.types}
    types = {names.get(low, low): one for low, one in found.types.items()}
    if not may_drop and not all(
        name in types and has_all_fields(parse_type(types[name]), parse_type(one))
        for name, one in before.types.items()
    ):
        return None
    try:
        rows = [
            {
                name: keep(row[name], before.types[name], one) if name in row else None
                for name, one in types.items()
            }
            for row in before.rows
        ]
    except (NotExact, TooLarge):
        return None
    return replace(before, types=types, rows=rows)


def has_all_fields(found: DataType, before: DataType) -> bool:
    """Whether a type has the fields of another one, at every depth."""
    match found, before:
        case Struct(), Struct(fields):
            there = {name.lower(): one for name, one in found.fields}
            return all(
                name.lower() in there and has_all_fields(there[name.lower()], one) for name, one in fields
            )
        case Array(one), Array(other):
            return has_all_fields(one, other)
        case Map(), Map():
            return has_all_fields(found.value, before.value)
    return True


def plain(value: Any, data_type: Any) -> Any:
    """A value that pyspark collected, as random values are."""
    if value is None:
        return None
    kind = data_type.typeName()
    if kind == "struct":
        return {
            one.name: plain(inner, one.dataType) for one, inner in zip(data_type.fields, value, strict=True)
        }
    if kind == "array":
        return [plain(one, data_type.elementType) for one in value]
    if kind == "map":
        return Pairs(
            (plain(one, data_type.keyType), plain(two, data_type.valueType)) for one, two in value.items()
        )
    if kind == "timestamp":
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return bytes(value) if kind == "binary" else value


def plain_of_arrow(value: Any) -> Any:
    """A value of ``Table.to_pylist``, as random values are."""
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        case dict():
            return {name: plain_of_arrow(one) for name, one in value.items()}
        case list():
            return [plain_of_arrow(one) for one in value]
        case tuple():
            return tuple(plain_of_arrow(one) for one in value)
    return value


def rows_of_arrow(model: Model, table: pyarrow.Table, types: dict[str, str]) -> Rows:
    """The rows of an Arrow table.

    :param types: Spark's types of its columns.
    """
    return Counter(
        as_row(model, {name: plain_of_arrow(value) for name, value in row.items()}, types)
        for row in table.to_pylist()
    )
