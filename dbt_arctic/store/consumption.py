"""The upstream versions that a write consumes. They are committed together with its rows, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import ConcurrentRun, VersionUnavailable
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import (
    PART,
    PROPERTY_CONSUMED,
    Consumed,
    Version,
    encode_consumed,
    is_token,
    of_relations,
)
from dbt_arctic.store.state import find_keyed, plain_id


def last_consumed(history: Sequence[Snapshot], model: str) -> dict[str, Consumed]:
    """The upstream versions that a model continues from.

    They are in the newest commit of its table that records any.

    :param history: the snapshots of the table, newest first.
    :raises VersionUnavailable: commits have expired, and none of the remaining ones records a version. If the
        model were treated as one that has never read its upstreams, it would miss the rows that they have
        lost.
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


def last_read(
    catalog: CatalogReader, upstream: Name, last_consumed: Mapping[str, Consumed]
) -> Consumed | None:
    """The version of an upstream that a model has consumed, even if the upstream was renamed since.

    ``None`` if there is none.
    """
    found = last_consumed.get(upstream.dotted)
    if found is not None or not last_consumed:
        return found
    table = find_keyed(catalog, upstream)
    if table is not None:
        ids = {made.change_id for made in (table.generation, table.previous) if made is not None}
    else:
        state = catalog.of(upstream).load_table(upstream.schema, upstream.identifier)
        ids = set() if state is None else {plain_id(state)}
    return next((one for one in last_consumed.values() if one.table_id in ids), None)


def not_before(last: Consumed | None, table_id: str, history: Sequence[Snapshot], now: Version) -> Version:
    """The version to read a keyed upstream at: the later of ``now`` and the last consumed one."""
    if last is not None and last.table_id == table_id and is_token(last.version):
        consumed = Version.parse(last.version)
        if has_read_further(history, consumed.change_snapshot, now.change_snapshot):
            return consumed
    return now


def has_read_further(history: Sequence[Snapshot], before: int, now: int) -> bool:
    """Whether a model has already consumed a later version of an upstream than the one it is to read.

    This happens with ``consistent_reads``, if another run started later but finished first. The rows that
    this version would add are then already consumed.

    :param history: the snapshots of the upstream, newest first.
    :param before: the snapshot that was last consumed.
    :param now: the snapshot that is to be read.
    """
    order = [snapshot.snapshot_id for snapshot in history]
    return before in order and now in order and order.index(before) < order.index(now)


@dataclass(frozen=True)
class Consumption:
    """The upstream versions that a write consumes.

    :param last_consumed: the versions that the last commit of the target had consumed when the SQL was
        generated.
    :param consumed: the versions that this write consumes, or the entry ``PART``; empty for a model that does
        not pull.
    :param forgets: whether to drop the entries of all other upstreams. Otherwise the entry of a relation that
        the model no longer reads would be kept and would prevent the expiry of its snapshots.
    """

    last_consumed: Mapping[str, Consumed] = field(default_factory=dict)
    consumed: Mapping[str, Consumed] = field(default_factory=dict)
    forgets: bool = False

    @property
    def is_part(self) -> bool:
        """Whether the write has a part of the rows of a pull, so that the next whole run must rebuild."""
        return PART in self.consumed

    @property
    def pulls(self) -> bool:
        """Whether the write consumes versions. A part consumes none, and without rows it changes nothing."""
        return bool(self.consumed) and not self.is_part

    def properties(self) -> dict[str, str]:
        """The properties of the commit that record the consumed versions."""
        return {PROPERTY_CONSUMED: encode_consumed(self.recorded())} if self.consumed else {}

    def recorded(self) -> dict[str, Consumed]:
        """The consumed versions that the commit records, those of earlier commits included."""
        # Rows of a pull do not belong to a query from which an automatic model could continue.
        kept = {} if self.forgets else of_relations(self.last_consumed)
        # An upstream that was read under a different name is the same table.
        read = {one.table_id for one in self.consumed.values()}
        kept = {name: one for name, one in kept.items() if one.table_id not in read}
        return {**kept, **self.consumed}

    def check(self, target: TableState, model: str, name: Name) -> None:
        """Check that no other run of the model has consumed these versions.

        :raises ConcurrentRun: another run of the model consumed the same changes first.
        """
        if self.pulls and consumed_versions(target.history()) != dict(self.last_consumed):
            raise ConcurrentRun(
                f"another run of the model committed to {name} first",
                where=model,
                why="it has already consumed the changes from which this run was computed",
                fix="nothing was written; run the model again to process the remaining changes",
            )
