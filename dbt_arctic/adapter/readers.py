"""Which models automatic models read, as dbt's graph tells it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.adapter.advice import is_automatic

_LOOKED_THROUGH = ("view", "ephemeral")


def read_by_automatic(nodes: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The ids of what automatic models read, themselves or through views and ephemeral models.

    :param nodes: of dbt's ``graph``, by id.
    """
    found: set[str] = set()
    open_ = [
        node
        for node in nodes.values()
        if node.get("resource_type") == "model" and is_automatic(node.get("config", {}))
    ]
    while open_:
        read = set(open_.pop().get("depends_on", {}).get("nodes", ())) - found
        found |= read
        below = [nodes[unique_id] for unique_id in read if unique_id in nodes]
        open_ += [node for node in below if node.get("config", {}).get("materialized") in _LOOKED_THROUGH]
    return frozenset(found)
