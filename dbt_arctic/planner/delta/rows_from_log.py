"""Reads the rows of affected keys from the change log instead of the table, if the log has all of them.

The affected keys of a query may be exactly the keys of a table's changed rows. Then the rows that the query
needs of this table are the new versions of the changed rows. The log contains these, so the table is not
read: a changed order is joined with its customer without reading the other orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    OF_CHANGES,
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
    map_children,
    scans,
)
from dbt_arctic.planner.algebra.scalars import plain
from dbt_arctic.planner.properties.facts import Facts


class Origin(NamedTuple):
    """An upstream, and the stored columns that some values are from."""

    source: str
    columns: tuple[str, ...]


def with_logged_rows(rows: Node, affected: Node, keys: str, facts: Facts) -> Node:
    """The query over affected keys, with changed rows in place of tables where the result is the same.

    :param keys: the source by which ``rows`` reads the keys that ``affected`` computes.
    """
    found = origins(affected, affected.output)
    if found is None or len(found) != 1:
        return rows
    ((source, columns),) = found
    known = facts.upstreams[source]
    stored = dict(zip(affected.output, columns, strict=True))
    if not known.logged or not known.key or not set(known.key) <= set(columns):
        return rows

    def change(node: Node) -> Node:
        if isinstance(node, KeySemiJoin) and isinstance(node.child, Scan) and node.child.source == source:
            by_key = [scan.source for scan in scans(node.keys)] == [keys]
            if (
                by_key
                and node.child.state == "new"
                and set(known.key) <= _matched_columns(node, node.child, stored)
            ):
                rows = replace(node.child, state="plus")
                return rows if whole_log(affected) else replace(node, child=rows)
        return map_children(node, change)

    return change(rows)


def whole_log(affected: Node) -> Origin | None:
    """The upstream whose changed keys are all affected, whatever its rows contain.

    ``None`` if the query has conditions, or if keys of another origin are affected.
    """
    node = affected
    while isinstance(node, Aggregate | Project):
        if isinstance(node, Aggregate) and node.grouping_sets is not None:
            return None
        node = node.child
    found = origins(affected, affected.output) if isinstance(node, Scan) else None
    return next(iter(found)) if found and isinstance(node, Scan) and node.state == "keys" else None


def _matched_columns(node: KeySemiJoin, scan: Scan, stored: Mapping[str, str]) -> set[str]:
    """The stored columns of a scan that must equal the key's value of the same column."""
    names = scan.stored
    return {
        names[identifier]
        for value, key in node.pairs
        if (identifier := plain(value)) in names and names[identifier] == stored[key]
    }


def origins(node: Node, names: tuple[str, ...]) -> frozenset[Origin] | None:
    """The upstreams whose changed rows contain all values of these columns.

    ``None`` if the columns may have other values.
    """
    match node:
        case Scan():
            stored = node.stored
            of_changes = node.state in OF_CHANGES
            return (
                frozenset([Origin(node.source, tuple(stored[name] for name in names))])
                if of_changes
                else None
            )
        case Filter() | KeySemiJoin():
            return origins(node.child, names)
        case Project():
            return _below(node.child, names, dict(node.items))
        case Aggregate():
            if node.grouping_sets is not None:
                return conservative(None, "a group of a set that does not have the column is NULL there")
            return _below(node.child, names, dict(node.groups))
        case Join():
            if set(names) <= set(node.left.output) and node.kind in ("inner", "left", "semi"):
                return origins(node.left, names)
            if set(names) <= set(node.right.output) and node.kind == "inner":
                return origins(node.right, names)
            return None
        case UnionAll():
            found: frozenset[Origin] = frozenset()
            for child in node.children:
                own = dict(zip(node.columns, child.output, strict=True))
                part = origins(child, tuple(own[name] for name in names))
                if part is None:
                    return None
                found |= part
            return found
        case Values() | Window() | SetOperation() | Generate() | Limit():
            return conservative(None, "affected keys from it are looked up in the table")


def _below(
    child: Node, names: tuple[str, ...], items: Mapping[str, exp.Expression]
) -> frozenset[Origin] | None:
    """The origins of columns that are plain columns of the child."""
    below = tuple(plain(items[name]) if name in items else None for name in names)
    return None if None in below else origins(child, tuple(name for name in below if name is not None))
