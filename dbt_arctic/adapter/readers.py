"""The models that automatic models read, and the readers of a relation, from dbt's graph. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.materializations import is_automatic

_LOOKED_THROUGH = ("view", "ephemeral")


Nodes = Mapping[str, Mapping[str, Any]]
"""Nodes of dbt's ``graph`` by id."""


def read_by_automatic(nodes: Nodes) -> frozenset[str]:
    """The ids of the nodes that automatic models read, directly or through views and ephemeral models."""
    return frozenset().union(*(_read_by(node, nodes) for node in nodes.values() if _is_automatic(node)))


def automatic_readers(nodes: Nodes, sources: Nodes, selected: Collection[str]) -> dict[str, list[Name]]:
    """The automatic models that read a relation, by the relation's full name in lower case.

    :param selected: the ids of the selected nodes.
    """
    found: dict[str, list[Name]] = {}
    for unique_id, node in nodes.items():
        if unique_id in selected and _is_automatic(node):
            for read in sorted(_read_by(node, nodes)):
                one = nodes.get(read) or sources.get(read)
                if one is not None:
                    found.setdefault(_name(one).dotted.lower(), []).append(_name(node))
    return found


def readers(nodes: Nodes, ids: Collection[str]) -> list[str]:
    """The ids of the models and snapshots that read nodes or sources, also through ephemeral models."""
    found: dict[str, None] = {}
    read = set(ids)
    while read:
        through = set()
        for unique_id, node in nodes.items():
            if not read.intersection((node.get("depends_on") or {}).get("nodes") or ()):
                continue
            if (node.get("config") or {}).get("materialized") == "ephemeral":
                through.add(unique_id)
            elif node.get("resource_type") in ("model", "snapshot"):
                found[unique_id] = None
        read = through
    return list(found)


def _is_automatic(node: Mapping[str, Any]) -> bool:
    return node.get("resource_type") == "model" and is_automatic(node.get("config", {}))


def _name(node: Mapping[str, Any]) -> Name:
    identifier = node.get("identifier") or node.get("alias") or node.get("name")
    return Name(str(node.get("database")), str(node.get("schema")), str(identifier))


def _read_by(node: Mapping[str, Any], nodes: Nodes) -> set[str]:
    found: set[str] = set()
    open_ = [node]
    while open_:
        read = set(open_.pop().get("depends_on", {}).get("nodes", ())) - found
        found |= read
        below = [nodes[unique_id] for unique_id in read if unique_id in nodes]
        open_ += [one for one in below if one.get("config", {}).get("materialized") in _LOOKED_THROUGH]
    return found
