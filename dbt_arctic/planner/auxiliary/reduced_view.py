"""Reduced auxiliary views: the few rows of a large table that join selected rows of another one.

A query compares each line of one brand's parts with the average of its part. These lines are a thousandth of
all lines. A change of one of them affects other lines of its part, which are spread over the table, but are
together in the auxiliary view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Subquery,
    map_children,
    own_names,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import column, equalities, plain
from dbt_arctic.planner.auxiliary.auxiliary_view import STATE, AuxiliaryView, RowsOfState
from dbt_arctic.planner.auxiliary.state_columns import ROWS
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import unique_keys

MAX_SHARE = 0.1
"""The largest share of the table's rows. A larger view costs more than it saves."""


@dataclass(frozen=True)
class _Place:
    """An inner join of a large table with selected rows of others, at most one for each of its rows.

    :param own: the conditions on the table's rows alone, which stay in the query.
    :param source: the upstream of the selected rows.
    :param by: the stored column of the table that is joined.
    :param names: the columns of both sides that have the joined value.
    """

    join: Join
    table: Scan
    own: tuple[exp.Expression, ...]
    chosen: Node
    source: str
    by: str
    names: frozenset[str]


def find_reduced_view(
    query: Query, keys_of: Mapping[str, Sequence[str]], rows: Mapping[str, int], worth: int
) -> AuxiliaryView | None:
    """Split a query at a join that selects few rows of a large table.

    The parameters are those of ``find_nested_view``.

    :returns: ``None`` if a query has no such join, or reads the table elsewhere as well.
    """
    node = query.node
    facts = Facts({source: UpstreamFacts(True, tuple(key)) for source, key in keys_of.items()})
    for place in _places(node, facts):
        table = place.table
        key = tuple(keys_of.get(table.source, ()))
        # By the first column of its key, rows are found quickly in the table itself.
        if not key or place.by == key[0] or rows.get(table.source, -1) < worth:
            continue
        swap = _Swap(place)
        around = prune_columns(swap.node(node))
        if swap.looks_up and table.source not in {scan.source for scan in scans(around)}:
            return _kept(query, place, key, around)
    return None


def _places(node: Node, facts: Facts) -> Iterator[_Place]:
    for part in walk(node):
        # With another condition, not all rows of a value would be stored.
        if not isinstance(part, Join) or part.kind != "inner" or len(part.conditions) > 1:
            continue
        for side, chosen in ((part.left, part.right), (part.right, part.left)):
            own = side.conditions if isinstance(side, Filter) and not side.subqueries else ()
            table = side.child if isinstance(side, Filter) and own else side
            if not isinstance(table, Scan) or not _is_choice(chosen, table.source):
                continue
            joined = [pair for pair in equalities(part.conditions, same_type=True) if pair[0] in table.output]
            theirs = {name for _, name in joined} & set(chosen.output)
            if len(joined) != 1 or not any(key <= theirs for key in unique_keys(chosen, facts)):
                continue
            mine, other = joined[0]
            source = _origin(chosen, other)
            if source is not None:
                by = table.stored[mine]
                yield _Place(part, table, own, chosen, source, by, frozenset((mine, other)))


def _origin(node: Node, name: str) -> str | None:
    """The upstream of a column."""
    for part in walk(node):
        if isinstance(part, Scan) and name in part.output:
            return part.source
        items = dict(part.items) if isinstance(part, Project) else {}
        name = (plain(items[name]) or name) if name in items else name
    return None


def _is_choice(node: Node, large: str) -> bool:
    """Whether a tree selects rows of tables other than the large one by their own columns."""
    parts = list(walk(node))
    return any(isinstance(part, Filter) for part in parts) and all(
        (isinstance(part, Scan) and part.source != large)
        or (isinstance(part, Project | Filter) and not part.subqueries)
        or (isinstance(part, Join) and part.kind == "inner")
        for part in parts
    )


class _Swap:
    """Replaces the join, and reads of the table for the same value, by scans of the auxiliary view."""

    def __init__(self, place: _Place) -> None:
        self.place = place
        self.names = {one.name: one.identifier for one in place.table.columns}
        self.looks_up = False

    def node(self, node: Node) -> Node:
        if node is self.place.join:
            scan = Scan(STATE, "state", own_names(node.output))
            return Filter(scan, self.place.own) if self.place.own else scan
        node = map_children(node, self.node)
        if isinstance(node, Project | Filter) and node.subqueries:
            return replace(node, subqueries=tuple(map(self._subquery, node.subqueries)))
        return node

    def _subquery(self, subquery: Subquery) -> Subquery:
        """The subquery over the auxiliary view: for a stored value, all rows are stored."""
        above: list[Filter] = []
        node = subquery.plan
        while isinstance(node, Filter) and not node.subqueries:
            above.append(node)
            node = node.child
        if not isinstance(node, Scan) or node.source != self.place.table.source:
            return subquery
        by = {one.identifier for one in node.columns if one.name == self.place.by}
        links = equalities(subquery.links, same_type=True)
        if not any(inside in by and outside in self.place.names for inside, outside in links):
            return subquery
        self.looks_up = True
        renamed = tuple(one._replace(name=self.names[one.name]) for one in node.columns)
        kept: Node = Scan(STATE, "state", renamed)
        for part in reversed(above):
            kept = replace(part, child=kept)
        return replace(subquery, plan=kept)


def _kept(query: Query, place: _Place, key: Sequence[str], around: Node) -> AuxiliaryView | None:
    names = {one.name: one.identifier for one in place.table.columns}
    read = {name for scan in scans(around) if scan.source == STATE for _, name in scan.columns}
    keyed = tuple(names[stored] for stored in key)
    shown = tuple(name for name in place.join.output if name in read.union(keyed))
    if any(name.startswith("_") for name in shown) or len({name.lower() for name in shown}) < len(shown):
        return None
    # The conditions on the table's own rows stay in the query, because lookups do not have them.
    join = replace(
        place.join,
        left=place.table if place.join.right is place.chosen else place.chosen,
        right=place.chosen if place.join.right is place.chosen else place.table,
    )
    counted = Aggregate(place.chosen, (), ((ROWS, exp.Count(this=exp.Star())),))
    state = prune_columns(Project(join, tuple((name, column(name)) for name in shown)))
    return AuxiliaryView(
        state, keyed, (), query.columns, around=around, size=RowsOfState(counted, place.source, MAX_SHARE)
    )


__all__ = ["find_reduced_view"]
