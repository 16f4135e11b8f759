"""The facts that rules depend on: which upstreams changed, and what is known of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.operators import Filter, Node, Project, Scan, map_children, scans
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, reads_changed_time


@dataclass(frozen=True)
class UpstreamFacts:
    """The facts of one upstream.

    :param key: the columns that identify a row, by stored names; empty if unknown.
    :param rows: the approximate number of rows; ``None`` if unknown.
    :param changed_rows: the approximate number of changed rows; ``None`` if unknown.
    :param ranges: MIN and MAX of key columns over all changed rows, as SQL literals.
    :param logged: whether a change log contains the changes. Otherwise two states are compared.
    :param has_weights: whether one read returns the changed rows of both states with their weights.
    """

    changed: bool
    key: tuple[str, ...] = ()
    rows: int | None = None
    changed_rows: int | None = None
    ranges: Ranges = field(default_factory=dict)
    logged: bool = True
    has_weights: bool = False


@dataclass(frozen=True)
class Facts:
    """The facts of each upstream, by the name that scans give it.

    :param time_changed: whether the query depends on the time, which differs from that of the last refresh.
    :param result_rows: the number of rows of the result at the last refresh; ``None`` if unknown.
    :param scalars_changed: whether values of uncorrelated subqueries that conditions compare may differ from
        those of the last refresh. Otherwise guards prove that they are equal.
    """

    upstreams: Mapping[str, UpstreamFacts]
    time_changed: bool = False
    result_rows: int | None = None
    scalars_changed: bool = False

    def __post_init__(self) -> None:
        counts = (self.result_rows, *(one.changed_rows for one in self.upstreams.values()))
        assert all(count is None or count >= 0 for count in counts), "what is not known is None"

    def of(self, scan: Scan) -> UpstreamFacts:
        """The facts of the upstream that is scanned."""
        return self.upstreams[scan.source]

    def known_rows(self, scanned: Iterable[Scan]) -> int:
        """The total number of rows of some upstreams, as far as it is known."""
        return sum(self.of(scan).rows or 0 for scan in scanned)

    def changed(self, node: Node) -> bool:
        """Whether a relation that a query reads has changed, or the time that it depends on."""
        return any(self.of(scan).changed for scan in scans(node)) or (
            self.time_changed and reads_changed_time(node)
        )

    def before(self, node: Node) -> Node:
        """The same query over the old state.

        Unchanged upstreams are still read in the new state, so that equal parts of both states are
        recognized.
        """
        if isinstance(node, Scan):
            return replace(node, state="old") if self.of(node).changed else node
        made = map_children(node, self.before)
        if self.time_changed and isinstance(made, Filter):
            return replace(made, conditions=tuple(at_last_refresh(part) for part in made.conditions))
        if self.time_changed and isinstance(made, Project):
            return replace(made, items=tuple((name, at_last_refresh(value)) for name, value in made.items))
        return made
