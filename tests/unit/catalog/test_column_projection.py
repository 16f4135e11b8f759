"""Columns of a file as they are today, at random depth, compared with plain Python."""

from __future__ import annotations

import random
from typing import Any

import pyarrow
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt_arctic.catalog.column_projection import _converted, as_today


class Drawn:
    """A type in a file, and as it is today: fields renamed, added, dropped, moved or widened."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.last = 0

    def number(self) -> int:
        self.last += 1
        return self.last

    def pair(self, depth: int) -> tuple[IcebergType, IcebergType]:
        match self.chance.choice(["int", "widened", "string", *["struct", "list", "map"] * (depth > 0) * 2]):
            case "struct":
                return self.structs(depth - 1)
            case "list":
                number, (old, new) = self.number(), self.pair(depth - 1)
                return (
                    ListType(number, old, element_required=False),
                    ListType(number, new, element_required=False),
                )
            case "map":
                key, value, (old, new) = self.number(), self.number(), self.pair(depth - 1)
                names = StringType()
                return MapType(key, names, value, old, False), MapType(key, names, value, new, False)
            case "widened":
                return IntegerType(), LongType()
            case "int":
                return IntegerType(), IntegerType()
        return StringType(), StringType()

    def structs(self, depth: int) -> tuple[StructType, StructType]:
        old, new = [], []
        for _ in range(self.chance.randint(1, 3)):
            number, (then, now) = self.number(), self.pair(depth)
            old.append(NestedField(number, f"old {number}", then, required=False))
            if self.chance.random() < 0.8:
                name = self.chance.choice([f"old {number}", f"new {number}"])
                new.append(NestedField(number, name, now, required=False))
        for _ in range(self.chance.randint(not new, 1)):
            number = self.number()
            default = self.chance.choice([None, 7])
            new.append(
                NestedField(number, f"added {number}", IntegerType(), required=False, initial_default=default)
            )
        self.chance.shuffle(new)
        return StructType(*old), StructType(*new)

    def value(self, type_: IcebergType, optional: bool = True) -> Any:
        if optional and self.chance.random() < 0.25:
            return None
        match type_:
            case StructType():
                return {field.name: self.value(field.field_type) for field in type_.fields}
            case ListType():
                return [self.value(type_.element_type) for _ in range(self.chance.randrange(3))]
            case MapType():
                return [(f"k{n}", self.value(type_.value_type)) for n in range(self.chance.randrange(3))]
            case StringType():
                return self.chance.choice(["", "ä"])
        return self.chance.choice([0, -5, 2**31 - 1])


def expected(value: Any, old: IcebergType, new: IcebergType) -> Any:
    if value is None:
        return None
    if isinstance(old, StructType) and isinstance(new, StructType):
        by_id = {field.field_id: field for field in old.fields}
        return {
            field.name: field.initial_default
            if (then := by_id.get(field.field_id)) is None
            else expected(value[then.name], then.field_type, field.field_type)
            for field in new.fields
        }
    if isinstance(old, ListType) and isinstance(new, ListType):
        return [expected(one, old.element_type, new.element_type) for one in value]
    if isinstance(old, MapType) and isinstance(new, MapType):
        return [(key, expected(one, old.value_type, new.value_type)) for key, one in value]
    return value


@pytest.mark.parametrize("seed", range(80))
def test_columns_are_those_of_today(seed: int) -> None:
    drawn = Drawn(seed)
    old, new = drawn.structs(3)
    rows = [drawn.value(old, optional=False) for _ in range(drawn.chance.randrange(6))]
    # Parquet files have lists and strings of Arrow's small types.
    stored = pyarrow.Table.from_pylist(
        rows, with_small_types(pyarrow.schema(schema_to_pyarrow(old, include_field_ids=False)))
    )
    found = as_today(stored, old, new, {})
    assert found.schema.types == list(pyarrow.schema(schema_to_pyarrow(new, include_field_ids=False)).types)
    assert found.to_pylist() == [expected(row, old, new) for row in rows]
    # Of a file with more text than an array of Arrow has, the batches are slices.
    array = stored.combine_chunks().to_struct_array()
    parts = [array.chunk(0).slice(place, 1) for place in range(len(rows))] if rows else []
    for row, part in zip(rows, parts, strict=True):
        assert _converted(part, old, new).to_pylist() == [expected(row, old, new)]


def with_small_types(schema: pyarrow.Schema) -> pyarrow.Schema:
    return pyarrow.schema([pyarrow.field(one.name, _small_type(one.type)) for one in schema])


def _small_type(type_: pyarrow.DataType) -> pyarrow.DataType:
    if pyarrow.types.is_large_string(type_):
        return pyarrow.string()
    if pyarrow.types.is_large_list(type_):
        return pyarrow.list_(_small_type(type_.value_type))
    if pyarrow.types.is_map(type_):
        return pyarrow.map_(pyarrow.string(), _small_type(type_.item_type))
    if pyarrow.types.is_struct(type_):
        return pyarrow.struct([pyarrow.field(one.name, _small_type(one.type)) for one in type_])
    return type_


def test_a_column_that_only_the_partition_has() -> None:
    today = StructType(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "day", IntegerType(), required=False, initial_default=7),
    )
    stored = StructType(NestedField(1, "id", IntegerType(), required=False))
    rows = pyarrow.table({"id": pyarrow.array([1, 2], pyarrow.int32())})
    assert as_today(rows, stored, today, {2: 20}).to_pylist() == [{"id": 1, "day": 20}, {"id": 2, "day": 20}]
    # NULL is a value of the partition.
    for constants, day in (({}, 7), ({2: None}, None)):
        assert as_today(rows, stored, today, constants).column("day").to_pylist() == [day, day]
