"""Major compaction: merges pending changes into the base table, then removes them from the change table.

Pin the base first, then the change table; merge on a branch of the base; fast-forward, which fails if another
compaction was faster; trim what has been merged for longer than the grace period. A crash leaves rows in both
tables, which is read correctly, or an unused branch. The next compaction continues from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.compaction.settings import DEFAULT_TRIM_GRACE_SECONDS
from dbt_arctic.errors import ArcticError, StatementError
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.log import (
    PROPERTY_TXN,
    carried_log,
    landed_again,
    merged_transactions,
    newest_merge_ms,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable
from dbt_arctic.store.branches import branch_name, drop_stale_branches, publish, staged
from dbt_arctic.store.context import Context
from dbt_arctic.store.leftovers import txn_age_ms
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.secondary_indexes import refresh_indexes
from dbt_arctic.store.side_columns import changing_columns, takes_rows
from dbt_arctic.store.state import columns_at, head, load_base, load_change, load_keyed, reads_alike

LISTED_AT_MOST = 200
"""For a longer list of values Iceberg does not use the statistics of files, so it would not drop whole
files.
"""

MIXED_MEANWHILE = "some, but not all, rows match"
"""Iceberg's message if a file that was to be dropped also contains rows that must stay."""


@dataclass(frozen=True)
class CompactionPlan:
    """What a major compaction of a table would do. Transactions are ``_txn`` values."""

    table: KeyedTable
    base_snapshot: int
    change_snapshot: int
    pending: frozenset[int]
    """Transactions in the change table."""
    merge: frozenset[int]
    """Pending transactions that are not in the base yet."""
    trim: tuple[int, ...]
    """Pending transactions that were merged longer ago than the grace period; the oldest first."""
    forget: tuple[int, ...] = ()
    """With a sequence: transactions merged longer ago than deletes are kept, so that these are removed
    too; the oldest first.
    """
    note: compact.NothingToTrim | None = None
    """With a sequence: a record that nothing can be trimmed because deletes must be kept. ``None`` if it
    is already recorded.
    """


@dataclass(frozen=True)
class CompactionResult:
    """The result of a major compaction. Counts are transactions, except ``merged_rows``."""

    table: str
    merged: int
    merged_rows: int | None
    trimmed: int
    pending: int
    """Transactions that remain in the change table."""
    outcome: str
    indexes: tuple[str, ...] = ()
    """What was done with the indexes of the table, in a few words for each."""


def plan_major(context: Context, name: Name, trim_grace_seconds: float) -> CompactionPlan:
    """Plan a major compaction from metadata alone."""
    table, base, change = _pin(context, name)
    pending = pending_transactions(context, table, head(change))
    history = base.history()
    before_ms = context.now_ms() - int(trim_grace_seconds * 1000)
    merge = _unmerged(change, history, pending)
    # Transactions that are merged again stay until that merge is older than the grace period.
    trimmable = _trimmable(table, change, history, pending, before_ms) - merge
    trim, forget = _plan_trim(context, table, change, history, trimmable)
    return CompactionPlan(
        table=table,
        base_snapshot=head(base),
        change_snapshot=head(change),
        pending=pending,
        merge=merge,
        trim=trim,
        forget=forget,
        note=None if trim or forget else _to_note(context, table, change, history, before_ms),
    )


def _pin(context: Context, name: Name) -> tuple[KeyedTable, TableState, TableState]:
    """The table and its side tables: the base is read before the change table, and the view after both.

    A column is in the view before the first row with it is in the change table. If the view were older than
    the pin, such a row would be merged without that column, and then trimmed.
    """
    table = load_keyed(context.catalog, name)
    while True:
        base = load_base(context.catalog, table)
        change = load_change(context.catalog, table)
        shown = load_keyed(context.catalog, name)
        if reads_alike(shown, table):
            return shown, base, change
        table = shown


def _unmerged(change: TableState, history: Sequence[Snapshot], pending: frozenset[int]) -> frozenset[int]:
    """The transactions to merge: those that no commit of the base names.

    All pending ones if an expired commit may have merged some of them, or if a statement arrived a second
    time after its rows were merged: a transaction that is merged again alone would override newer rows of the
    base.
    """
    unmerged = pending - merged_transactions(history)
    if pending & landed_again(change.history(), history):
        return pending
    oldest = history[-1]
    if oldest.parent_id is None:
        return unmerged
    times = {transaction: commit.timestamp_ms for transaction, commit in _commits(change).items()}
    may_be_merged = any(times.get(txn, 0) <= oldest.timestamp_ms for txn in unmerged)
    return pending if may_be_merged else unmerged


