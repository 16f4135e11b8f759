"""The order of inner joins that start from few rows, their row counts, and which sides to broadcast.

Spark estimates changes, and the rows that they join, at the size of their tables. The planner knows how many
rows changed. So it knows which joins can broadcast them instead of sorting a large table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

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
    scans,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.range_pruning import pruned_to_ranges
from dbt_arctic.planner.frontend.point_in_time import reads_changed_time
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.unique_keys import unique_keys

_MAX_BROADCAST_ROWS = 2_000_000
"""The most rows that are broadcast, so that the other side is not sorted."""
_MAX_ESTIMATED_BROADCAST_ROWS = 200_000
"""The same for estimates from averages: one customer may have a tenth of all orders. The lines of an order
are not estimated: their key is the order and a number, so the counts are even."""
_MAX_ROWS_PER_VALUE = 100
"""The most rows per value for which a prefix of a key counts as selective. A key that begins with a tenant is
not."""


@dataclass(frozen=True)
class Count:
    """A number of rows.

    :param rows: infinite if unknown.
    :param is_estimate: whether it is an estimate from the average number of matches.
    """

    rows: float
    is_estimate: bool = False

    def __add__(self, other: Count) -> Count:
        return Count(self.rows + other.rows, self.is_estimate or other.is_estimate)

    @property
    def can_broadcast(self) -> bool:
        """Whether the rows can be broadcast."""
        return self.rows <= (_MAX_ESTIMATED_BROADCAST_ROWS if self.is_estimate else _MAX_BROADCAST_ROWS)


NONE = Count(0)
UNKNOWN = Count(math.inf)


@dataclass(frozen=True)
class Chain:
    """The rows of joined relations.

    :param reached: the relations that are joined so far.
    """

    rows: Node
    reached: tuple[Node, ...]
    count: Count


@dataclass(frozen=True)
class _Step:
    """One join of a chain.

    :param same: the columns that the join equates, by the columns of the relations before it.
    :param before: the number of rows that are joined.
    :param after: the number of rows of the result.
    """

    picked: Node
    conditions: tuple[exp.Expression, ...]
    same: Mapping[str, str]
    before: Count
    after: Count


def flattened(node: Node) -> tuple[list[Node], list[exp.Expression]]:
    """The relations of nested inner joins, and all their conditions."""
    if not isinstance(node, Join) or node.kind != "inner":
        return [node], []
    left, left_conditions = flattened(node.left)
    right, right_conditions = flattened(node.right)
    return [*left, *right], [*left_conditions, *right_conditions, *node.conditions]


def joined(
    start: Chain,
    others: Sequence[Node],
    conditions: Sequence[exp.Expression],
    wanted: frozenset[str] | set[str],
    facts: Facts,
) -> Chain:
    """Join rows with all other relations, in an order that keeps intermediate results small.

    Each relation is linked by a condition to those before it. Relations that filter, or have few rows, come
    first.

    :param wanted: the columns of the result.
    """
    made, reached, count, open_ = start.rows, list(start.reached), start.count, list(conditions)
    for step in _steps(start, others, conditions, facts):
        if _should_broadcast(step.before, step.picked, facts):
            needed = columns_of(*open_) | wanted
            items = tuple((name, column(name)) for name in made.output if name in needed)
            made = Project(made, items, broadcast=True)
        open_ = [part for part in open_ if part not in step.conditions]
        made = Join(made, pruned_to_ranges(step.picked, made, step.same, facts), "inner", step.conditions)
        reached.append(step.picked)
        count = step.after
    return Chain(Filter(made, tuple(open_)) if open_ else made, tuple(reached), count)


def changed_rows(node: Node, facts: Facts) -> Count:
    """The number of changed rows of a relation: rows that it lost, gained, or both."""
    if not facts.changed(node):
        return NONE
    match node:
        case Scan():
            known = facts.of(node).changed_rows
            return UNKNOWN if known is None else Count(known)
        case Project() | Filter():
            by_itself = any(facts.changed(one.plan) for one in node.subqueries) or (
                facts.time_changed and reads_changed_time(node)
            )
            return UNKNOWN if by_itself else changed_rows(node.child, facts)
        case UnionAll():
            return sum((changed_rows(child, facts) for child in node.children), NONE)
        case Join():
            if node.kind != "inner":
                return conservative(UNKNOWN, "a row may be lost or gained because the other side has changed")
            relations, conditions = flattened(node)
            counts = NONE
            for place, relation in enumerate(relations):
                own = Chain(relation, (relation,), changed_rows(relation, facts))
                others = [*relations[:place], *relations[place + 1 :]]
                *_, last = _steps(own, others, conditions, facts)
                counts += last.after if own.count.rows else NONE
            return counts
        case Aggregate() | Window() | SetOperation() | Limit():
            return conservative(UNKNOWN, "one changed row can change many rows")
        case Generate():
            return conservative(UNKNOWN, "one changed row may become any number of rows")
        case KeySemiJoin():
            return conservative(UNKNOWN, "only rules create it, after this analysis")
        case Values():
            return NONE  # Constants do not change.


def _steps(
    start: Chain, others: Sequence[Node], conditions: Sequence[exp.Expression], facts: Facts
) -> Iterator[_Step]:
    reach, reached, count = set(start.rows.output), list(start.reached), start.count
    left, open_ = list(others), list(conditions)
    while left:
        join_columns = {theirs for mine, theirs in equalities(open_) if mine in reach}
        linked = [one for one in left if join_columns & set(one.output)]
        picked = min(
            linked or left,
            key=lambda one: (_fan_out(one, join_columns, facts), not _is_filtered(one), rows_of(one, facts)),
        )
        left = [one for one in left if one is not picked]
        both = reach | set(picked.output)
        ready = tuple(part for part in open_ if columns_of(part) <= both)
        open_ = [part for part in open_ if not columns_of(part) <= both]
        same = {
            mine: theirs for mine, theirs in equalities(ready) if mine in reach and theirs in picked.output
        }
        after = _joined_rows(count, picked, same, reached, facts)
        yield _Step(picked, ready, same, count, after)
        reach, count = both, after
        reached.append(picked)


def _should_broadcast(count: Count, other: Node, facts: Facts) -> bool:
    """Whether the rows are few compared to the rows that they are joined with."""
    rows = rows_of(other, facts)
    return count.can_broadcast and bool(scans(other)) and (rows == 0 or count.rows < rows)


def _joined_rows(
    count: Count, picked: Node, same: Mapping[str, str], reached: Sequence[Node], facts: Facts
) -> Count:
    """Estimate the result of a join by the average number of rows per value of another table's key."""
    if any(key <= set(same.values()) for key in unique_keys(picked, facts)):
        return count
    rows = rows_of(picked, facts)
    for one in reached:
        owner = _rows_of_one(one, facts)
        if rows and owner and any(key <= same.keys() for key in unique_keys(one, facts)):
            each = max(1.0, rows / owner)
            even = each <= _MAX_ROWS_PER_VALUE and matches_few_rows(picked, same.values(), facts)
            return Count(count.rows * each, count.is_estimate or not even)
    return UNKNOWN


