"""Functions of time in aggregates, windows and joins become columns of a projection, or conditions.

``sum(CASE WHEN at > current_timestamp() THEN v END)`` becomes a sum over a column of the rows below. So the
rules only have to know functions of time in select lists and conditions: these list the rows of which the
value moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    SubqueryRef,
    Window,
    map_children,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of
from dbt_arctic.planner.reasons import at_line, line_of
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.syntax import core, is_aggregate_call

_ENDS_AT = (exp.Distinct, exp.Filter, exp.Ordered, exp.Where, exp.Window, exp.WithinGroup)
"""Expressions around an operand of an aggregate or of a window function."""

_CHOOSING = (exp.Case, exp.Coalesce, exp.If, exp.Predicate)
_CHOOSING_FUNCTIONS = frozenset(["coalesce", "greatest", "iff", "ifnull", "least", "nvl", "nvl2"])


def with_time_columns(node: Node, identifier: Callable[[str], str]) -> Node:
    """The same tree with functions of time in projections and filters, as far as that is possible.

    :param identifier: creates a unique identifier.
    """
    node = map_children(node, lambda child: with_time_columns(child, identifier))
    if isinstance(node, Join):
        return _joined(node)
    if not isinstance(node, Aggregate | Window):
        return node
    below = _Below(identifier)
    if isinstance(node, Aggregate):
        groups = tuple((name, below.whole(value)) for name, value in node.groups)
        items = tuple((name, below.operands(value)) for name, value in node.aggregates)
        made: Aggregate | Window = replace(node, groups=groups, aggregates=items)
    else:
        items = tuple((name, below.operands(value)) for name, value in node.items)
        made = replace(node, partition=tuple(map(below.whole, node.partition)), items=items)
    if not below.columns:
        return node
    own = tuple((name, column(name)) for name in node.child.output)
    child = Project(node.child, (*own, *((name, value) for value, name in below.columns)))
    return replace(made, child=child)


class _Below:
    """The columns of the projection below an operator."""

    def __init__(self, identifier: Callable[[str], str]) -> None:
        self._identifier = identifier
        self.columns: list[tuple[exp.Expression, str]] = []

    def whole(self, value: exp.Expression) -> exp.Expression:
        return self._column(value) if value.find(TimeFunction) is not None else value

    def operands(self, value: exp.Expression) -> exp.Expression:
        """An aggregate or a window function over columns instead of operands with functions of time."""
        if value.find(TimeFunction) is None:
            return value
        made = value.copy()
        for operand in _operands(made):
            operand.replace(self._column(operand))
        return made

    def _column(self, value: exp.Expression) -> exp.Expression:
        name = next((name for known, name in self.columns if known == value), None)
        if name is None:
            name = self._identifier("of_time")
            self.columns.append((value.copy(), name))
        made = column(name)
        at_line(made, line_of(value))
        return made


def _operands(call: exp.Expression) -> Sequence[exp.Expression]:
    """The operands that contain a function of time; one in another place is left out."""
    found: dict[int, exp.Expression] = {}
    function = core(call.this) if isinstance(call, exp.Window) else None
    for called in call.find_all(TimeFunction):
        operand: exp.Expr = called
        while (parent := operand.parent) is not None and not (
            isinstance(parent, _ENDS_AT) or parent is function or _is_aggregate(parent)
        ):
            operand = parent
        is_frame = isinstance(operand, exp.WindowSpec)
        if parent is not None and not is_frame and isinstance(operand, exp.Expression):
            found[id(operand)] = operand
    return list(found.values())


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Expression) and is_aggregate_call(node)


def _joined(node: Join) -> Node:
    """A join whose conditions with a function of time filter the input or the result instead."""
    timed = tuple(part for part in node.conditions if part.find(TimeFunction) is not None)
    if not timed:
        return node
    others = tuple(part for part in node.conditions if part.find(TimeFunction) is None)
    if node.kind == "inner":
        return Filter(replace(node, conditions=others), timed)
    # Rows of the null-supplying side that fail the condition match nothing.
    side = {"left": node.right, "right": node.left}.get(node.kind)
    own = [part for part in timed if side is not None and columns_of(part) <= set(side.output)]
    if side is None or not own:
        return node
    filtered = Filter(side, tuple(own))
    rest = tuple(part for part in node.conditions if not any(part is one for one in own))
    if node.kind == "left":
        return replace(node, right=filtered, conditions=rest)
    return replace(node, left=filtered, conditions=rest)


def time_changes_some_rows(value: exp.Expression) -> bool:
    """Whether time changes the value of some rows only, because a condition or a value of the row decides.

    A subquery does not count.
    """
    return value.find(SubqueryRef) is None and all(
        _is_chosen(moment) for moment in value.find_all(TimeFunction)
    )


def _is_chosen(called: TimeFunction) -> bool:
    parent = called.parent
    while parent is not None:
        if isinstance(parent, _CHOOSING) or function_name(parent) in _CHOOSING_FUNCTIONS:
            return True
        parent = parent.parent
    return False


__all__ = ["time_changes_some_rows", "with_time_columns"]
