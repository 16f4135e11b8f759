"""Auxiliary views for what a query reads several times, or computes below other aggregates and windows.

A change of an upstream reaches the rows of a query through each place at which the query reads it. The
statement that finds affected keys has a part for each of these ways. Where aggregates are below other
aggregates, windows or self-joins, the parts multiply, up to thousands of operators. With the inner result
stored as a keyed table, the query above reads a table with a change log, and is planned over its changes.

The views are chosen by the cost of maintenance (Ross et al. 1996), and each is maintained like the query
itself, from the changes of other views (Koch et al. 2014). One view is chosen at a time: the query over it is
a query like any other, which may get another view. ``views_of`` looks ahead: it returns all views that a
query would get, in the order of their refreshes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.planner.algebra.canonical_form import canonical_sql
from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Limit,
    Node,
    Project,
    Scan,
    ScannedColumn,
    Window,
    map_children,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.query import OutputColumn, Query
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import STATE, AuxiliaryView, without_spare
from dbt_arctic.planner.auxiliary.nested_view import view_of_groups
from dbt_arctic.planner.delta.plan import plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import unique_keys
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.typing.inference import Types

WORTH_OPERATORS = 150
"""Operators of the largest statement of a refresh above which an auxiliary view is looked for."""

GAIN = 0.7
"""The largest statement with auxiliary views has at most this share of the operators without."""

MOST = 8
"""So many auxiliary views does a model have at most."""

Stored = tuple[tuple[str, ...], tuple[str, ...]]
"""The key and the columns of an auxiliary view, by which it is found again."""


@dataclass(frozen=True)
class SharedView:
    """A part of a query as an auxiliary view, and the query that reads it instead.

    :param parts: the places of the query that it stands for.
    :param over: the query over it; scans of ``source`` have the columns of the part.
    :param size: operators of the largest statement of the refreshes of the view and of the query over it, and
        operators of this query.
    """

    view: AuxiliaryView
    parts: Sequence[Node]
    source: str
    over: Node
    size: tuple[float, int]


@dataclass(frozen=True)
class _Terms:
    """What holds for a query and for all queries over its views."""

    key: Sequence[str]
    keys_of: Mapping[str, Sequence[str]]
    accept: frozenset[str]

    @property
    def facts(self) -> Facts:
        return Facts({source: UpstreamFacts(True, tuple(key)) for source, key in self.keys_of.items()})

    def operators(self, query: Query, key: Sequence[str]) -> float:
        """Operators of the largest statement of a refresh in which everything has changed.

        :raises CannotPlan: it is not incremental, for another reason than its size.
        """
        # The types of a view's columns are not all known before it is built. Whether sums are exact has been
        # checked of the whole query.
        accept = self.accept | {"float_sum"}
        try:
            plan = plan_incremental(query, key, self.facts, accept)
        except CannotPlan as error:
            if error.reason.code == "too-large":
                return math.inf
            raise
        return max((_count(node) for node in (plan.affected, plan.rows) if node is not None), default=0)


def find_shared_view(
    query: Query,
    key: Sequence[str],
    keys_of: Mapping[str, Sequence[str]],
    rows: Mapping[str, int],
    worth: int,
    accept: frozenset[str] = frozenset(),
    stored: Stored | None = None,
    gain: float = GAIN,
) -> AuxiliaryView | None:
    """Split a query at the part of it that is its first auxiliary view.

    :param keys_of: the keys of upstreams, as stored. :param rows: how many rows these have.
    :param worth: from how many rows on, each upstream counted as often as it is read, a view is worth it.
    :param stored: of the view that there is. Only a view like it is chosen.
    :param gain: which share of its operators the largest statement has at most with all views.

    :returns: ``None`` where the refresh of the query has small statements, or no view makes them small.
    """
    terms = _Terms(key, keys_of, accept)
    if stored is None:
        read = sum(rows.get(scan.source, 0) for scan in scans(query.node))
        views = views_of(query, key, keys_of, accept, gain) if read >= worth else ()
        return views[0].view if views else None
    if _size(query, terms)[0] <= WORTH_OPERATORS:
        return None
    known = possible_views(query, key, keys_of, accept)
    return next((one for one in known if (one.key, tuple(one.state.output)) == stored), None)


def possible_views(
    query: Query,
    key: Sequence[str],
    keys_of: Mapping[str, Sequence[str]],
    accept: frozenset[str] = frozenset(),
) -> list[AuxiliaryView]:
    """Every view that could be the first one of a query, the best first.

    The parameters are those of ``find_shared_view``.
    """
    return [one.view for one in _candidates(query, _Terms(key, keys_of, accept), 1)]


def views_of(
    query: Query,
    key: Sequence[str],
    keys_of: Mapping[str, Sequence[str]],
    accept: frozenset[str] = frozenset(),
    gain: float = GAIN,
) -> tuple[SharedView, ...]:
    """The auxiliary views of a query in the order in which they are refreshed. Each may read those before it.

    :returns: none, where they do not reduce the largest statement enough.
    """
    terms = _Terms(key, keys_of, accept)
    query = replace(query, types={**query.types, **Types(query.node, query.types).texts()})
    before = size = _size(query, terms)
    views: list[SharedView] = []
    while size[0] > WORTH_OPERATORS and len(views) < MOST:
        best = next(iter(_candidates(query, terms, len(views) + 1)), None)
        if best is None or best.size[0] > size[0]:
            break
        views.append(best)
        query, size = replace(query, node=best.over), best.size
        terms = replace(terms, keys_of={**terms.keys_of, best.source: best.view.key})
    return tuple(views) if size[0] < math.inf and size[0] <= gain * before[0] else ()


def _size(query: Query, terms: _Terms) -> tuple[float, int]:
    try:
        return terms.operators(query, terms.key), _count(query.node)
    except CannotPlan:
        return 0, 0  # a view does not change that


def _count(node: Node) -> int:
    return sum(1 for _ in walk(node))


def _candidates(query: Query, terms: _Terms, number: int) -> list[SharedView]:
    """Every part of a query that can be an auxiliary view, the best first.

    The best is that with which the largest statement is smallest. A part that this one reads and that the
    query also reads elsewhere comes before it: then both read it as a view.
    """
    found = sorted(_possible(query, terms, number), key=lambda one: one.size)
    if not found:
        return []
    first = min((one for one in found if one is found[0] or _is_shared(one, found[0])), key=_depth)
    return [first, *(one for one in found if one is not first)]


def _depth(view: SharedView) -> int:
    return _count(view.parts[0])


def _is_shared(view: SharedView, above: SharedView) -> bool:
    """Whether a part of a query is in another one, and elsewhere or there again."""
    within = {id(node) for node in walk(above.parts[0])}
    times = sum(1 for part in view.parts if id(part) in within)
    return 0 < times < len(view.parts) and (times > 1 or len(view.parts) > len(above.parts))


def _possible(query: Query, terms: _Terms, number: int) -> Iterator[SharedView]:
    ends_in = query.node
    while isinstance(ends_in, Project | Filter | Limit):
        ends_in = ends_in.child
    places: dict[str, list[Aggregate | Window]] = {}
    for part in walk(query.node):
        if isinstance(part, Aggregate | Window):
            places.setdefault(canonical_sql(part), []).append(part)
    for parts in places.values():
        if parts == [ends_in]:
            continue
        source = f"{STATE}_{number}"
        over = prune_columns(_Swap(parts, source).node(query.node))
        read = {name for scan in scans(over) if scan.source == source for _, name in scan.columns}
        made = _view_of_part(query, parts[0], read, terms.facts)
        if made is None:
            continue
        made = without_spare(made)
        around = _renamed_source(over, source)
        try:
            below = {**terms.keys_of, source: made.key}
            above = replace(terms, keys_of=below).operators(replace(query, node=over), terms.key)
            largest = max(above, _operators_of_view(query, made, terms))
        except CannotPlan:
            continue
        yield SharedView(replace(made, around=around), parts, source, over, (largest, _count(over)))


def _view_of_part(
    query: Query, part: Aggregate | Window, read: set[str], facts: Facts
) -> AuxiliaryView | None:
    """A part of a query as a keyed table. Unused columns are left out."""
    if isinstance(part, Aggregate):
        if part.grouping_sets is not None:
            return None
        kept = replace(part, aggregates=tuple(one for one in part.aggregates if one[0] in read))
        made = view_of_groups(query, kept)
        if made is not None or not kept.groups:
            return made
        state: Node = prune_columns(kept)
        key = tuple(name for name, _ in kept.groups)
    else:
        keys = sorted(unique_keys(part, facts), key=lambda one: (len(one), sorted(one)))
        if not keys or not keys[0]:
            return None
        shown = tuple(name for name in part.output if name in read | keys[0])
        state = prune_columns(Project(part, tuple((name, column(name)) for name in shown)))
        key = tuple(name for name in shown if name in keys[0])
    names = [name.lower() for name in state.output]
    if len(set(names)) < len(names) or any(name.startswith("_") for name in names):
        return None
    return AuxiliaryView(state, key, (), query.columns, has_few_rows=True)


def _operators_of_view(query: Query, made: AuxiliaryView, terms: _Terms) -> float:
    """Operators of the largest statement of a view's own refresh.

    :raises CannotPlan: it is not incremental.
    """
    own = replace(
        query, node=made.state, columns=tuple(OutputColumn(name, name) for name in made.state.output)
    )
    sums = plan_summary_delta(own, made.key, terms.facts, terms.accept | {"float_sum"})
    if sums is not None:
        return max(map(_count, sums.nodes), default=0)
    return terms.operators(own, made.key)


class _Swap:
    """Puts a scan of the view in each place that it stands for."""

    def __init__(self, parts: Sequence[Node], source: str) -> None:
        self._parts = {id(part): part for part in parts}
        self._stored, self._source = parts[0].output, source

    def node(self, node: Node) -> Node:
        if id(node) in self._parts:
            pairs = tuple(map(ScannedColumn, node.output, self._stored))
            return Scan(self._source, "_state", pairs)
        return map_children(node, self.node)


def _renamed_source(node: Node, source: str) -> Node:
    if isinstance(node, Scan) and node.source == source:
        return replace(node, source=STATE)
    return map_children(node, lambda child: _renamed_source(child, source))


__all__ = ["GAIN", "MOST", "WORTH_OPERATORS", "SharedView", "find_shared_view", "possible_views", "views_of"]
