"""Which models automatic models read, as dbt's graph tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt_arctic.adapter.advice import is_automatic

_LOOKED_THROUGH = ("view", "ephemeral")


def read_by_automatic(nodes: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """The ids of what automatic models read, themselves or through views and ephemeral models.

    :param nodes: of dbt's ``graph``, by id.
    """
    found: set[str] = set()
    for node in nodes.values():
        if node.get("resource_type") == "model" and is_automatic(node.get("config", {})):
            found.update(_read(node, nodes))
    return frozenset(found)


def _read(node: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for unique_id in node.get("depends_on", {}).get("nodes", ()):
        yield unique_id
        below = nodes.get(unique_id)
        if below is not None and below.get("config", {}).get("materialized") in _LOOKED_THROUGH:
            yield from _read(below, nodes)
