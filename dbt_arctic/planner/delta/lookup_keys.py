"""Lookup keys: marks the scans of which only the rows that match changed keys are needed.

Changed orders are joined with their line items, and affected orders are looked up in several models. A scan
of which only these rows are needed is marked (``Scan.lookup_keys``). The executor may then read less than the
table, or read once what several models need. Reading the whole table is right as well.
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
    KeySemiJoin,
    Limit,
    LookupKeys,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    map_children,
)
from dbt_arctic.planner.algebra.scalars import equalities, plain
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

_MAX_ROWS_PER_KEY = 100
"""The most rows per key, on average. A key that begins with a tenant matches too many rows."""
_MAX_KEYS = 2_000_000
"""The most changed keys that are broadcast."""
_MAX_CACHED_ROWS = 5_000_000
"""The most rows that are cached for several models."""


def with_lookup_keys(node: Node, facts: Facts, values: Mapping[str, Node] | None = None) -> Node:
    """The same query with each scan marked with the changed keys that it is looked up by.

    :param values: the queries of staged values, by the source that scans read them from.
    """
    return _Marking(facts, values or {}).marked(node)


class _Marking:
    def __init__(self, facts: Facts, values: Mapping[str, Node]) -> None:
        self.facts = facts
        self.values = values

    def marked(self, node: Node) -> Node:
        node = map_children(node, self.marked)
        if isinstance(node, KeySemiJoin):
            child = node.child
            for value, key in node.pairs:
                child = self._looked_up(child, plain(value), self._keys_of(node.keys, key))
            return replace(node, child=child)
        if not isinstance(node, Join):
            return node
        left, right = node.left, node.right
        for mine, theirs in equalities(node.conditions):
            if mine not in node.left.output or theirs not in node.right.output:
                continue
            if node.kind in ("inner", "left", "semi"):
                right = self._looked_up(right, theirs, self._keys_of(node.left, mine))
            if node.kind in ("inner", "right", "semi"):
                left = self._looked_up(left, mine, self._keys_of(node.right, theirs))
        return replace(node, left=left, right=right)

    def _keys_of(self, node: Node, name: str) -> LookupKeys:
        """The changed keys that contain all values of a column; empty if the column may have other values."""
        found = self._origins(node, name)
        if found is None or not all(self._is_logged_key(source, stored) for source, stored in found):
            return frozenset()
        return found

    def _is_logged_key(self, source: str, stored: str) -> bool:
        upstream = self.facts.upstreams.get(source)
        return upstream is not None and upstream.logged and stored in upstream.key

    def _origins(self, node: Node, name: str) -> LookupKeys | None:
        match node:
            case Scan():
                stored = node.stored[name]
                if node.source in self.values:
                    return self._origins(self.values[node.source], stored)
                return frozenset([KeyColumn(node.source, stored)]) if node.state in OF_CHANGES else None
            case KeySemiJoin():
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
                return conservative(
                    None, "its values are those of the left side, which no rule has needed so far"
                )
            case Values():
                return None  # Constants are not keys of changed rows.

    def _below(self, child: Node, value: exp.Expression | None) -> LookupKeys | None:
        below = None if value is None else plain(value)
        return None if below is None else self._origins(child, below)

    def _of_join(self, node: Join, name: str) -> LookupKeys | None:
        """The origins of a column of a join.

        A preserved side keeps its own values. In other joins, a column also has the origins of the columns
        that it equals.
        """
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

    def _of_inner(self, node: Join, own: Node, other: Node, name: str) -> LookupKeys | None:
        if node.kind not in ("inner", "semi"):
            return None
        same = [
            theirs for mine, theirs in equalities(node.conditions) if mine == name and theirs in other.output
        ]
        return self._any_of([(own, name), *((other, theirs) for theirs in same)])

    def _any_of(self, ways: list[tuple[Node, str]]) -> LookupKeys | None:
        return next((found for node, name in ways if (found := self._origins(node, name)) is not None), None)

    def _looked_up(self, node: Node, name: str | None, keys: LookupKeys) -> Node:
        """A query of which only the rows with some values of a column are needed."""
        if name is None or not keys:
            return node
        match node:
            case Scan():
                return self._scan(node, name, keys)
            case Filter() | KeySemiJoin():
                return replace(node, child=self._looked_up(node.child, name, keys))
            case Project():
                return replace(node, child=self._looked_up(node.child, plain(dict(node.items)[name]), keys))
            case Aggregate():
                group = dict(node.groups).get(name)
                if node.grouping_sets is not None or group is None:
                    return conservative(node, "a value of a group needs all rows of the group")
                return replace(node, child=self._looked_up(node.child, plain(group), keys))
            case UnionAll():
                place = node.columns.index(name)
                return replace(
                    node,
                    children=tuple(self._looked_up(one, one.output[place], keys) for one in node.children),
                )
            case Join():
                if name in node.left.output and node.kind in ("inner", "left", "semi"):
                    return replace(node, left=self._looked_up(node.left, name, keys))
                if name in node.right.output and node.kind in ("inner", "right"):
                    return replace(node, right=self._looked_up(node.right, name, keys))
                return conservative(
                    node, "fewer rows of the null-supplying side would change rows of the preserved side"
                )
            case Window() | Limit():
                return conservative(node, "fewer rows of the child would change the rest")
            case SetOperation() | Generate():
                return conservative(node, "they could pass the keys on, which no rule has needed so far")
            case Values():
                return node  # There is no table to read.

    def _scan(self, node: Scan, name: str, keys: LookupKeys) -> Scan:
        upstream, stored = self.facts.upstreams.get(node.source), node.stored[name]
        if upstream is None or node.lookup_keys or node.state not in ("new", "old"):
            return node
        if not (upstream.changed and upstream.logged and upstream.key[:1] == (stored,)):
            return node
        others = [(self.facts.upstreams[source], stored) for source, stored in keys]
        return replace(node, lookup_keys=keys) if have_few_rows(upstream, others) else node


def have_few_rows(upstream: UpstreamFacts, keys: Sequence[tuple[UpstreamFacts, str]]) -> bool:
    """Whether a key matches few rows, and all keys together not too many.

    :param keys: the upstream and the column of each key that is looked up by.
    """
    if upstream.key[1:]:
        # The number of rows per key follows from a table that has each key once.
        owners = [one.rows for one, stored in keys if one.key == (stored,) and one.rows]
        each = upstream.rows / min(owners) if owners and upstream.rows else _MAX_ROWS_PER_KEY + 1
    else:
        each = 1
    every = [upstream.changed_rows, *(one.changed_rows for one, _ in keys)]
    counts = [count for count in every if count is not None]
    if each > _MAX_ROWS_PER_KEY or len(counts) < len(every) or sum(counts) > _MAX_KEYS:
        return False
    return sum(counts) * max(1, each) <= _MAX_CACHED_ROWS


__all__ = ["have_few_rows", "with_lookup_keys"]
