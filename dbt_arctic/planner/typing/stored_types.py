"""Columns that Iceberg stores in another type than the query returns: integers of 8 and 16 bits.

Iceberg stores them in 32 bits. A value that is computed from the stored column may have another precision:
the scale of a quotient of decimals depends on the types of its operands.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.columns import all_expressions, computed
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.spark.dialect import Suffixed
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import SMALLINT, TINYINT, Kind

_TYPES = (exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT)
_CALLS = frozenset(["bit_get", "getbit", "grouping", "smallint", "tinyint", "xpath_short"])
_SUFFIXES = frozenset(["S", "Y"])
_OF_SCHEMA = frozenset(["from_csv", "from_json", "from_xml", "try_variant_get", "variant_get"])
"""Functions whose type is given by a string argument."""

_SHORT = re.compile(r"\b(tinyint|smallint|byte|short)\b", re.IGNORECASE)
_IN_VALUES = re.compile(
    r"\b\d+[SY]\b|\b(tinyint|smallint|byte|short|from_\w+|\w+_get|xpath_short)\b", re.IGNORECASE
)


def may_change_types(node: Node) -> bool:
    """Whether a table with the rows of a query may have a column of another type."""
    every = (value for part in walk(node) for value in all_expressions(part))
    listed = (part.sql for part in walk(node) if isinstance(part, Values))
    short = any(_is_short(part) for value in every for part in value.walk())
    return short or any(_IN_VALUES.search(sql) for sql in listed)


def short_columns(node: Node) -> frozenset[str] | None:
    """The columns of a query whose stored type is narrower than it seems.

    They are ``TINYINT``, and ``INT`` in a table that has the rows: ``grouping()``, and sums of these.
    ``None`` where other columns may have another type there as well.
    """
    if not may_change_types(node):
        return frozenset()
    short: frozenset[str] = frozenset()
    types = Types(node, dict.fromkeys((name for scan in scans(node) for name in scan.output), "bigint"))
    # What stands below comes later in a walk.
    for part in reversed(list(walk(node))):
        made = _short_of(part, types, short)
        if made is None:
            return None
        short |= made
    return short & frozenset(node.output)


def _short_of(node: Node, types: Types, short: frozenset[str]) -> frozenset[str] | None:
    """The columns that an operator adds and that are ``TINYINT``; ``None`` where others may be short.

    :param short: those of its inputs.
    """
    match node:
        case Values() | Generate():
            return conservative(None, "constants and elements may be short")
        case Project() | Filter() if node.subqueries:
            return conservative(None, "the value of a subquery may be short")
        case UnionAll() | SetOperation():
            if any(short & set(one.output) for one in node.parts):
                return conservative(None, "the other parts may be wider")
            return frozenset()
        case Project() | Aggregate() | Window():
            made = {name: _is_tiny(value, types, short) for name, value in computed(node)}
            return None if None in made.values() else frozenset(name for name, tiny in made.items() if tiny)
        case Scan() | Filter() | Join() | KeySemiJoin() | Limit():
            return frozenset()  # They have only the columns of their inputs, and a table has no short ones.


def _is_tiny(value: exp.Expression, types: Types, short: frozenset[str]) -> bool | None:
    """Whether a value is a ``TINYINT``; ``None`` where it may be one, or a ``SMALLINT``.

    :param types: the types of columns. That of a column of a table is never short, and no other one is known.
    """
    type_ = types.of(value)
    if type_ == SMALLINT:
        return None
    if type_ is not None and type_ is not Kind.WHOLE:
        return type_ == TINYINT
    has_short = any(_is_short(one) for one in value.walk()) or columns_of(value) & short
    return None if has_short else False


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


__all__ = ["may_change_types", "short_columns"]
