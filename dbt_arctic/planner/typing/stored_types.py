"""Columns that Iceberg stores in another type than the query has: integers of 8 and 16 bits.

They are stored as those of 32 bits. What is computed from the stored value then may have other digits than
what is computed from the value itself: a quotient of decimals has as many as its operands' types ask for.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import Node, Values, walk
from dbt_arctic.planner.spark.dialect import Suffixed
from dbt_arctic.planner.spark.functions import function_name

_TYPES = (exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT)
_CALLS = frozenset(["bit_get", "getbit", "grouping", "smallint", "tinyint", "xpath_short"])
_SUFFIXES = frozenset(["S", "Y"])
_OF_SCHEMA = frozenset(["from_csv", "from_json", "from_xml", "try_variant_get", "variant_get"])
"""Functions whose value has a type that a text says."""

_SHORT = re.compile(r"\b(tinyint|smallint|byte|short)\b", re.IGNORECASE)
_IN_VALUES = re.compile(
    r"\b\d+[SY]\b|\b(tinyint|smallint|byte|short|from_\w+|\w+_get|xpath_short)\b", re.IGNORECASE
)


def may_change_types(node: Node) -> bool:
    """Whether a table that has a query's rows may have some column in another type."""
    every = (value for part in walk(node) for value in all_expressions(part))
    listed = (part.sql for part in walk(node) if isinstance(part, Values))
    short = any(_is_short(part) for value in every for part in value.walk())
    return short or any(_IN_VALUES.search(sql) for sql in listed)


def _is_short(part: exp.Expr) -> bool:
    if isinstance(part, exp.DataType):
        return part.this in _TYPES
    if isinstance(part, Suffixed):
        return str(part.args["suffix"]).upper() in _SUFFIXES
    name = function_name(part)
    if name in _OF_SCHEMA:
        texts = (one.name for one in part.find_all(exp.Literal) if one.is_string)
        return any(_SHORT.search(text) for text in texts)
    return name in _CALLS


__all__ = ["may_change_types"]
