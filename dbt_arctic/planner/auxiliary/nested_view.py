"""Nested auxiliary views: aggregates of a large table inside a query, over which the rest is cheap.

``find_auxiliary_view`` stores what a query ends in. The relations that a query joins, filters or groups
again may be aggregates of a large table as well: the revenue of each supplier, of which the largest is
selected; the number of orders of each customer, by which customers are counted; whether any order exists. A
change affects few of these groups, but their rows are spread over the table. As an auxiliary view, they are
maintained by adding the delta, which costs less than it saves (Ross et al. 1996). The query reads this view
instead of the table, which it must read nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    ScannedColumn,
    Subquery,
    UnionAll,
    map_children,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import column, columns_of, linked, or_zero, present
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    STATE,
    AuxiliaryView,
    by_own_key,
    sql_of,
    state_of_sums,
)
from dbt_arctic.planner.auxiliary.eager_aggregation import below_joins
from dbt_arctic.planner.auxiliary.null_groups import without_null_groups
from dbt_arctic.planner.auxiliary.reduced_view import find_reduced_view
from dbt_arctic.planner.auxiliary.regrouping import regrouped
from dbt_arctic.planner.auxiliary.state_columns import ROWS
from dbt_arctic.planner.auxiliary.totals_of_groups import ends_in, with_totals_of_groups
from dbt_arctic.planner.properties.unique_keys import has_small_groups
from dbt_arctic.planner.spark.functions import is_aggregate

_CALLS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True)
class _StoredPart:
    """A candidate for an auxiliary view at one place of a query.

    :param rows: an aggregate with the names of its place; without aggregates, the values of a subquery.
    :param subquery: the subquery that it replaces; ``None`` if it is a part of the tree.
    :param value: for a scalar subquery: its value, computed from the columns of ``rows``.
    """

    rows: Aggregate
    subquery: Subquery | None = None
    value: exp.Expression | None = None

    @property
    def text(self) -> str:
        """A text that is equal for two places with the same query."""
        numbered = replace(
            self.rows,
            groups=tuple((f"_g{place}", value) for place, (_, value) in enumerate(self.rows.groups)),
            aggregates=tuple((f"_a{place}", value) for place, (_, value) in enumerate(self.rows.aggregates)),
        )
        return sql_of(numbered)


def find_nested_view(
    query: Query,
    keys_of: Mapping[str, Sequence[str]],
    rows: Mapping[str, int],
    worth: int,
    key: Sequence[str] | None = None,
    own: Sequence[str] = (),
) -> AuxiliaryView | None:
    """Split a query at an aggregate inside it, which becomes an auxiliary view.

    :param keys_of: the keys of upstreams, by stored names.
    :param rows: the row counts of upstreams.
    :param worth: the smallest row count for which an auxiliary view is worthwhile.
    :param key: the key of the existing auxiliary view, which may differ from the one that would be chosen
        now.
    :param own: the model's key.

    :returns: ``None`` if no aggregate inside the query is worthwhile.
    """
    found = _nested_views(query, keys_of, rows, worth, own)
    return next((one for one in found if key is None or one.key == tuple(key)), None)


def _nested_views(
    query: Query,
    keys_of: Mapping[str, Sequence[str]],
    rows: Mapping[str, int],
    worth: int,
    own: Sequence[str],
) -> Iterator[AuxiliaryView]:
    """The possible views, the best one first."""
    node = below_joins(query.node, keys_of)
    # A part that is read in two places may have groups that are NULL in one of them.
    for tree in dict.fromkeys((without_null_groups(node, keys_of), node, with_totals_of_groups(node))):
        last, subqueries = ends_in(tree)
        places = [
            one
            for one in _places(tree)
            # Without subqueries above, ``find_auxiliary_view`` splits the query at what it ends in.
            if (one.rows is not last or subqueries) and _is_worth(one.rows, keys_of, rows, worth)
        ]
        for place in sorted(places, key=lambda one: -_largest(one.rows, rows)[0]):
            whole = replace(query, node=tree)
            made = _around(whole, place, rows)
            if made is not None:
                yield by_own_key(made, whole, own, keys_of) if own and place.rows is last else made
    reduced = find_reduced_view(query, keys_of, rows, worth)
    if reduced is not None:
        yield reduced
    again = regrouped(query.node, keys_of, rows, worth)
    made = (
        None
        if again is None
        else _around(replace(query, node=again.node), _StoredPart(again.stored_part), rows)
    )
    if again is not None and made is not None:
        yield replace(made, size=again.size)


def _around(query: Query, place: _StoredPart, rows: Mapping[str, int]) -> AuxiliaryView | None:
    """The query over a state in one of its places; ``None`` if it also reads the table elsewhere."""
    made = view_of_groups(query, place.rows)
    if made is None:
        return None
    around = _Swap(place, place.text).node(query.node)
    is_read = _largest(place.rows, rows)[1] in {scan.source for scan in scans(around)}
    return None if is_read else replace(made, around=around)


def _largest(node: Aggregate, rows: Mapping[str, int]) -> tuple[int, str]:
    return max((rows.get(scan.source, -1), scan.source) for scan in scans(node))


def _is_worth(
    node: Aggregate, keys_of: Mapping[str, Sequence[str]], rows: Mapping[str, int], worth: int
) -> bool:
    if not scans(node) or _largest(node, rows)[0] < worth or has_small_groups(node, keys_of):
        return False
    # A delta passes through these operators without lookups.
    return all(
        isinstance(part, Scan | UnionAll)
        or (isinstance(part, Project | Filter) and not part.subqueries)
        or (isinstance(part, Join) and part.kind == "inner")
        for part in walk(node.child)
    )


# Places


def _places(node: Node) -> Iterator[_StoredPart]:
    for part in walk(node):
        if isinstance(part, Aggregate):
            yield _StoredPart(part)
        for subquery in getattr(part, "subqueries", ()):
            found = _of_subquery(subquery)
            if found is not None:
                yield found


def _of_subquery(subquery: Subquery) -> _StoredPart | None:
    """A subquery grouped by the columns that link it to the outer row."""
    links = subquery.links
    stored_part = set(subquery.plan.output)
    names = linked(links, stored_part)
    if names is None or columns_of(*links) & stored_part != set(names):
        return None
    # NULL matches no outer row.
    child = Filter(subquery.plan, tuple(present(name) for name in names))
    groups = tuple((name, column(name)) for name in names)
    if subquery.kind != "scalar":
        return None if subquery.nulls_count else _StoredPart(Aggregate(child, groups), subquery)
    return _of_value(subquery, child, groups)


def _of_value(
    subquery: Subquery, child: Node, groups: tuple[tuple[str, exp.Expression], ...]
) -> _StoredPart | None:
    calls: dict[str, exp.Expression] = {}

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.AggFunc):
            return part
        name = f"_value_{len(calls) + 1}"
        calls[name] = cast(exp.Expression, part)
        # At most one row has the values of the link. MAX returns its value, or NULL without a row.
        whole = exp.Max(this=column(name))
        return or_zero(whole) if isinstance(part, exp.Count) else whole

    assert subquery.value is not None
    value = cast(exp.Expression, subquery.value.copy().transform(swap, copy=False))
    if not calls or value.find(exp.Filter, exp.Window):
        return None
    if not _is_made_of(value, calls):
        return None
    return _StoredPart(Aggregate(child, groups, tuple(calls.items())), subquery, value)


def _is_made_of(value: exp.Expression, calls: Mapping[str, exp.Expression]) -> bool:
    """Whether a value has no other aggregate, which would be computed over the rows of the auxiliary view."""
    aggregates = sum(1 for part in value.find_all(exp.Expression) if is_aggregate(part))
    return aggregates <= len(calls) and columns_of(value) <= calls.keys()


# The auxiliary view, and the scans that replace it


def view_of_groups(query: Query, rows: Aggregate) -> AuxiliaryView | None:
    """An aggregate inside a query as an auxiliary view of sums; ``None`` where it cannot be one."""
    names = [name.lower() for name, _ in (*rows.groups, *rows.aggregates)]
    if len(set(names)) < len(names) or any(name.startswith("_") for name, _ in rows.groups):
        return None
    if rows.aggregates:
        simple = all(
            isinstance(call, _CALLS) and not isinstance(call.this, exp.Distinct)
            for _, call in rows.aggregates
        )
        made = state_of_sums(query, rows) if simple else None
        return None if made is None else replace(made, has_few_rows=True)
    if rows.grouping_sets is not None or not rows.groups:
        return None
    counted = replace(rows, aggregates=((ROWS, exp.Count(this=exp.Star())),))
    key = tuple(name for name, _ in rows.groups)
    return AuxiliaryView(counted, key, (), query.columns, has_few_rows=True)


@dataclass(frozen=True)
class _Swap:
    """Replaces a place by a scan of the auxiliary view, with keys as columns and aggregates by name."""

    kept: _StoredPart
    text: str

    def node(self, node: Node) -> Node:
        if isinstance(node, Aggregate):
            found = self._scan(_StoredPart(node))
            if found is not None:
                return found
        node = map_children(node, self.node)
        if isinstance(node, Project | Filter) and node.subqueries:
            return replace(node, subqueries=tuple(map(self._subquery, node.subqueries)))
        return node

    def _subquery(self, subquery: Subquery) -> Subquery:
        place = _of_subquery(subquery)
        found = None if place is None else self._scan(place)
        if place is None or found is None:
            return subquery
        return replace(subquery, plan=found, value=place.value or subquery.value)

    def _scan(self, place: _StoredPart) -> Scan | None:
        mine = (*self.kept.rows.groups, *self.kept.rows.aggregates)
        theirs = (*place.rows.groups, *place.rows.aggregates)
        if len(mine) != len(theirs) or place.text != self.text:
            return None
        pairs = zip(theirs, mine, strict=True)
        return Scan(STATE, "_state", tuple(ScannedColumn(shown, stored) for (shown, _), (stored, _) in pairs))


__all__ = ["find_nested_view", "view_of_groups"]
