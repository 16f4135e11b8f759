"""Reads that only need the rows which changed keys look up: an order's lines, where orders have changed.

Changed orders are joined with their line items, and affected orders are looked up, in one model after the
next. A scan of which only such rows are needed says so (``Scan.lookup_keys``). Whoever executes the plan may
then read less than the table, or read once what all models need. Reading the whole table is right, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    OF_CHANGES,
    Aggregate,
    Filter,
    Generate,
    Join,
    KeyColumn,
    Limit,
    MetBy,
    Node,
    Project,
    Restrict,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    map_children,
)
from dbt_arctic.planner.algebra.scalars import equalities, plain
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

_EVEN = 100
"""So many rows one key may meet on average: a key that begins with a tenant meets too many."""
_FEW = 2_000_000
"""Changed keys that are sent to each task."""
_MOST = 5_000_000
"""Rows that are kept for several models."""


def with_lookup_keys(node: Node, facts: Facts, values: Mapping[str, Node] | None = None) -> Node:
    """The same query, in which scans say of which changed keys they are asked.

    :param values: what staged values are made of, by the source that scans read them from.
    """
    return _Marking(facts, values or {}).marked(node)


class _Marking:
    def __init__(self, facts: Facts, values: Mapping[str, Node]) -> None:
        self.facts = facts
        self.values = values

    def marked(self, node: Node) -> Node:
        node = map_children(node, self.marked)
        if isinstance(node, Restrict):
            child = node.child
            for value, key in node.pairs:
                child = self._told(child, plain(value), self._keys_of(node.keys, key))
            return replace(node, child=child)
        if not isinstance(node, Join):
            return node
        left, right = node.left, node.right
        for mine, theirs in equalities(node.conditions):
            if mine not in node.left.output or theirs not in node.right.output:
                continue
            if node.kind in ("inner", "left", "semi"):
                right = self._told(right, theirs, self._keys_of(node.left, mine))
            if node.kind in ("inner", "right", "semi"):
                left = self._told(left, mine, self._keys_of(node.right, theirs))
        return replace(node, left=left, right=right)

    def _keys_of(self, node: Node, name: str) -> MetBy:
        """The keys of changed rows that all values of a column are from; none where they may be others."""
        found = self._origins(node, name)
        if found is None or not all(self._is_logged_key(source, stored) for source, stored in found):
            return frozenset()
        return found

    def _is_logged_key(self, source: str, stored: str) -> bool:
        upstream = self.facts.upstreams.get(source)
        return upstream is not None and upstream.logged and stored in upstream.key

    def _origins(self, node: Node, name: str) -> MetBy | None:
        match node:
            case Scan():
                stored = dict(node.columns)[name]
                if node.source in self.values:
                    return self._origins(self.values[node.source], stored)
                return frozenset([KeyColumn(node.source, stored)]) if node.state in OF_CHANGES else None
            case Restrict():
                paired = [key for value, key in node.pairs if plain(value) == name]
                return self._any_of([(node.child, name), *((node.keys, key) for key in paired)])
            case Project():
                return self._below(node.child, dict(node.items).get(name))
            case Aggregate():
                if node.grouping_sets is not None:
                    return conservative(None, "a group of a set that does not have the column is NULL there")
                return self._below(node.child, dict(node.groups).get(name))
            case Join():
                return self._of_join(node, name)
            case UnionAll():
                place = node.columns.index(name)
                parts = [self._origins(child, child.output[place]) for child in node.children]
                known = [part for part in parts if part is not None]
                return frozenset().union(*known) if len(known) == len(parts) else None
            case Filter() | Window() | Generate() | Limit():
                return self._origins(node.child, name) if name in node.child.output else None
            case SetOperation():
                return conservative(None, "its values are of the left side; nobody has asked for them yet")
            case Values():
                return None  # Constants are no keys of changed rows.

    def _below(self, child: Node, value: exp.Expression | None) -> MetBy | None:
        below = None if value is None else plain(value)
        return None if below is None else self._origins(child, below)

    def _of_join(self, node: Join, name: str) -> MetBy | None:
        """A side that is kept has values of its own; else a column has those that it equals as well."""
        left, right = node.left, node.right
        if name not in left.output:
            return (
                self._origins(right, name)
                if node.kind == "right"
                else self._of_inner(node, right, left, name)
            )
        if node.kind == "left":
            return self._origins(left, name)
        return self._of_inner(node, left, right, name)

    def _of_inner(self, node: Join, own: Node, other: Node, name: str) -> MetBy | None:
        if node.kind not in ("inner", "semi"):
            return None
        same = [
            theirs for mine, theirs in equalities(node.conditions) if mine == name and theirs in other.output
        ]
        return self._any_of([(own, name), *((other, theirs) for theirs in same)])

    def _any_of(self, ways: list[tuple[Node, str]]) -> MetBy | None:
        return next((found for node, name in ways if (found := self._origins(node, name)) is not None), None)

    def _told(self, node: Node, name: str | None, keys: MetBy) -> Node:
        """A query of which only rows with some values of a column are asked for."""
        if name is None or not keys:
            return node
        match node:
            case Scan():
                return self._scan(node, name, keys)
            case Filter() | Restrict():
                return replace(node, child=self._told(node.child, name, keys))
            case Project():
                return replace(node, child=self._told(node.child, plain(dict(node.items)[name]), keys))
            case Aggregate():
                group = dict(node.groups).get(name)
                if node.grouping_sets is not None or group is None:
                    return conservative(node, "a value of a group needs all rows of the group")
                return replace(node, child=self._told(node.child, plain(group), keys))
            case UnionAll():
                place = node.columns.index(name)
                return replace(
                    node, children=tuple(self._told(one, one.output[place], keys) for one in node.children)
                )
            case Join():
                if name in node.left.output and node.kind in ("inner", "left", "semi"):
                    return replace(node, left=self._told(node.left, name, keys))
                if name in node.right.output and node.kind in ("inner", "right"):
                    return replace(node, right=self._told(node.right, name, keys))
                return conservative(
                    node, "without rows of the null side there would be others of the kept side"
                )
            case Window() | Limit():
                return conservative(node, "fewer rows of the child would change the rest")
            case SetOperation() | Generate():
                return conservative(node, "they would pass it on; nobody has asked for them yet")
            case Values():
                return node  # There is no table to read less of.

    def _scan(self, node: Scan, name: str, keys: MetBy) -> Scan:
        upstream, stored = self.facts.upstreams.get(node.source), dict(node.columns)[name]
        if upstream is None or node.lookup_keys or node.state not in ("new", "old"):
            return node
        if not (upstream.changed and upstream.logged and upstream.key[:1] == (stored,)):
            return node
        others = [(self.facts.upstreams[source], stored) for source, stored in keys]
        return replace(node, lookup_keys=keys) if are_few(upstream, others) else node


def are_few(upstream: UpstreamFacts, keys: Sequence[tuple[UpstreamFacts, str]]) -> bool:
    """Whether a key meets few rows, and all of them together are not too many.

    :param keys: of the keys that meet rows: whose they are, and the column.
    """
    if upstream.key[1:]:
        # How many rows a key has, a table tells that has each key once.
        owners = [one.rows for one, stored in keys if one.key == (stored,) and one.rows]
        each = upstream.rows / min(owners) if owners and upstream.rows else _EVEN + 1
    else:
        each = 1
    every = [upstream.changed_rows, *(one.changed_rows for one, _ in keys)]
    counts = [count for count in every if count is not None]
    if each > _EVEN or len(counts) < len(every) or sum(counts) > _FEW:
        return False
    return sum(counts) * max(1, each) <= _MOST


__all__ = ["are_few", "with_lookup_keys"]
