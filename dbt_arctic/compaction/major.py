"""Major compaction: pending changes into the base, then out of the change table.

Pin the base first, then the change table; merge on a branch of the base; fast-forward, which
fails when another compaction was faster; trim what has been merged for longer than the grace.
A crash anywhere leaves rows in both tables, which reads right, or an unused branch; the next
compaction goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import ArcticError, StatementError
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.log import PROPERTY_TXN, carried_log, merged_transactions, newest_merge_ms
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable
from dbt_arctic.store.branches import branch_name, drop_stale_branches, publish, staged
from dbt_arctic.store.context import Context
from dbt_arctic.store.leftovers import txn_age_ms
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.side_columns import changing_columns, takes_rows
from dbt_arctic.store.state import columns_at, head, load_base, load_change, load_keyed, reads_alike

DEFAULT_TRIM_GRACE_SECONDS = 600
"""Longer than any statement's analysis and any foreign reader's catalog cache."""

LISTED_AT_MOST = 200
"""Of a longer list of values Iceberg does not ask the statistics of files: none would go whole."""

MIXED_MEANWHILE = "some, but not all, rows match"
"""Iceberg's words where a file was to go whole, and would take rows with it that are to stay."""


@dataclass(frozen=True)
class CompactionPlan:
    """What a major compaction of one table would do. Transactions are ``_txn`` values."""

    table: KeyedTable
    base_snapshot: int
    change_snapshot: int
    pending: frozenset[int]
    """In the change table."""
    merge: frozenset[int]
    """Of these, not yet in the base."""
    trim: tuple[int, ...]
    """Of these, merged for longer than the grace; the oldest first."""
    forget: tuple[int, ...] = ()
    """With a sequence: merged for longer than deletes are kept, so that these go too; the oldest first."""
    note: compact.NothingToTrim | None = None
    """With a sequence: that there is nothing of either, for deletes have to stay. ``None``: noted already."""


@dataclass(frozen=True)
class CompactionResult:
    """What a major compaction did. Counts are transactions, except ``merged_rows``."""

    table: str
    merged: int
    merged_rows: int
    trimmed: int
    pending: int
    """Still in the change table afterwards."""
    outcome: str


def plan_major(context: Context, name: Name, trim_grace_seconds: float) -> CompactionPlan:
    """Decide from metadata alone."""
    table, base, change = _pin(context, name)
    pending = pending_transactions(context, table, head(change))
    history = base.history()
    before_ms = context.now_ms() - int(trim_grace_seconds * 1000)
    merge = _unmerged(change, history, pending)
    # What is merged once more stays until that has settled.
    settled = _settled(table, change, history, pending, before_ms) - merge
    trim, forget = _plan_trim(context, table, change, history, settled)
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
    """The table and its sides: the base before the change table, and the view after both.

    A column is in the view before the first row that has it is in the change table. Were the view older
    than the pin, such a row would be merged without that column, and be trimmed.
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
    """What to merge: what no commit of the base names. Or everything, where an expired commit may have
    merged an older part of it: merged alone and again, that would go over what is newer in the base.
    """
    unmerged = pending - merged_transactions(history)
    oldest = history[-1]
    if oldest.parent_id is None:
        return unmerged
    times = {transaction: commit.timestamp_ms for transaction, commit in _commits(change).items()}
    may_be_merged = any(times.get(txn, 0) <= oldest.timestamp_ms for txn in unmerged)
    return pending if may_be_merged else unmerged


def _settled(
    table: KeyedTable,
    change: TableState,
    history: Sequence[Snapshot],
    pending: frozenset[int],
    before_ms: int | None,
) -> frozenset[int]:
    """What was merged long enough ago to be trimmed. In the order of arrival nothing goes before what is
    older, which would else come out from under it.
    """
    settled = pending & merged_transactions(history, before_ms)
    if table.sequence_by:
        return settled
    # Newest first. A commit that the log does not have any more is older than all that it has.
    places = {transaction: place for place, transaction in enumerate(_commits(change))}
    oldest = len(places)
    stays = max((places.get(txn, oldest) for txn in pending - settled), default=-1)
    return frozenset(txn for txn in settled if places.get(txn, oldest) > stays)


def _to_note(
    context: Context,
    table: KeyedTable,
    change: TableState,
    history: Sequence[Snapshot],
    before_ms: int | None,
) -> compact.NothingToTrim | None:
    """That of what was merged until then nothing is to be trimmed, unless it says so already."""
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
    settled: frozenset[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of what may be trimmed: what to trim, and of what to let go of the deletes as well."""
    if not table.sequence_by or not settled:
        return _oldest_first(change, settled), ()
    rows = context.query(compact.list_kept_rows(table, head(change)))
    with_upserts = {int(txn) for txn, has_more_than_deletes in rows if has_more_than_deletes} - {MARKER_TXN}
    # A row that came in time to lose against a delete needs the delete beside it for as long as it is here.
    now_ms = context.now_ms()
    longest_here_ms = max((txn_age_ms(txn, now_ms) for txn in with_upserts - settled), default=0)
    expired_ms = now_ms - longest_here_ms - table.tombstone_retention_s * 1000
    forget = settled & merged_transactions(history, before_ms=expired_ms)
    trim = (settled & with_upserts) - forget
    return _oldest_first(change, trim), _oldest_first(change, forget)


