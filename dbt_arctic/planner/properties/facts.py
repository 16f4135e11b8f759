"""What the rules may rely on: which upstreams changed, and what is known of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.operators import Filter, Node, Scan, map_children, scans
from dbt_arctic.planner.frontend.point_in_time import before, has_moved


@dataclass(frozen=True)
class UpstreamFacts:
    """What is known of one upstream.

    :param key: the columns that identify a row, as stored; empty where none are known.
    :param rows: about how many. :param changed_rows: of these; ``None``: not known, as of ``rows``.
    :param ranges: between which values, as SQL literals, key columns of all changed rows lie.
    :param logged: whether a log tells what changed; else two states are compared to find it.
    :param signed: whether one read gives the rows of both states that changed, with their signs.
    """

    changed: bool
    key: tuple[str, ...] = ()
    rows: int | None = None
    changed_rows: int | None = None
    ranges: Ranges = field(default_factory=dict)
    logged: bool = True
    signed: bool = False


@dataclass(frozen=True)
class Facts:
    """Facts of every upstream, by the name that scans give it.

    :param time_moved: whether the query asks for the time, and it is another one than at the last refresh.
    :param result_rows: that the query had at its last refresh; ``None``: not known.
    """

    upstreams: Mapping[str, UpstreamFacts]
    time_moved: bool = False
    result_rows: int | None = None

    def __post_init__(self) -> None:
        counts = (self.result_rows, *(one.changed_rows for one in self.upstreams.values()))
        assert all(count is None or count >= 0 for count in counts), "what is not known is None"

    def of(self, scan: Scan) -> UpstreamFacts:
        return self.upstreams[scan.source]

    def known_rows(self, scanned: Iterable[Scan]) -> int:
        """The rows of these upstreams together, as far as they are known."""
        return sum(self.of(scan).rows or 0 for scan in scanned)

    def changed(self, node: Node) -> bool:
        """Whether anything that a query reads has changed, or the time that it asks for."""
        return any(self.of(scan).changed for scan in scans(node)) or (self.time_moved and has_moved(node))

    def before(self, node: Node) -> Node:
        """The same query over the old state. What has not changed is read as it is, so that a part of a
        query that is the same in both states is seen to be.
        """
        if isinstance(node, Scan):
            return replace(node, state="old") if self.of(node).changed else node
        made = map_children(node, self.before)
        if self.time_moved and isinstance(made, Filter):
            return replace(made, conditions=tuple(before(part) for part in made.conditions))
        return made
