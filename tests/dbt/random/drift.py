"""How a column of a random table changes from run to run."""

from __future__ import annotations

import random
from typing import Any

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text
from tests.dbt.random.stored_values import keep
from tests.dbt.random.values import ATOMS, COLLATED, FIELDS, draw_type

KEY_DRIFTS = {
    "int": ("bigint", "decimal(12,2)", "string"),
    "bigint": ("decimal(38,10)", "string"),
    "date": ("timestamp", "string"),
    "decimal(12,2)": ("decimal(38,10)", "string"),
    "string": ("int",),
}
DRIFTS = {
    "tinyint": ("int", "bigint", "string"),
    "smallint": ("int", "double", "decimal(12,2)"),
    "int": ("bigint", "bigint", "smallint", "decimal(12,2)", "double", "string", "boolean"),
    "bigint": ("int", "decimal(38,10)", "double", "string"),
    "float": ("double", "decimal(12,2)"),
    "double": ("float", "int"),
    "decimal(5,2)": ("decimal(12,2)", "decimal(38,10)", "double", "int", "string"),
    "decimal(12,2)": ("decimal(5,2)", "decimal(38,10)", "bigint"),
    "decimal(38,10)": ("decimal(12,2)", "double"),
    "string": ("int", "binary", "date", "boolean", COLLATED),
    COLLATED: ("string",),
    "binary": ("string",),
    "boolean": ("string", "int"),
    "date": ("timestamp", "timestamp_ntz", "string"),
    "timestamp": ("date", "timestamp_ntz", "string"),
    "timestamp_ntz": ("date", "timestamp"),
    "void": ("int", "string", "decimal(12,2)", "struct<a:int,b:string>"),
}
"""Types that a column may be of next, by the type that it is of."""


def keys_as(values: list[Any], old: str, new: str) -> list[Any]:
    """The values of a key after its column has changed its type. Texts become numbers, which some show."""
    if old == "string":
        return [int(value) if value.isdigit() else len(value) for value in values]
    return [keep(value, old, new) for value in values]


def reordered(chance: random.Random, type_: str) -> str:
    def mixed(one: DataType) -> DataType:
        match one:
            case Struct(fields):
                moved = [(name, mixed(inner)) for name, inner in fields]
                chance.shuffle(moved)
                return Struct(tuple(moved))
            case Array(element):
                return Array(mixed(element))
            case Map(key, value):
                return Map(mixed(key), mixed(value))
        return one

    return type_text(mixed(parse_type(type_)))


def changed_inside(chance: random.Random, type_: DataType) -> DataType:
    """A type with a field more or less, or with a field of another type."""
    match type_:
        case Array(element):
            return Array(changed_inside(chance, element))
        case Map(key, value):
            return Map(key, changed_inside(chance, value))
        case Struct(fields):
            changed = list(fields)
            place = chance.randrange(len(changed))
            draw = chance.random()
            name, one = changed[place]
            if draw < 0.35:
                free = [name for name in FIELDS if name.lower() not in {name.lower() for name, _ in fields}]
                changed[place:place] = [(name, Atomic(chance.choice(ATOMS))) for name in free[:1]]
            elif draw < 0.6 and len(changed) > 1:
                del changed[place]
            elif isinstance(one, Atomic):
                drifts = [type_ for type_ in DRIFTS.get(one.text, ()) if "collate" not in type_]
                changed[place] = (name, Atomic(chance.choice(drifts or [one.text])))
            else:
                changed[place] = (name, changed_inside(chance, one))
            return Struct(tuple(changed))
    return type_


def new_type(chance: random.Random, kind: str) -> str:
    if kind != "view" and chance.random() < 0.06:
        return "void"
    if chance.random() < 0.04:
        return COLLATED
    return draw_type(chance)
