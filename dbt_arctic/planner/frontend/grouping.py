"""GROUP BY with grouping sets, and the aggregates of a SELECT."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Node
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.scope import LIFTED, Scope, lifted
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.spark.collected_arrays import collected_in
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.syntax import (
    as_list,
    core,
    has_aggregate,
    is_aggregate_call,
    unaliased,
    unwrapped,
)

_CONSTANTS = (exp.Literal, exp.Null, exp.Boolean)
_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)
_CLAUSES = ("rollup", "cube", "grouping_sets")


def grouped(
    builder: QueryBuilder, tree: exp.Select, node: Node, scope: Scope, parts: list[exp.Expression]
) -> tuple[Node, Scope, list[exp.Expression]]:
    """Build the Aggregate, and replace group expressions and aggregates in ``parts`` by its output."""
    group = tree.args.get("group")
    written: list[exp.Expression] = []
    sets: tuple[tuple[int, ...], ...] | None = None
    if group is not None:
        written, sets = grouping(group, [unaliased(part) for part in tree.expressions])
    groups = []
    for part in written:
        converted = builder.plain_expression(part, scope)
        wanted_name = part.name if isinstance(part, exp.Column) else "group"
        groups.append((builder.identifier(wanted_name or "group"), converted))
    constants = [part for part in written if isinstance(unwrapped(part), _CONSTANTS)]
    if constants and sets is not None:
        raise refused(
            "a constant as a group combined with ROLLUP, CUBE or GROUPING SETS", "leave it out", *constants
        )
    # A constant is not replaced: the same number elsewhere is another literal, with its own precision.
    by_text = {
        to_sql(part): name
        for part, (name, _) in zip(written, groups, strict=True)
        if not isinstance(unwrapped(part), _CONSTANTS)
    }
    aggregates: list[tuple[str, exp.Expression]] = []

    def lift(node_: exp.Expression) -> exp.Expression:
        if not isinstance(node_, exp.Ordered) and to_sql(node_) in by_text:
            return lifted(by_text[to_sql(node_)])
        if isinstance(node_, exp.Window):
            # The function of a window is not an aggregate of the groups, but its arguments may contain one.
            window = node_.copy()
            function = core(window.this)
            for child in list(function.iter_expressions()):
                child.replace(lift(child))
            for key in ("partition_by", "order"):
                for child in as_list(window.args.get(key)):
                    child.replace(lift(child))
            return window
        if is_aggregate_call(node_) or collected_in(node_) is not None:
            # With what a collected array is for: of a sorted one, the order of the rows does not matter.
            name = function_name(core(node_))
            converted = builder.plain_expression(node_, scope)
            if name in ("grouping", "grouping_id") and sets is None:
                what = f"{name}() without ROLLUP, CUBE or GROUPING SETS"
                raise refused(what, "write 0", node_)
            known = next((key for key, value in aggregates if value == converted), None)
            if known is None:
                known = builder.identifier(name or "aggregate")
                aggregates.append((known, converted))
            return lifted(known)
        if isinstance(node_, exp.Query | exp.Subquery | exp.DataType):
            return node_
        made = node_.copy()
        for child in list(made.iter_expressions()):
            child.replace(lift(child))
        return made

    rewritten = [lift(part) for part in parts]
    made = Aggregate(node, tuple(groups), tuple(aggregates), sets)
    # A column that is not an output of the Aggregate can only belong to an outer query.
    as_written = {name: part for part, (name, _) in zip(written, groups, strict=True)}
    shown = {LIFTED: {name.lower(): name for name in made.output}}
    inner = Scope(shown, scope.outer, scope.linked, {} if constants else as_written)
    return made, inner, rewritten


def grouping(
    group: exp.Group, selected: list[exp.Expression]
) -> tuple[list[exp.Expression], tuple[tuple[int, ...], ...] | None]:
    """The group expressions, and the grouping sets if there are any.

    ``GROUP BY a, ROLLUP (b, c)`` has the sets (a, b, c), (a, b) and (a).
    """
    if group.args.get("all"):
        return [part for part in selected if not has_aggregate(part)], None
    written = _GroupExpressions()
    fixed = tuple(written.place(part) for part in group.expressions if not isinstance(part, _SEVERAL))
    factors = [written.sets_of(part) for part in group.expressions if isinstance(part, _SEVERAL)]
    for part in (part for word in _CLAUSES for part in group.args.get(word) or []):
        if not part.expressions:
            # GROUP BY a, b WITH ROLLUP
            part = type(part)(expressions=[written.expressions[position].copy() for position in fixed])
        factors.append(written.sets_of(part))
        if set(fixed) <= {position for one in factors[-1] for position in one}:
            # GROUP BY a, b GROUPING SETS (...): the list before it only declares the expressions.
            fixed = ()
    if not factors:
        return written.expressions, None
    combined: list[tuple[int, ...]] = [fixed]
    for factor in factors:
        combined = [tuple(dict.fromkeys((*known, *part))) for known in combined for part in factor]
    return written.expressions, tuple(combined)


class _GroupExpressions:
    """The distinct expressions of a GROUP BY. A grouping set is a tuple of their positions."""

    def __init__(self) -> None:
        self.expressions: list[exp.Expression] = []

    def place(self, part: exp.Expression) -> int:
        part = unwrapped(part)
        for position, known in enumerate(self.expressions):
            if known == part:
                return position
        self.expressions.append(part)
        return len(self.expressions) - 1

    def members(self, part: exp.Expression) -> tuple[int, ...]:
        if isinstance(part, exp.Tuple):
            return tuple(self.place(child) for child in part.expressions)
        return (self.place(part),)

    def sets_of(self, part: exp.Expression) -> list[tuple[int, ...]]:
        if isinstance(part, exp.Rollup):
            listed = [self.members(child) for child in part.expressions]
            return [_joined(listed[:count]) for count in range(len(listed), -1, -1)]
        if isinstance(part, exp.Cube):
            listed = [self.members(child) for child in part.expressions]
            chosen = reversed(range(2 ** len(listed)))
            return [_joined(one for bit, one in enumerate(listed) if mask >> bit & 1) for mask in chosen]
        if isinstance(part, exp.GroupingSets):
            return [one for child in part.expressions for one in self.sets_of(child)]
        return [self.members(part)]


def _joined(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(position for part in parts for position in part)
