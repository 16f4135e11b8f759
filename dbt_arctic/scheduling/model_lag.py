"""How late a model is, and which upstream makes it late. Values only: reads neither a catalog nor a clock.

A model is late since the oldest change that it does not contain. Such a change waits in an upstream that the
model reads, or further up, in an upstream of a model that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.version import PROPERTY_CONSUMED
from dbt_arctic.sources.unread import NO_POSITIONS, Positions, RefreshSize, Unit, Unread

NOT_BUILT = "it is not built yet"
NO_VERSIONS = "it records no versions of what it reads"


@dataclass(frozen=True)
class PendingUpstream:
    """What a model has not consumed of one upstream.

    :param upstream: the name of the model, or of the source as ``source.table``.
    :param since_ms: since when the oldest part has been waiting; ``None`` if nothing has.
    :param rows: the rows that the commits have written; ``None`` if unknown.
    :param problem: why this is unknown, or why the next run would fail; else empty.
    :param full_refresh: ``None`` if it is not known.
    """

    upstream: str
    unit: Unit
    count: int = 0
    since_ms: int | None = None
    rows: int | None = None
    size_bytes: int | None = None
    problem: str = ""
    positions: Positions = NO_POSITIONS
    full_refresh: RefreshSize | None = None


@dataclass(frozen=True)
class ModelLag:
    """What one model has not consumed of the upstreams that it reads.

    :param problem: why its lag is unknown: ``NOT_BUILT`` or ``NO_VERSIONS``; else empty.
    :param unknown: the models that it reads, directly or indirectly, whose own lag is unknown.
    """

    model: str
    waiting: tuple[PendingUpstream, ...] = ()
    problem: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class LagCause:
    """What makes a model late.

    :param because_of: the oldest change that the model does not contain, in the upstream where it waits.
    :param through: the models between that upstream and this model, beginning at the upstream.
    """

    because_of: PendingUpstream
    through: tuple[str, ...] = ()

    @property
    def since_ms(self) -> int:
        """Since when the change has been waiting."""
        assert self.because_of.since_ms is not None
        return self.because_of.since_ms


def waiting_for(lag: Lag, upstream: str, full_refresh: RefreshSize | None = None) -> PendingUpstream:
    """What a model has not consumed of a table of the catalog."""
    positions, commits = Positions(lag.read, lag.end), lag.commits
    return PendingUpstream(
        upstream, "commit", commits, lag.since_ms, lag.rows, None, lag.lost, positions, full_refresh
    )


def waiting_outside(unread: Unread) -> PendingUpstream:
    """What a model has not read of a source outside the catalog."""
    return PendingUpstream(
        unread.source,
        unread.unit,
        unread.count,
        unread.since_ms,
        unread.count if unread.unit in ("message", "row", "change") else None,
        unread.size_bytes,
        unread.problem,
        unread.positions,
        unread.full_refresh,
    )


def late_models(lags: Sequence[ModelLag], reads: Mapping[str, Sequence[str]]) -> dict[str, LagCause]:
    """The models that are late, and why.

    :param lags: by the order of the graph: a model after those that it reads.
    :param reads: the models that each one reads, directly or through views.
    """
    found: dict[str, LagCause] = {}
    for lag in lags:
        direct = [LagCause(one) for one in lag.waiting if one.since_ms is not None]
        through = [
            LagCause(found[other].because_of, (*found[other].through, other))
            for other in reads.get(lag.model, ())
            if other in found
        ]
        oldest = min((*direct, *through), key=lambda late: late.since_ms, default=None)
        if oldest is not None:
            found[lag.model] = oldest
    return found


def problems_of(lag: ModelLag) -> list[str]:
    """Why the lag of a model is unknown, or why its next run would fail."""
    own = [lag.problem] if lag.problem else []
    own += [f"{one.upstream}: {one.problem}" for one in lag.waiting if one.problem]
    return own + [f"{one}: its own lag is unknown" for one in lag.unknown]


def with_unknown_upstreams(lags: Sequence[ModelLag], reads: Mapping[str, Sequence[str]]) -> list[ModelLag]:
    """The lags with the upstream models whose lag is unknown, because changes may wait there.

    The parameters are those of ``late_models``.
    """
    found: dict[str, ModelLag] = {}
    for lag in lags:
        upstream = [found[other] for other in reads.get(lag.model, ()) if other in found]
        unknown = dict.fromkeys(
            name
            for one in upstream
            for name in ([one.model] if problems_of(replace(one, unknown=())) else one.unknown)
        )
        found[lag.model] = replace(lag, unknown=tuple(unknown))
    return list(found.values())


def consumed_at_ms(history: Sequence[Snapshot], upstream: str) -> int | None:
    """The time of the commit that consumed the version of an upstream which the newest commit records.

    Later commits, as those of a compaction, repeat the record.

    :param history: newest first.
    :param upstream: the dotted name.
    :returns: ``None`` if the newest commit records none.
    """
    newest, found = None, None
    for snapshot in history:
        if PROPERTY_CONSUMED not in snapshot.summary:
            continue
        one = consumed_versions([snapshot]).get(upstream)
        if one is None or (newest is not None and one != newest):
            break
        newest, found = one, snapshot.timestamp_ms
    return found


__all__ = [
    "NOT_BUILT",
    "NO_VERSIONS",
    "LagCause",
    "ModelLag",
    "PendingUpstream",
    "consumed_at_ms",
    "late_models",
    "problems_of",
    "waiting_for",
    "waiting_outside",
    "with_unknown_upstreams",
]