def _oldest_first(change: TableState, transactions: frozenset[int]) -> tuple[int, ...]:
    """As they were committed. What the log does not tell of any more is older than all that it tells of."""
    told = [*_commits(change), *(txn for _, txn in carried_log(change.history()) if txn)]
    places = {transaction: -place for place, transaction in enumerate(told)}
    return tuple(sorted(transactions, key=lambda txn: (places.get(txn, -len(told)), txn)))


def pending_transactions(context: Context, table: KeyedTable, change_snapshot: int) -> frozenset[int]:
    """Transactions with rows in the change table at a snapshot, from file statistics.

    A data file as written holds one transaction. Files that a rewrite has mixed are the exception;
    only then the rows themselves are asked.
    """
    files = context.catalog.data_files(table.change.schema, table.change.identifier, change_snapshot, TXN)
    found = {file.lower for file in files if file.lower is not None and file.lower == file.upper}
    if any(file.lower is None or file.lower != file.upper for file in files):
        found.update(int(row[0]) for row in context.query(compact.list_transactions(table, change_snapshot)))
    return frozenset(found - {MARKER_TXN})


def compact_major(
    context: Context, name: Name, trim_grace_seconds: float = DEFAULT_TRIM_GRACE_SECONDS
) -> CompactionResult:
    """Run one major compaction.

    Commits: one merge on a branch and its fast-forward when there is something to merge; one
    metadata-only DELETE for each ``LISTED_AT_MOST`` transactions that there are to trim.
    """
    plan = plan_major(context, name, trim_grace_seconds)
    rows = 0
    if plan.merge:
        if plan.table.projected and not takes_rows(
            load_base(context.catalog, plan.table).columns, plan.table
        ):
            raise changing_columns(name, name.dotted, "compact again")
        merged_rows = _merge(context, plan)
        if merged_rows is None:
            return CompactionResult(name.dotted, 0, 0, 0, len(plan.pending), "another compaction was faster")
        rows = merged_rows
        if trim_grace_seconds <= 0:
            plan = _plan_trim_again(context, plan)
    trimmed = _trim(context, plan)
    outcome = "compacted" if plan.merge or trimmed else "nothing to do"
    return CompactionResult(name.dotted, len(plan.merge), rows, trimmed, len(plan.pending) - trimmed, outcome)


def trim_settled(
    context: Context, name: Name, trim_grace_seconds: float = DEFAULT_TRIM_GRACE_SECONDS
) -> CompactionResult:
    """Only what is left of a compaction of before: what has been merged for longer than the grace goes."""
    plan = plan_major(context, name, trim_grace_seconds)
    trimmed = _trim(context, plan)
    outcome = "trimmed" if trimmed else "nothing to do"
    return CompactionResult(name.dotted, 0, 0, trimmed, len(plan.pending) - trimmed, outcome)


def _trim(context: Context, plan: CompactionPlan) -> int:
    """How many transactions went."""
    keep_deletes = plan.table.sequence_by is not None
    trim = plan.trim
    if plan.forget and len(plan.trim) + len(plan.forget) > LISTED_AT_MOST:
        # A delete goes in no statement before that of a row which lost against it, however late that came.
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
                # Planned as a removal of whole files, which a minor compaction has put together since.
                context.run(step, statement, plan.table)
    if plan.note is not None:
        # A failure is ignored: without the note, the next run checks again.
        with suppress(ArcticError):
            context.run(
                "note_nothing_to_trim", compact.note_nothing_to_trim(plan.table, plan.note), plan.table
            )
    return len(plan.trim) + len(plan.forget)


def _merge(context: Context, plan: CompactionPlan) -> int | None:
    """Merge on a branch and publish it; ``None`` when the base moved meanwhile.

    Without the fast-forward a stale compaction could merge older rows over newer ones.
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
            # Left in place, the property would be committed with every later write of the session.
            with ExitStack() as settings:  # each of them, whatever becomes of the others
                for setting in reversed(compact.settings_after_merge(table)):
                    settings.callback(context.run, "set_after_merge", setting, table)
        return rows if publish(context, table.base, branch, table, plan.base_snapshot) else None


def _plan_trim_again(context: Context, plan: CompactionPlan) -> CompactionPlan:
    """Without a grace, what was merged just now is trimmed at once."""
    history = load_base(context.catalog, plan.table).history()
    change = load_change(context.catalog, plan.table)
    settled = _settled(plan.table, change, history, plan.pending, None)
    trim, forget = _plan_trim(context, plan.table, change, history, settled)
    note = None if trim or forget else _to_note(context, plan.table, change, history, None)
    return replace(plan, trim=trim, forget=forget, note=note)
