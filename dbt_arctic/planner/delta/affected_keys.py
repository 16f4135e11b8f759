"""The affected keys of a query, by a rule for each operator. The rules are in ``rules``.

This is delta propagation (Blakeley et al. 1986) that may return more keys than have changed. Deleted rows are
joined with the old state of the other relations, not with the current one (Colby et al. 1996).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from dbt_arctic.planner.algebra.operators import Node, Project, Scan, UnionAll, map_children
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.properties.facts import Facts

Wanted = tuple[str, ...]


@dataclass(frozen=True)
class AffectedRows:
    """Rows that may differ, of the old state and of the new one. Each node outputs the wanted columns."""

    minus: tuple[Node, ...] = ()
    plus: tuple[Node, ...] = ()

    def both(self) -> tuple[Node, ...]:
        """The rows of both states. Nodes that differ only in the state of a changed scan are read once."""
        found: dict[Node, Node] = {}
        for node in (*self.minus, *self.plus):
            same = _whole_change(node)
            found[same] = same if same in found and found[same] != node else node
        return tuple(found.values())

    def map(self, change: Callable[[Node], Node]) -> AffectedRows:
        """Apply a change to the nodes of both states."""
        return AffectedRows(tuple(map(change, self.minus)), tuple(map(change, self.plus)))

    def __add__(self, other: AffectedRows) -> AffectedRows:
        return AffectedRows((*self.minus, *other.minus), (*self.plus, *other.plus))


def _whole_change(node: Node) -> Node:
    if isinstance(node, Scan):
        return replace(node, state="changed") if node.state in ("minus", "plus") else node
    return map_children(node, _whole_change)


NOTHING = AffectedRows()


def affected_rows(node: Node, wanted: Wanted, facts: Facts) -> AffectedRows:
    """The rows of ``node`` that may differ between the states, with the columns ``wanted``."""
    return affected_keys_rule(node, wanted, facts) if facts.changed(node) else NOTHING


@singledispatch
def affected_keys_rule(node: Node, wanted: Wanted, facts: Facts) -> AffectedRows:
    """The rule for an operator. Each module of ``rules`` registers its own."""
    raise NotImplementedError(f"no rule for {type(node).__name__}")


def only(node: Node, wanted: Sequence[str]) -> Node:
    """The node with these columns only, in this order."""
    if node.output == tuple(wanted):
        return node
    return Project(node, tuple((name, column(name)) for name in wanted))


def union_of(nodes: Iterable[Node], wanted: Sequence[str]) -> Node:
    """One node with the rows of all nodes."""
    parts = tuple(dict.fromkeys(only(node, wanted) for node in nodes))
    return parts[0] if len(parts) == 1 else UnionAll(parts, tuple(wanted))


def ordered(*names: Iterable[str]) -> Wanted:
    """Names in their first order, without repetition."""
    return tuple(dict.fromkeys(name for group in names for name in group))
