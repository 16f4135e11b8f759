"""The history of a keyed table for display: time, kind, rows and version of each commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.auto.verification_log import Verified, recorded
from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import DamagedKeyedTable, VersionUnavailable
from dbt_arctic.keyed.adoption import PROPERTY_ADOPTED
from dbt_arctic.keyed.erasure import PROPERTY_ERASE
from dbt_arctic.keyed.idempotency_keys import PROPERTY_KEY, PROPERTY_KEYS
from dbt_arctic.keyed.log import (
    PROPERTY_MARKERS,
    PROPERTY_ROLLBACK,
    PROPERTY_RUN,
    PROPERTY_TXN,
    merged_by,
    rows_added,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.replay import PROPERTY_SETTLED
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Version
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.pairs import base_for
from dbt_arctic.maintenance.versions import list_savepoints
from dbt_arctic.store.state import load_keyed


@dataclass(frozen=True)
class Entry:
    """One commit.

    ``rows`` is the number of rows added to its side table, ``run`` the invocation and the model.

    :param version: the table as of this commit; ``None`` if it can no longer be read.
    :param verified: the verification of a refresh; ``None`` if it was not verified.
    """

    version: Version | None
    time_ms: int
    kind: str
    rows: int
    run: str
    savepoints: tuple[str, ...] = ()
    verified: Verified | None = None


def history(catalog: CatalogReader, name: Name) -> list[Entry]:
    """The commits of the current and the previous generation, newest first."""
    table = load_keyed(catalog, name)
    named: dict[tuple[int, int], list[str]] = {}
    for savepoint, version in sorted(list_savepoints(catalog, table).items()):
        named.setdefault((version.generation, version.change_snapshot), []).append(savepoint)
    numbers = [table.generation.number, *([table.previous.number] if table.previous else [])]
    entries: list[Entry] = []
    for number in numbers:
        try:
            generation = generation_of(catalog, table, number)
        except (VersionUnavailable, DamagedKeyedTable):
            if number == table.generation.number:
                raise
            continue  # the previous generation was removed or has invalid properties, so it cannot be read
        entries += timeline(generation, *load_sides(catalog, generation), named)
    return entries


def timeline(
    table: KeyedTable, base: TableState, change: TableState, named: Mapping[tuple[int, int], list[str]]
) -> list[Entry]:
    """The commits of one generation, newest first.

    :param named: savepoints by generation and change snapshot. They are listed with that snapshot's commit; a
        later compaction gives it another base, but the same rows.
    """
    bases, changes = base.history(), change.history()
    adopted_ms = max((c.timestamp_ms for c in bases if PROPERTY_ADOPTED in c.summary), default=0)
    built = bases[-1] if bases and bases[-1].parent_id is None and not adopted_ms else None
    commits = [
        *((commit, "change") for commit in changes),
        # The base was filled before the table became visible. The change table's first commit represents the
        # build.
        *((commit, "base") for commit in bases if commit is not built),
    ]
    # If two commits have the same time, the compaction is the later one.
    commits.sort(key=lambda entry: (entry[0].timestamp_ms, entry[1] == "base", entry[0].sequence_number))
    order = {commit.snapshot_id: place for place, commit in enumerate(reversed(bases))}
    verified = {one.snapshot: one for one in recorded(change.properties)}
    entries = []
    at = changes[-1].snapshot_id if changes else 0
    for commit, side in commits:
        at = commit.snapshot_id if side == "change" else at
        base_at = base_for(bases, changes, at)
        # The version as of exactly this commit, unless the logs contradict the order of the clocks.
        if side == "base" and base_at is not None and order[commit.snapshot_id] < order[base_at]:
            base_at = commit.snapshot_id
        version = None if base_at is None else Version(table.generation.number, at, base_at)
        kind = kind_of_base(commit) if side == "base" else kind_of_change(commit)
        if side == "base" and commit.timestamp_ms < adopted_ms and kind in ("manual", "carried on"):
            kind = "before adoption"
        if kind == "build" and adopted_ms:
            kind = "adoption"  # its only row is a marker
        source = built if built is not None and side == "change" and is_build(commit) else commit
        entries.append(
            Entry(
                version=version,
                time_ms=commit.timestamp_ms,
                kind=kind,
                rows=0 if kind == "adoption" else rows_added(source),
                run=commit.summary.get(PROPERTY_RUN, ""),
                savepoints=tuple(named.get((table.generation.number, at), ())) if side == "change" else (),
                verified=verified.get(commit.snapshot_id) if side == "change" else None,
            )
        )
    return entries[::-1]


def is_build(commit: Snapshot) -> bool:
    """Whether a commit to a change table represents a generation: a build, or a rollback that built one."""
    return commit.parent_id is None and PROPERTY_RUN in commit.summary


def kind_of_change(commit: Snapshot) -> str:
    """The kind of a commit to a change table."""
    summary = commit.summary
    if PROPERTY_ROLLBACK in summary:
        return f"rollback to {summary[PROPERTY_ROLLBACK]}"
    if PROPERTY_ERASE in summary:
        return "erasure"
    if PROPERTY_KEY in summary:
        return f"append {summary[PROPERTY_KEY]}"
    if PROPERTY_TXN in summary:
        return "pull" if PROPERTY_CONSUMED in summary else "upsert"
    if PROPERTY_MARKERS in summary:
        return "markers"
    if is_build(commit):
        return "build"
    if PROPERTY_CONSUMED in summary or PROPERTY_SETTLED in summary:
        return "carried on"  # copied from an expired commit
    if commit.operation == "delete":
        return "trim"
    return "rewrite" if commit.operation == "replace" else "manual"


def kind_of_base(commit: Snapshot) -> str:
    """The kind of a commit to a base table."""
    if PROPERTY_ERASE in commit.summary:
        return "erasure"
    if PROPERTY_ADOPTED in commit.summary:
        return "adoption"
    merged = merged_by(commit)
    if merged:
        return f"compaction of {len(merged)}"
    if PROPERTY_CONSUMED in commit.summary or PROPERTY_KEYS in commit.summary:
        return "carried on"  # the undo of an adoption was interrupted
    return "rewrite" if commit.operation == "replace" else "manual"
