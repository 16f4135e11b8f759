"""Which states of its upstreams a refresh reads. Commits record it for later refreshes.

A model mostly asks for the same every time. So what its commits say of it tells the first refresh of an
invocation what the others will ask for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dbt_arctic.auto.inputs import Reading, understood
from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, Node, scans
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_sums
from dbt_arctic.planner.delta.plan import plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.refresh.config import KeyedConfig

PROPERTY_REQUESTED = "arctic.asked"
"""On a refresh's commit, JSON: a list of ``table``, ``columns``, and ``met_by``, the columns with the keys
that look up rows of it. Tables are schema and name, columns these and their own. Written only where it
differs from what the newest commit before says."""


@dataclass
class RequestedStates:
    """What is read of one upstream.

    :param lookup_keys: key columns of other upstreams, whose changed rows look up rows of this one.
    :param reads: whether something is needed that only a read of the table tells.
    """

    columns: dict[str, None] = field(default_factory=dict)
    lookup_keys: set[tuple[str, str]] = field(default_factory=set)
    reads: bool = False


@dataclass(frozen=True)
class RecordedRequests:
    """The same by the names of tables, as a commit says it: sorted, without repetitions."""

    columns: tuple[str, ...]
    lookup_keys: tuple[tuple[Name, str], ...] = ()

    def joined(self, other: RecordedRequests) -> RecordedRequests:
        return RecordedRequests(
            tuple(sorted({*self.columns, *other.columns})),
            tuple(sorted({*self.lookup_keys, *other.lookup_keys})),
        )


def requested_by(
    nodes: Iterable[Node], keys: Mapping[str, tuple[str, ...]], meet: Collection[str]
) -> dict[str, RequestedStates]:
    """What queries ask of upstreams.

    :param keys: of these upstreams, by the names that scans give them; empty for one without a key.
    :param meet: those of them that can be asked for the rows that keys meet.
    """
    found: dict[str, RequestedStates] = {}
    for scan in (scan for node in nodes for scan in scans(node)):
        if scan.source not in keys:  # touched values, for instance
            continue
        lookup_keys = scan.lookup_keys if scan.source in meet else frozenset()
        reads = bool(lookup_keys) or scan.state in ("minus", "changed", "signed")
        reads |= scan.state == "plus" and not keys[scan.source]
        if reads or scan.state == "plus":
            asked = found.setdefault(scan.source, RequestedStates())
            stored = (column for _, column in scan.columns if column != SIGN_OF_ROW)
            asked.columns.update(dict.fromkeys(stored))
            asked.lookup_keys |= lookup_keys
            asked.reads |= reads
    return found


def recorded_by(nodes: Iterable[Node], reading: Reading) -> dict[Name, RecordedRequests]:
    """What a commit says of the queries that it was computed by."""
    upstreams = reading.upstreams
    asked = requested_by(nodes, {source: one.key for source, one in upstreams.items()}, upstreams)
    return {
        upstreams[source].name: RecordedRequests(
            tuple(sorted(one.columns)),
            tuple(sorted((upstreams[other].name, column) for other, column in one.lookup_keys)),
        )
        for source, one in asked.items()
        if one.reads
    }


def will_request(reading: Reading, config: KeyedConfig) -> dict[Name, RecordedRequests]:
    """What the refreshes of a model will ask for that is built, if all its upstreams change by a little.
    Nothing where it cannot be read, or too much at once cannot be followed: what its refreshes ask for, these
    will say.
    """
    if reading.tree is None:
        return {}
    facts = Facts(
        {
            source: UpstreamFacts(True, one.key, one.rows, 0, logged=bool(one.key), signed=True)
            for source, one in reading.upstreams.items()
        }
    )
    try:
        # What it is told of the time decides nothing here.
        query = understood(replace(reading, last=reading.now), None)
        sums = plan_sums(query, config.unique_key, facts, config.accept)
        if sums is not None:
            return recorded_by(sums.nodes, reading)
        made = plan_incremental(query, config.unique_key, facts, config.accept)
    except CannotPlan:
        return {}
    return recorded_by([node for node in (made.affected, made.rows) if node is not None], reading)


def recorded_in(history: Iterable[SnapshotLike], catalog: str) -> dict[Name, RecordedRequests]:
    """What the newest commit says that says anything.

    :param history: newest first.
    """
    text = next(
        (one.summary[PROPERTY_REQUESTED] for one in history if PROPERTY_REQUESTED in one.summary), "[]"
    )
    return {
        Name(catalog, *one["table"]): RecordedRequests(
            tuple(one["columns"]),
            tuple((Name(catalog, schema, table), column) for schema, table, column in one["met_by"]),
        )
        for one in json.loads(text)
    }


def record_requests(
    told: Mapping[Name, RecordedRequests], before: Mapping[Name, RecordedRequests] | None = None
) -> dict[str, str]:
    """What a commit says: all that was ever asked for, unless that is said already.

    :param before: what is said; ``None`` where that is of another query.
    """
    every = dict(told) if before is None else {**before}
    for name, one in told.items() if before is not None else ():
        every[name] = every[name].joined(one) if name in every else one
    if every == (before or {}):
        return {}
    said = [
        {
            "table": [name.schema, name.identifier],
            "columns": one.columns,
            "met_by": [[other.schema, other.identifier, column] for other, column in one.lookup_keys],
        }
        for name, one in sorted(every.items())
    ]
    return {PROPERTY_REQUESTED: json.dumps(said, separators=(",", ":"))}