class _FanOut(IntEnum):
    """How many rows of a relation one row can match."""

    ONE = 0
    FEW = 1
    """The columns are a part of a key, as for the lines of an order."""
    UNKNOWN = 2
    """For example, the hundreds of suppliers in a customer's nation."""


def _fan_out(node: Node, join_columns: frozenset[str] | set[str], facts: Facts) -> _FanOut:
    """How many rows of a relation one row can match by these columns."""
    keys = unique_keys(node, facts)
    if any(key <= join_columns for key in keys):
        return _FanOut.ONE
    return _FanOut.FEW if any(key & join_columns for key in keys) else _FanOut.UNKNOWN


def _is_filtered(node: Node) -> bool:
    """Whether a relation has conditions of its own.

    Joining it early removes rows without a match, which are then not joined with the others.
    """
    while isinstance(node, Project):
        node = node.child
    return isinstance(node, Filter)


def matches_few_rows(node: Node, names: Iterable[str], facts: Facts) -> bool:
    """Whether a row matches at most one row of ``node`` by these columns, or few, like an order's lines."""
    return _fan_out(node, frozenset(names), facts) <= _FanOut.FEW


def rows_of(node: Node, facts: Facts) -> int:
    """The row count of the tables that a relation reads, as far as it is known."""
    return facts.known_rows(scans(node))


def _rows_of_one(node: Node, facts: Facts) -> int | None:
    """The row count of the single table whose rows a relation returns; ``None`` if there is no such table."""
    while isinstance(node, Filter | Project):
        node = node.child
    return rows_of(node, facts) if isinstance(node, Scan) else None


__all__ = ["NONE", "Chain", "Count", "changed_rows", "flattened", "joined", "matches_few_rows", "rows_of"]