def _trimmable(
    table: KeyedTable,
    change: TableState,
    history: Sequence[Snapshot],
    pending: frozenset[int],
    before_ms: int | None,
) -> frozenset[int]:
    """The transactions that were merged long enough ago to be trimmed.

    Transactions are trimmed in the order of arrival. Otherwise an older change of a key would become visible
    again.
    """
    trimmable = pending & merged_transactions(history, before_ms)
    if table.sequence_by:
        return trimmable
    # Newest first. A commit that is missing in the log is older than all others.
    places = {transaction: place for place, transaction in enumerate(_commits(change))}
    oldest = len(places)
    stays = max((places.get(txn, oldest) for txn in pending - trimmable), default=-1)
    return frozenset(txn for txn in trimmable if places.get(txn, oldest) > stays)


def _to_note(
    context: Context,
    table: KeyedTable,
    change: TableState,
    history: Sequence[Snapshot],
    before_ms: int | None,
) -> compact.NothingToTrim | None:
    """The record that none of the merged transactions can be trimmed, unless it exists already."""
    merged_ms = newest_merge_ms(history, before_ms)
    if table.sequence_by is None or merged_ms is None:
        return None
    known, now_ms = compact.NothingToTrim.of(change.properties), context.now_ms()
    if known is not None and known.holds(table, merged_ms, now_ms):
        return None
    return compact.NothingToTrim(merged_ms, now_ms)


def _commits(change: TableState) -> dict[int, Snapshot]:
    """The commits of the log by transaction, newest first."""
    return {
        int(commit.summary[PROPERTY_TXN]): commit
        for commit in change.history()
        if PROPERTY_TXN in commit.summary
    }


