"""Explains why a table cannot store a struct or map without types. Pure functions over the causes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import StatementError

_EMPTY_GROUP = re.compile(r"Cannot write a schema with an empty group: \w+ group (\S+)")
_ESCAPED = re.compile(r"_x([0-9A-F]+)")
_ELEMENT = re.compile(r"Cannot convert (element|value) Parquet: unknown")
_KEY_OF_MAP = re.compile(r"Cannot create required field with unknown type")


def untyped_error(causes: Sequence[Cause], where: str) -> StatementError | None:
    """The error for a value that has no type because it was written as NULL, ``map()`` or ``array()``."""
    for cause in causes:
        group = _EMPTY_GROUP.search(cause.message)
        if group is not None:
            name = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), group[1])
            return StatementError(
                f"A table cannot store {name}, because no field of this struct has a type.",
                where=where,
                why="Each of its fields is NULL, and Parquet has no struct without a typed field.",
                fix="cast a field in the model, for example named_struct('a', cast(null as string)), "
                "or write NULL for the whole struct",
            )
        if _ELEMENT.search(cause.message):
            return StatementError(
                "A table cannot store an array without a type for its elements, or a map without one for its "
                "values.",
                where=where,
                why="array() and array(null) have no types.",
                fix="cast it in the model, for example cast(array() as array<string>)",
            )
        if _KEY_OF_MAP.search(cause.message):
            return StatementError(
                "A table cannot store a map without a type for its keys.",
                where=where,
                why="map() and map(null, ..) have no types.",
                fix="cast it in the model, for example cast(map() as map<string, string>)",
            )
    return None
