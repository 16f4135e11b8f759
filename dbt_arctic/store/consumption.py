"""The upstream versions that a write consumes. They are committed with its rows, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import ConcurrentRun, VersionUnavailable
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import (
    PROPERTY_CONSUMED,
    Consumed,
    Version,
    encode_consumed,
    is_token,
    of_relations,
)
from dbt_arctic.store.state import find_keyed, plain_id


def last_consumed(history: Sequence[Snapshot], model: str) -> dict[str, Consumed]:
    """The versions from which a model goes on: those of the newest commit of its table that tells of any.

    :param history: of the table, newest first.
    :raises VersionUnavailable: commits are gone, and none that is left tells of any. Were the model taken for
        one that has never read its upstreams, it would never learn of rows that they have lost.
    """
    found = consumed_versions(history)
    if not found and history and history[-1].parent_id is not None:
        raise VersionUnavailable(
            f"the upstream versions that {model} has read are no longer recorded",
            where=model,
            why="the snapshots that recorded them were expired by another tool than dbt-arctic expire; "
            "or the model has never pulled, and its log is incomplete",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    return found


def last_read(catalog: CatalogReader, upstream: Name, expected: Mapping[str, Consumed]) -> Consumed | None:
    """What a model has consumed of an upstream, also if that had another name then; ``None`` for nothing."""
    found = expected.get(upstream.dotted)
    if found is not None or not expected:
        return found
    table = find_keyed(catalog, upstream)
    if table is not None:
        ids = {made.change_id for made in (table.generation, table.previous) if made is not None}
    else:
        state = catalog.load_table(upstream.schema, upstream.identifier)
        ids = set() if state is None else {plain_id(state)}
    return next((one for one in expected.values() if one.table_id in ids), None)


def not_before(last: Consumed | None, table_id: str, history: Sequence[Snapshot], now: Version) -> Version:
    """The version to read a keyed upstream at: ``now``, or what was consumed last where that is further."""
    if last is not None and last.table_id == table_id and is_token(last.version):
        consumed = Version.parse(last.version)
        if has_read_further(history, consumed.change_snapshot, now.change_snapshot):
            return consumed
    return now


def has_read_further(history: Sequence[Snapshot], before: int, now: int) -> bool:
    """Whether an upstream was consumed further than it is to be read: with ``consistent_reads`` by a run that
    began later than this one, and was faster. What it has read is read then, and has not changed.

    :param history: of the upstream, newest first.
    :param before: the snapshot that was consumed last. :param now: the one that is to be read.
    """
    order = [snapshot.snapshot_id for snapshot in history]
    return before in order and now in order and order.index(before) < order.index(now)


@dataclass(frozen=True)
class Consumption:
    """The upstream versions that a write consumes.

    :param expected: what the target's last commit had consumed when the SQL was made.
    :param consumed: what this write consumes; empty for a model that does not pull.
    :param forgets: whether the model has to do with nothing else any more. What it had consumed of a relation
        that it reads no longer would be kept for it, and hold back what may be expired.
    """

    expected: Mapping[str, Consumed] = field(default_factory=dict)
    consumed: Mapping[str, Consumed] = field(default_factory=dict)
    forgets: bool = False

    def properties(self) -> dict[str, str]:
        """What the commit says of it."""
        if not self.consumed:
            return {}
        # Rows of a pull are of no query that an automatic model could go on from.
        kept = {} if self.forgets else of_relations(self.expected)
        # What was read under another name before is the same table.
        read = {one.table_id for one in self.consumed.values()}
        kept = {name: one for name, one in kept.items() if one.table_id not in read}
        return {PROPERTY_CONSUMED: encode_consumed({**kept, **self.consumed})}

    def check(self, target: TableState, model: str, name: Name) -> None:
        """Check that no other run of the model has consumed these versions.

        :raises ConcurrentRun: another run of the model consumed the same changes first.
        """
        if self.consumed and consumed_versions(target.history()) != dict(self.expected):
            raise ConcurrentRun(
                f"another run of the model committed to {name} first",
                where=model,
                why="it has already consumed the changes from which this run was computed",
                fix="nothing was written; run the model again to process the remaining changes",
            )
