"""What the rules may rely on: which upstreams changed, and what is known of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.planner.algebra import Node, Scan, scans


@dataclass(frozen=True)
class UpstreamFacts:
    """:param key: the columns that identify a row, as stored; empty where none are known."""

    changed: bool
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """Facts of every upstream, by the name that scans give it."""

    upstreams: Mapping[str, UpstreamFacts]

    def of(self, scan: Scan) -> UpstreamFacts:
        return self.upstreams[scan.source]

    def changed(self, node: Node) -> bool:
        """Whether anything that a query reads has changed."""
        return any(self.of(scan).changed for scan in scans(node))
