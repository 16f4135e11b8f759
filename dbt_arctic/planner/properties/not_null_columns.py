"""Columns that are never NULL: keys of keyed tables, counts, literals, and what conditions compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
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
)
from dbt_arctic.planner.algebra.scalars import plain
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.spark.functions import function_name

_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_NUMBERS = frozenset(["count", "count_if", "dense_rank", "ntile", "rank", "row_number"])
_FIRST_OF = frozenset(["coalesce", "ifnull", "nvl"])


def not_null_columns(node: Node, facts: Facts) -> frozenset[str]:
    """The columns of an operator that are NULL in no row."""
    match node:
        case Scan():
            key = facts.of(node).key
            return frozenset(name for name, stored in node.columns if stored in key)
        case Filter():
            return not_null_columns(node.child, facts) | frozenset(_compared(node.conditions))
        case Project() | Aggregate():
            if isinstance(node, Aggregate) and node.grouping_sets is not None:
                return conservative(frozenset(), "a group of one set has the NULLs of another one")
            below = not_null_columns(node.child, facts)
            return frozenset(name for name, value in node.items if _is_present(value, below))
        case Window():
            below = not_null_columns(node.child, facts)
            return below | {name for name, item in node.items if function_name(item.this) in _NUMBERS}
        case Join():
            return _of_join(node, facts)
        case UnionAll():
            parts = [(part, not_null_columns(part, facts)) for part in node.children]
            return frozenset(
                name
                for place, name in enumerate(node.columns)
                if all(part.output[place] in present for part, present in parts)
            )
        case Limit() | Generate() | KeySemiJoin():
            return not_null_columns(node.child, facts)
        case Values() | SetOperation():
            return conservative(frozenset(), "no analysis has needed it for these operators so far")


def _of_join(node: Join, facts: Facts) -> frozenset[str]:
    """A row without a partner has NULLs on the other side."""
    left, right = not_null_columns(node.left, facts), not_null_columns(node.right, facts)
    if node.kind == "inner":
        return left | right | frozenset(_compared(node.conditions))
    return {"right": right, "full": frozenset[str]()}.get(node.kind, left)


def compared_columns(conditions: Iterable[exp.Expression]) -> frozenset[str]:
    """The columns that are not NULL in a row for which all conditions are true."""
    return frozenset(_compared(conditions))


def _compared(conditions: Iterable[exp.Expression]) -> Iterator[str]:
    """The columns without which a condition is not true."""
    for part in conditions:
        condition = part.unnest()
        if isinstance(condition, _COMPARED):
            sides = (condition.this, condition.expression)
            yield from (name for side in sides if (name := plain(side)) is not None)
        elif isinstance(condition, exp.Not):
            tested = condition.this.unnest()
            if isinstance(tested, exp.Is) and isinstance(tested.expression, exp.Null):
                yield from (name for name in (plain(tested.this.unnest()),) if name is not None)


def _is_present(value: exp.Expression, below: frozenset[str]) -> bool:
    name = plain(value)
    if name is not None:
        return name in below
    if isinstance(value, exp.Paren):
        return _is_present(value.this, below)
    call = function_name(value)
    if call in _FIRST_OF or isinstance(value, exp.Coalesce):
        parts = (one for one in value.iter_expressions() if isinstance(one, exp.Expression))
        return any(_is_present(one, below) for one in parts)
    return isinstance(value, exp.Literal | exp.Boolean) or call in _NUMBERS


__all__ = ["compared_columns", "not_null_columns"]