def _plan_trim(
    context: Context,
    table: KeyedTable,
    change: TableState,
    history: Sequence[Snapshot],
    trimmable: frozenset[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transactions to trim, and those whose deletes can be removed as well."""
    if not table.sequence_by or not trimmable:
        return _oldest_first(change, trimmable), ()
    rows = context.query(compact.list_kept_rows(table, head(change)))
    with_upserts = {int(txn) for txn, has_more_than_deletes in rows if has_more_than_deletes} - {MARKER_TXN}
    # A row that arrived early enough to lose against a delete needs the delete for as long as the row is
    # stored.
    now_ms = context.now_ms()
    longest_here_ms = max((txn_age_ms(txn, now_ms) for txn in with_upserts - trimmable), default=0)
    expired_ms = now_ms - longest_here_ms - table.tombstone_retention_s * 1000
    forget = trimmable & merged_transactions(history, before_ms=expired_ms)
    trim = (trimmable & with_upserts) - forget
    return _oldest_first(change, trim), _oldest_first(change, forget)


def _oldest_first(change: TableState, transactions: frozenset[int]) -> tuple[int, ...]:
    """Transactions in the order of their commits.

    Those that are missing in the log are older than all others.
    """
    newest_first = [*_commits(change), *(txn for _, txn in carried_log(change.history()) if txn)]
    places = {transaction: -place for place, transaction in enumerate(newest_first)}
    return tuple(sorted(transactions, key=lambda txn: (places.get(txn, -len(newest_first)), txn)))


def pending_transactions(context: Context, table: KeyedTable, change_snapshot: int) -> frozenset[int]:
    """Transactions with rows in the change table at a snapshot, from file statistics.

    A new data file holds one transaction. The rows themselves are read only if a rewrite has merged files of
    several transactions.
    """
    files = context.catalog.of(table.change).data_files(
        table.change.schema, table.change.identifier, change_snapshot, TXN
    )
    found = {file.lower for file in files if file.lower is not None and file.lower == file.upper}
    if any(file.lower is None or file.lower != file.upper for file in files):
        found.update(int(row[0]) for row in context.query(compact.list_transactions(table, change_snapshot)))
    return frozenset(found - {MARKER_TXN})


def compact_major(
    context: Context, name: Name, trim_grace_seconds: float = DEFAULT_TRIM_GRACE_SECONDS
) -> CompactionResult:
    """Run one major compaction.

    Commits: one merge on a branch and its fast-forward if there is something to merge; one metadata-only
    DELETE for each ``LISTED_AT_MOST`` transactions to trim; one for each index of the table.
    """
    plan = plan_major(context, name, trim_grace_seconds)
    rows: int | None = 0
    if plan.merge:
        if plan.table.projected and not takes_rows(
            load_base(context.catalog, plan.table).columns, plan.table
        ):
            raise changing_columns(name, name.dotted, "compact again")
        is_published, rows = _merge(context, plan)
        if not is_published:
            return CompactionResult(name.dotted, 0, 0, 0, len(plan.pending), "another compaction was faster")
        if trim_grace_seconds <= 0:
            plan = _plan_trim_again(context, plan)
    trimmed = _trim(context, plan)
    outcome = "compacted" if plan.merge or trimmed else "nothing to do"
    indexes = (
        refresh_indexes(context, plan.table, load_change(context.catalog, plan.table)) if plan.merge else []
    )
    pending = len(plan.pending) - trimmed
    return CompactionResult(name.dotted, len(plan.merge), rows, trimmed, pending, outcome, tuple(indexes))


def trim_merged(
    context: Context, name: Name, trim_grace_seconds: float = DEFAULT_TRIM_GRACE_SECONDS
) -> CompactionResult:
    """Only trim: remove what earlier compactions merged longer ago than the grace period."""
    plan = plan_major(context, name, trim_grace_seconds)
    trimmed = _trim(context, plan)
    outcome = "trimmed" if trimmed else "nothing to do"
    return CompactionResult(name.dotted, 0, 0, trimmed, len(plan.pending) - trimmed, outcome)


def _trim(context: Context, plan: CompactionPlan) -> int:
    """Trim, and return the number of removed transactions."""
    keep_deletes = plan.table.sequence_by is not None
    trim = plan.trim
    if plan.forget and (plan.trim or len(plan.forget) > LISTED_AT_MOST):
        # A delete is never removed before a row that lost against it, even if that row arrived later; and no
        # row is removed before an older one, which would be shown in its place.
        trim = (*plan.forget, *plan.trim)
    for step, transactions, keep in (("trim", trim, keep_deletes), ("forget", plan.forget, False)):
        # The oldest first, so that an interruption never uncovers an older change of a key.
        for start in range(0, len(transactions), LISTED_AT_MOST):
            statement = compact.trim(plan.table, transactions[start : start + LISTED_AT_MOST], keep)
            try:
                context.run(step, statement, plan.table)
            except StatementError as error:
                if MIXED_MEANWHILE not in str(error):
                    raise
                # Planned as a removal of whole files, but a minor compaction has merged them since.
                context.run(step, statement, plan.table)
    if plan.note is not None:
        # A failure is ignored: without the note, the next run checks again.
        with suppress(ArcticError):
            context.run(
                "note_nothing_to_trim", compact.note_nothing_to_trim(plan.table, plan.note), plan.table
            )
    return len(plan.trim) + len(plan.forget)


def _merge(context: Context, plan: CompactionPlan) -> tuple[bool, int | None]:
    """Merge on a branch and publish it.

    The fast-forward prevents that an outdated compaction merges older rows over newer ones.

    :returns: whether it was published, which it is not if the base moved in the meantime; and the rows.
    """
    table = plan.table
    drop_stale_branches(context, table.base, load_base(context.catalog, table), table)
    branch = branch_name(context.new_txn())
    with staged(context, table.base, plan.base_snapshot, branch, table):
        try:
            for setting in compact.settings_for_merge(table, plan.merge):
                context.run("set_for_merge", setting, table)
            # A column that was added after the last commit is not in the snapshot yet.
            known = columns_at(context.catalog, table.change, (plan.change_snapshot,))
            statement = compact.merge_changes(table, plan.change_snapshot, plan.merge, branch, known)
            rows = rows_written(context, context.run("merge", statement, table), table.base, branch=branch)
        finally:
            # Otherwise the property would be committed with every later write of the session.
            with ExitStack() as settings:  # reset each setting even if others fail
                for setting in reversed(compact.settings_after_merge(table)):
                    settings.callback(context.run, "set_after_merge", setting, table)
        return publish(context, table.base, branch, table, plan.base_snapshot), rows


def _plan_trim_again(context: Context, plan: CompactionPlan) -> CompactionPlan:
    """Plan the trim after a merge. Without a grace period, the merged transactions are trimmed at once."""
    history = load_base(context.catalog, plan.table).history()
    change = load_change(context.catalog, plan.table)
    trimmable = _trimmable(plan.table, change, history, plan.pending, None)
    trim, forget = _plan_trim(context, plan.table, change, history, trimmable)
    note = None if trim or forget else _to_note(context, plan.table, change, history, None)
    return replace(plan, trim=trim, forget=forget, note=note)
