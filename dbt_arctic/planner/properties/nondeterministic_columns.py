"""Columns of a result that may differ between two runs over the same rows.

``require_determinism`` finds whether a query has a nondeterministic part. This analysis propagates each part
to the output columns that depend on it. Sums of floats are separate: two runs only differ in the last
digits, so values computed from them count as deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

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
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.frontend.string_literals import labels
from dbt_arctic.planner.properties.determinism import (
    causes_in,
    first_rows_are_known,
    float_sum,
    identical,
    tied_functions,
)
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.interchangeable_rows import ties_decide_nothing, used_of_windows
from dbt_arctic.planner.properties.order_independence import independent_of_order
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.planner.spark.functions import SUMS, function_name
from dbt_arctic.planner.typing.inference import Types

FLOAT_SUM = "float-sum"

CODES = frozenset(
    {
        "approximate",
        FLOAT_SUM,
        "order-dependent",
        "random",
        "session",
        "ties",
        "time",
        "unknown-function",
    }
)
"""The codes of causes for which two runs of a query may differ."""


@dataclass(frozen=True)
class Nondeterministic:
    """The columns and rows that may differ between two runs of a query over the same rows.

    :param columns: columns with different values, each with the reason.
    :param digits: columns that only differ in their last digits, each with the reason.
    :param rows: the reason why the rows may differ. All columns may differ then.
    :param counted: whether the number of rows is the same even so.
    """

    columns: Mapping[str, Reason] = field(default_factory=dict)
    digits: Mapping[str, Reason] = field(default_factory=dict)
    rows: Reason | None = None
    counted: bool = True

    @property
    def reason(self) -> Reason | None:
        """The first reason why the query is not deterministic; ``None`` if it is."""
        return self.rows or next(iter((*self.columns.values(), *self.digits.values())), None)


def nondeterministic(query: Query, facts: Facts) -> Nondeterministic:
    """Find the nondeterministic columns of a query, under its output names."""
    found = _Following(query, facts).of(query.node)
    columns = [(name, found.why[identifier]) for name, identifier in query.columns if identifier in found.why]
    return Nondeterministic(
        {name: reason for name, reason in columns if reason.code != FLOAT_SUM},
        {name: reason for name, reason in columns if reason.code == FLOAT_SUM},
        found.rows,
        found.counted,
    )


@dataclass(frozen=True)
class _Open:
    """The nondeterministic columns and rows of one operator.

    :param within: for a column that numbers the rows of each group: the columns that are equal in a group.
    """

    why: Mapping[str, Reason] = field(default_factory=dict)
    rows: Reason | None = None
    counted: bool = True
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)


class _Following:
    def __init__(self, query: Query, facts: Facts) -> None:
        self._types = query.types
        self._facts = facts
        self._labels = cache(lambda: labels(query.node))
        self._known = cache(lambda: Types(query.node, query.types))
        self._identical = identical(query.node, query.types)
        self._used = cache(lambda: used_of_windows(query.node))

    def of(self, node: Node) -> _Open:
        match node:
            case Scan() | Values():
                return _Open()
            case Project():
                return self._of_project(node)
            case Filter():
                return self._of_filter(node)
            case Window():
                return self._of_window(node)
            case Aggregate():
                return self._of_aggregate(node)
            case Generate():
                child = self.of(node.child)
                why = self._why(node.function, child.why, node)
                if _is_open(why):
                    return _others(node, why)
                return _Open(child.why, child.rows, child.counted and child.rows is None)
            case Limit():
                return self._of_limit(node)
            case UnionAll():
                return _of_sides(node, node.children, [self.of(child) for child in node.children])
            case Join():
                return self._of_join(node)
            case SetOperation():
                return _of_sides(node, (node.left, node.right), [self.of(node.left), self.of(node.right)])
            case KeySemiJoin():
                sides = [self.of(node.child), self.of(node.keys)]
                reason = _worst(why for side in sides for why in (side.rows, *side.why.values()))
                return conservative(_others(node, reason), "only rules create it; no query contains it")

    def _of_project(self, node: Project) -> _Open:
        child = self.of(node.child)
        why = self._each(node.items, child.why, node)
        within = {}
        for name, value in node.items:
            if isinstance(value, exp.Column) and value.name in child.within:
                shared = child.within[value.name]
                within[name] = frozenset(
                    other for other, one in node.items if other not in why and columns_of(one) <= shared
                )
        return _Open(_all(node, child.rows) or why, child.rows, child.counted, within)

    def _of_filter(self, node: Filter) -> _Open:
        child = self.of(node.child)
        why = {id(part): self._why(part, child.why, node) for part in node.conditions}
        opened = [part for part in node.conditions if _is_open(why[id(part)])]
        others = [part for part in node.conditions if part not in opened]
        if not opened:
            kept = {
                number: shared
                for number, shared in child.within.items()
                if all(columns_of(part) <= shared for part in others)
            }
            return _Open(child.why, child.rows, child.counted and child.rows is None, kept)
        reason = why[id(opened[0])]
        # Whichever row of a group comes first, each group has one first row, with the values that all rows of
        # the group have.
        named = columns_of(*opened)
        (number,) = named if len(named) == 1 else ("",)
        shared = child.within.get(number, frozenset())
        own = any(self._own(part, node) or part.find(SubqueryRef) for part in opened)
        if number in child.within and not own and all(columns_of(part) <= shared for part in others):
            free = {name: _worst((child.why.get(name), reason)) for name in node.output if name not in shared}
            return _Open({**child.why, **{name: one for name, one in free.items() if one is not None}})
        return _others(node, reason)

    def _of_window(self, node: Window) -> _Open:
        child = self.of(node.child)
        why, within = dict(child.why), {}
        parts, tied = self._worst_of(node.partition, child.why, node), self._tied(node)
        for name, item in node.items:
            found = _worst((parts, self._why(item, child.why, node), tied.get(name)))
            if found is None:
                continue
            why[name] = found
            if function_name(item.this) == "row_number" and not _is_open(parts) and child.rows is None:
                columns = columns_of(*node.partition)
                if all(isinstance(part, exp.Column) for part in node.partition):
                    within[name] = columns
        return _Open(_all(node, child.rows) or why, child.rows, child.counted, within)

    def _tied(self, node: Window) -> Mapping[str, Reason]:
        tied = tied_functions(node, self._facts, self._identical)
        if not tied:
            return {}
        errors, used = {id(item): error for item, error in tied}, self._used()[id(node)]
        items = [item for item, _ in tied]
        return {
            name: errors[id(item)].reason
            for name, item in node.items
            if id(item) in errors
            and not ties_decide_nothing(node, item, items, used, self._facts, self._identical)
        }

    def _of_aggregate(self, node: Aggregate) -> _Open:
        child = self.of(node.child)
        grouped = self._worst_of((value for _, value in node.groups), child.why, node)
        if node.groups and (child.rows is not None or _is_open(grouped)):
            return _others(node, child.rows or grouped)
        why = self._each((*node.groups, *node.aggregates), child.why, node)
        return _Open(_all(node, child.rows) or why)

    def _of_limit(self, node: Limit) -> _Open:
        child = self.of(node.child)
        reason = child.rows or self._worst_of(node.order, child.why, node)
        if not _is_open(reason) and not first_rows_are_known(node, self._facts, self._identical):
            reason = Reason("ties", "a LIMIT whose ORDER BY leaves rows equal")
        if not _is_open(reason):
            return _Open(child.why)
        return _Open(_all(node, reason), reason, child.counted)

    def _of_join(self, node: Join) -> _Open:
        sides = [self.of(node.left), self.of(node.right)]
        why = {**sides[0].why, **sides[1].why}
        reason = _worst((sides[0].rows, sides[1].rows, self._worst_of(node.conditions, why, node)))
        if _is_open(reason):
            return _others(node, reason)
        return _Open({name: one for name, one in why.items() if name in node.output})

    def _each(
        self, items: Iterable[tuple[str, exp.Expression]], below: Mapping[str, Reason], node: Node
    ) -> dict[str, Reason]:
        found = ((name, self._why(value, below, node)) for name, value in items)
        return {name: why for name, why in found if why is not None}

    def _worst_of(
        self, values: Iterable[exp.Expression], below: Mapping[str, Reason], node: Node
    ) -> Reason | None:
        return _worst(self._why(value, below, node) for value in values)

    def _why(self, expression: exp.Expression, below: Mapping[str, Reason], node: Node) -> Reason | None:
        """Why the value of an expression is not deterministic."""
        found = [below[name] for name in sorted(columns_of(expression)) if name in below]
        subqueries = getattr(node, "subqueries", ())
        for place in expression.find_all(SubqueryRef):
            found += self._of_subquery(subqueries[place.number], below, node)
        return _worst((*found, *self._own(expression, node)))

    def _of_subquery(self, subquery: Subquery, below: Mapping[str, Reason], node: Node) -> list[Reason]:
        plan = self.of(subquery.plan)
        both = {**below, **plan.why}
        parts = [*subquery.links, *(() if subquery.value is None else (subquery.value,))]
        own = [reason for part in parts for reason in self._own(part, node)]
        found = [both[name] for name in sorted(columns_of(*parts)) if name in both]
        return [*own, *found, *(() if plan.rows is None else (plan.rows,))]

    def _own(self, expression: exp.Expression, node: Node) -> list[Reason]:
        """The nondeterministic parts of an expression itself, apart from its columns."""
        windowed = isinstance(node, Window)
        fine = None if windowed else independent_of_order(expression, node, self._facts, self._identical)
        found = list(causes_in(expression, fine, self._types, self._labels, self._known))
        return [one.reason for one in (*found, *self._float_sums(expression)) if _counts(one)]

    def _float_sums(self, expression: exp.Expression) -> Iterator[CannotPlan]:
        for call in expression.find_all(exp.Expression):
            name = function_name(call)
            if name in SUMS:
                found = float_sum(call, str(name), self._known())
                if found is not None:
                    yield found


def _counts(error: CannotPlan) -> bool:
    return error.reason.code in CODES


def _worst(reasons: Iterable[Reason | None]) -> Reason | None:
    """The first reason that affects more than the last digits, or else the first reason."""
    given = [reason for reason in reasons if reason is not None]
    return next((reason for reason in given if _is_open(reason)), given[0] if given else None)


def _is_open(reason: Reason | None) -> bool:
    return reason is not None and reason.code != FLOAT_SUM


def _all(node: Node, reason: Reason | None) -> dict[str, Reason]:
    return {} if reason is None else dict.fromkeys(node.output, reason)


def _others(node: Node, reason: Reason | None) -> _Open:
    """An operator with any number of different rows, because they depend on a nondeterministic value.

    Different last digits do not count.
    """
    if not _is_open(reason):
        return _Open()
    return _Open(_all(node, reason), reason, False)


def _of_sides(node: UnionAll | SetOperation, inputs: Sequence[Node], sides: Sequence[_Open]) -> _Open:
    why: dict[str, Reason] = {}
    for place, name in enumerate(node.columns):
        found = _worst(side.why.get(one.output[place]) for one, side in zip(inputs, sides, strict=True))
        if found is not None:
            why[name] = found
    rows = _worst(side.rows for side in sides)
    if isinstance(node, SetOperation):
        # Set operations compare whole rows.
        reason = _worst((rows, *why.values()))
        return _others(node, reason) if _is_open(reason) else _Open(why)
    return _Open(_all(node, rows) or why, rows, all(side.counted for side in sides))
