"""Whether a query can be restricted to some keys without computing all of it."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.planner.algebra.operators import Filter, KeySemiJoin, Node, Project, Scan, own_names, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta.restriction import restricted


def restricts_a_scan(query: Query, key: Sequence[str]) -> bool:
    """Whether a condition on the key columns of the result reaches a table that the query reads.

    It does not reach one through a ``LIMIT``, or through a window over rows of several keys: all of the query
    is then computed, whatever the number of keys.
    """
    by_name = {one.name.lower(): one.identifier for one in query.columns}
    pairs = tuple((column(by_name[name.lower()]), name) for name in key)
    keys = Scan("", "keys", own_names(key))
    rows = restricted(query.node, pairs, keys)
    return any(isinstance(part, KeySemiJoin) and _is_of_table(part.child) for part in walk(rows))


def _is_of_table(node: Node) -> bool:
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Scan)


__all__ = ["restricts_a_scan"]
