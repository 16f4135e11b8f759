"""The provenance of one row of a keyed table.

It consists of the commits that wrote it, what their runs had read, and the consumers that have read it since.

Reads the rows of the key in one statement for each generation, and everything else from metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import CatalogReader, Snapshot
from dbt_arctic.errors import DamagedKeyedTable, VersionUnavailable
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK, PROPERTY_TXN, carried_log, consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.row_versions import SideSnapshot, complete_snapshots, rows_of_key
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Version, is_token, of_relations
from dbt_arctic.maintenance.consumers import Consumer, find_consumers
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.key_values import check_key, condition_of, parse_key
from dbt_arctic.maintenance.pairs import base_for
from dbt_arctic.maintenance.row_change import MANUAL, RowChange, StoredRow, TypedValues, Values
from dbt_arctic.maintenance.row_history import GenerationLog, current_row, explain
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import columns_at, load_keyed

SNAPSHOTS_A_STATEMENT = 40
_SYSTEM_COLUMNS = 5


@dataclass(frozen=True)
class Read:
    """What a run read of one upstream: the changes after ``before`` up to ``to``.

    :param before: the version that the model had read before; ``None`` for all rows.
    """

    upstream: str
    before: str | None
    to: str


@dataclass(frozen=True)
class Step:
    """One commit that wrote the row.

    :param generation: the generation that it belongs to.
    :param version: the table as of this commit; ``None`` if it can no longer be read.
    :param read: what its run consumed; empty if the run recorded nothing.
    """

    change: RowChange
    generation: int
    version: Version | None
    read: tuple[Read, ...]


@dataclass(frozen=True)
class Feed:
    """A table that reads from this one.

    :param version: the version that it last read; ``None`` if it records none.
    :param time_ms: when that version was committed.
    :param has_read: whether it has read the last change of the row; ``None`` if unknown.
    :param why: why it is unknown, or what kind of a reader it is.
    """

    name: str
    version: str | None
    time_ms: int | None
    has_read: bool | None
    why: str = ""


@dataclass(frozen=True)
class Gap:
    """A generation whose history is not complete.

    :param since_ms: the time since which it is complete; ``None`` if nothing of it is known.
    """

    generation: int
    since_ms: int | None
    why: str


@dataclass(frozen=True)
class Provenance:
    """The history of a row, newest commit first.

    :param row: the row now; ``None`` if there is none.
    :param types: the Spark types of the columns.
    :param incomplete: what is no longer recorded; empty if the history is complete.
    """

    table: KeyedTable
    key: Mapping[str, str]
    row: Values | None
    types: Mapping[str, str]
    steps: tuple[Step, ...]
    feeds: tuple[Feed, ...]
    incomplete: tuple[Gap, ...]


def explain_row(context: Context, name: Name, texts: Sequence[str], others: Sequence[str] = ()) -> Provenance:
    """The provenance of the row with a key.

    :param texts: the key, see ``parse_key``.
    :param others: further tables and views that read this one, according to the project.
    :raises ConfigError: the key is not one of the table.
    :raises UnknownRelation: the table is not a keyed table.
    """
    table = load_keyed(context.catalog, name).comparable
    key = parse_key(table, texts)
    previous, gaps = _previous(context.catalog, table)
    generations = check_key(context.query, [table, *previous], key)
    found: list[Step] = []
    before: tuple[Values | None] | None = None
    row: Values | None = None
    # The previous generation comes first, unless a full refresh was undone.
    history: Sequence[Snapshot] = ()
    for one in sorted(generations, key=lambda made: made.generation.number):
        log = _log_of(context, one, key)
        history = log.changes if one is table else history
        is_newer = one is not table and one.generation.number > table.generation.number
        changes = explain(log, None if is_newer else before)
        found += [_step(one, log, change) for change in changes]
        row = current_row(log) if one is table else row
        before = (current_row(log),)
        gaps += _gap(one, log)
    feeds = _feeds(context.catalog, table, history, found, others)
    return Provenance(table, key, row, table.types, tuple(found[::-1]), tuple(feeds), tuple(gaps))


def _previous(catalog: CatalogReader, table: KeyedTable) -> tuple[list[KeyedTable], list[Gap]]:
    if table.previous is None:
        return [], []
    number = table.previous.number
    try:
        found = generation_of(catalog, table, number).comparable
    except (VersionUnavailable, DamagedKeyedTable):
        return [], [Gap(number, None, "it no longer exists")]
    if set(found.key) != set(table.key):
        return [], [Gap(number, None, f"its key was {', '.join(found.key)}")]
    return [found], []


def _log_of(context: Context, table: KeyedTable, key: Mapping[str, str]) -> GenerationLog:
    base, change = load_sides(context.catalog, table)
    log = GenerationLog(base.history(), change.history(), sequence_by=table.sequence_by)
    snapshots = [
        *(SideSnapshot(True, one) for one in complete_snapshots(log.changes)),
        *(SideSnapshot(False, one) for one in log.snapshots_of_base()),
    ]
    rows: list[StoredRow] = []
    for at in range(0, len(snapshots), SNAPSHOTS_A_STATEMENT):
        rows += _rows(context, table, snapshots[at : at + SNAPSHOTS_A_STATEMENT], key)
    return replace(log, rows=rows)


def _rows(
    context: Context, table: KeyedTable, snapshots: Sequence[SideSnapshot], key: Mapping[str, str]
) -> Iterator[StoredRow]:
    changes, bases = (
        tuple(one.snapshot_id for one in snapshots if one.is_change is side) for side in (True, False)
    )
    known = {
        **columns_at(context.catalog, table.change, changes),
        **columns_at(context.catalog, table.base, bases),
    }
    for row in context.query(rows_of_key(table, snapshots, condition_of(table, key), known)):
        place, txn, offset, action, sequence = row[:_SYSTEM_COLUMNS]
        one = snapshots[int(place)]
        values = dict(zip(table.column_names, row[_SYSTEM_COLUMNS:], strict=True))
        typed = TypedValues(values, table.types)
        yield StoredRow(one.is_change, one.snapshot_id, txn, offset, action, int(sequence or 0), typed)


def _step(table: KeyedTable, log: GenerationLog, change: RowChange) -> Step:
    number = table.generation.number
    commit = change.commit
    if commit is None:
        return Step(change, number, None, ())
    if change.is_base:
        # The version with the newest change that this base has merged is unknown, if that commit has expired.
        return Step(change, number, None, ())
    base = base_for(log.bases, log.changes, commit.snapshot_id)
    version = None if base is None else Version(number, commit.snapshot_id, base)
    return Step(change, number, version, _read(log.changes, commit))


def _read(history: Sequence[Snapshot], commit: Snapshot) -> tuple[Read, ...]:
    """What the run of a commit consumed: the upstreams with changes, or all if none had any."""
    if PROPERTY_CONSUMED not in commit.summary or PROPERTY_ROLLBACK in commit.summary:
        return ()
    place = next(at for at, one in enumerate(history) if one.snapshot_id == commit.snapshot_id)
    now = of_relations(consumed_versions([commit]))
    last = of_relations(consumed_versions(history[place + 1 :]))
    found = []
    for upstream, one in sorted(now.items()):
        then = last.get(upstream)
        is_same_table = then is not None and then.table_id == one.table_id
        found.append(
            Read(upstream, then.version if then is not None and is_same_table else None, one.version)
        )
    return tuple(one for one in found if one.before != one.to) or tuple(found)


def _gap(table: KeyedTable, log: GenerationLog) -> Iterator[Gap]:
    if not log.is_whole:
        why = "earlier commits have expired, and compaction has merged their rows"
        yield Gap(table.generation.number, log.origin.timestamp_ms, why)


def _feeds(
    catalog: CatalogReader,
    table: KeyedTable,
    history: Sequence[Snapshot],
    steps: Sequence[Step],
    others: Sequence[str],
) -> Iterator[Feed]:
    last = next((one for one in reversed(steps) if one.generation == table.generation.number), None)
    consumers = find_consumers(catalog, table)
    for consumer in consumers:
        yield _feed(table, history, last, consumer)
    recorded = {consumer.name for consumer in consumers}
    for name in others:
        if name not in recorded:
            yield Feed(name, None, None, None, "reads the current rows and records no version")


def _feed(table: KeyedTable, history: Sequence[Snapshot], last: Step | None, consumer: Consumer) -> Feed:
    if consumer.is_clone:
        return Feed(consumer.name, None, None, None, "a clone, which shows the current rows")
    if consumer.consumed is None:
        return Feed(consumer.name, None, None, None, consumer.why)
    version = consumer.consumed.version
    if consumer.consumed.table_id != table.generation.change_id or not is_token(version):
        return Feed(consumer.name, version, None, False, "read before the last full refresh or adoption")
    log = [(one.snapshot_id, int(one.summary.get(PROPERTY_TXN, "0"))) for one in history]
    log += carried_log(history)
    order = [snapshot_id for snapshot_id, _ in log]
    snapshot = Version.parse(version).change_snapshot
    if snapshot not in order:
        return Feed(consumer.name, version, None, None, "the version that it read has expired")
    place = order.index(snapshot)
    time_ms = history[place].timestamp_ms if place < len(history) else None
    if last is None:
        return Feed(consumer.name, version, time_ms, None, "no commit of this row is recorded")
    change = last.change
    if change.kind == MANUAL:
        why = "another program wrote it, and a pull does not read such changes"
        return Feed(consumer.name, version, time_ms, None, why)
    if change.commit is not None and not change.is_base:
        return Feed(consumer.name, version, time_ms, place <= order.index(change.commit.snapshot_id))
    # An erasure lets commits expire, and records the newest of them.
    recorded = [at for at, (_, txn) in enumerate(log) if txn and txn == change.txn]
    has_read = not recorded or place <= recorded[0]  # other commits are older than the log
    return Feed(consumer.name, version, time_ms, has_read)
