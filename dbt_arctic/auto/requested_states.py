"""The states of its upstreams that a refresh requests. Commits record them for later refreshes.

A model mostly requests the same states every time. So the first refresh of an invocation reads from
commits what the other refreshes will request.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, KeyColumn, Node, scans

PROPERTY_REQUESTED = "arctic.asked"
"""Property of a refresh's commit, JSON: a list of ``table``, ``columns``, and ``met_by``, the key columns
that look up its rows. A table is its schema and name, a column these and its own name. It is only written if
it differs from the newest recorded value."""


@dataclass
class RequestedStates:
    """What is requested of one upstream.

    :param lookup_keys: key columns of other upstreams, whose changed rows look up rows of this one.
    :param reads: whether something is needed that requires a read of the table.
    """

    columns: dict[str, None] = field(default_factory=dict)
    lookup_keys: set[KeyColumn] = field(default_factory=set)
    reads: bool = False


@dataclass(frozen=True)
class RecordedRequests:
    """The requested columns and lookup keys as a commit records them: by table names, sorted, unique."""

    columns: tuple[str, ...]
    lookup_keys: tuple[tuple[Name, str], ...] = ()

    def joined(self, other: RecordedRequests) -> RecordedRequests:
        """The requests of both."""
        return RecordedRequests(
            tuple(sorted({*self.columns, *other.columns})),
            tuple(sorted({*self.lookup_keys, *other.lookup_keys})),
        )


def requested_by(
    nodes: Iterable[Node], keys: Mapping[str, tuple[str, ...]], by_lookup: Collection[str]
) -> dict[str, RequestedStates]:
    """The states that queries request of upstreams.

    :param keys: the keys of these upstreams, by the names that scans give them; empty for one without a key.
    :param by_lookup: the upstreams that can be read by lookup keys.
    """
    found: dict[str, RequestedStates] = {}
    for scan in (scan for node in nodes for scan in scans(node)):
        if scan.source not in keys:  # For example affected values.
            continue
        lookup_keys = scan.lookup_keys if scan.source in by_lookup else frozenset()
        reads = bool(lookup_keys) or scan.state in ("minus", "changed", "weighted")
        reads |= scan.state == "plus" and not keys[scan.source]
        if reads or scan.state == "plus":
            requested = found.setdefault(scan.source, RequestedStates())
            stored = (column for _, column in scan.columns if column != SIGN_OF_ROW)
            requested.columns.update(dict.fromkeys(stored))
            requested.lookup_keys |= lookup_keys
            requested.reads |= reads
    return found


def recorded_by(nodes: Iterable[Node], inputs: ModelInputs) -> dict[Name, RecordedRequests]:
    """The requests of queries as a commit records them."""
    upstreams = inputs.upstreams
    keys = {source: one.key if one.is_keyed else () for source, one in upstreams.items()}
    requested = requested_by(nodes, keys, upstreams)
    return {
        upstreams[source].name: RecordedRequests(
            tuple(sorted(one.columns)),
            tuple(sorted((upstreams[other].name, column) for other, column in one.lookup_keys)),
        )
        for source, one in requested.items()
        if one.reads
    }


def recorded_in(history: Iterable[SnapshotLike], catalog: str) -> dict[Name, RecordedRequests]:
    """The newest recorded requests.

    :param history: the commits, newest first.
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
    requests: Mapping[Name, RecordedRequests], before: Mapping[Name, RecordedRequests] | None = None
) -> dict[str, str]:
    """The property of a commit: all requests so far, unless they are already recorded.

    :param before: the recorded requests; ``None`` if they are of another query.
    """
    every = dict(requests) if before is None else {**before}
    for name, one in requests.items() if before is not None else ():
        every[name] = every[name].joined(one) if name in every else one
    if every == (before or {}):
        return {}
    listed = [
        {
            "table": [name.schema, name.identifier],
            "columns": one.columns,
            "met_by": [[other.schema, other.identifier, column] for other, column in one.lookup_keys],
        }
        for name, one in sorted(every.items())
    ]
    return {PROPERTY_REQUESTED: json.dumps(listed, separators=(",", ":"))}
