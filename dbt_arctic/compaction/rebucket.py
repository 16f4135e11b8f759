"""Full compaction into a different number of buckets: sets a new partition spec, then rewrites all files.

The rows of a table never depend on the location of its files, so neither an interruption nor a concurrent
operation can change a row. Readers, writers, pulls and other compactions continue. The number of buckets
decides only whether joins avoid a shuffle. Hence the order: first the base, in one long commit that leaves
the table unchanged until its end; then the changes, which are few. Every step first checks whether it is
already done, so the same command continues after an interruption.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.compaction.major import MIXED_MEANWHILE
from dbt_arctic.compaction.markers import are_lost
from dbt_arctic.compaction.metrics import TARGET_FILE_BYTES
from dbt_arctic.compaction.rewrite import (
    NOTHING,
    OVERTAKEN,
    REWRITTEN,
    RewriteResult,
    has_old_files,
    rewrite_files,
)
from dbt_arctic.errors import CatalogUnavailable, CommitStateUnknown, StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import compact, create, write
from dbt_arctic.keyed.log import PROPERTY_MARKERS
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_base, load_change, load_keyed, with_current_buckets

_Load = Callable[[CatalogReader, KeyedTable], TableState]

ATTEMPTS = 3
"""Attempts to rewrite the files of a side table while others delete or trim rows concurrently."""


def rebucket(
    context: Context,
    name: Name,
    buckets: int,
    target_bytes: int = TARGET_FILE_BYTES,
    clock: Callable[[], float] = time.monotonic,
) -> RewriteResult:
    """Change the number of buckets of a table.

    Commits: one that replaces the files of the base; two that drop the bucket markers and create new ones;
    one that replaces the files of the changes.
    """
    as_created = load_keyed(context.catalog, name)
    before = with_current_buckets(as_created, load_base(context.catalog, as_created)).layout.buckets
    of_base = _base(context, as_created, buckets, target_bytes)
    if of_base.outcome == OVERTAKEN:
        return of_base
    began = clock()
    of_changes = _changes(context, as_created, buckets, target_bytes)
    if of_changes.outcome == OVERTAKEN:
        return replace(of_base, outcome=OVERTAKEN)
    what = f"all in {counted(buckets, 'bucket')}"
    if before != buckets:
        what = f"{counted(before, 'bucket')} into {buckets}"
    return RewriteResult(
        table=name.dotted,
        outcome=REWRITTEN,
        files_before=of_base.files_before + of_changes.files_before,
        files_after=of_base.files_after + of_changes.files_after,
        bytes_before=of_base.bytes_before + of_changes.bytes_before,
        bytes_after=of_base.bytes_after + of_changes.bytes_after,
        note=f"{what}, joins in place again after {clock() - began:.1f} s",
    )


def _base(context: Context, as_created: KeyedTable, buckets: int, target_bytes: int) -> RewriteResult:
    _partition(context, as_created, as_created.base, load_base, buckets)

    def attempt(state: TableState) -> RewriteResult:
        statement = compact.rewrite_base(with_current_buckets(as_created, state), (), target_bytes)
        return rewrite_files(
            context, "rewrite_base", as_created.name, as_created.base, state, statement, as_created
        )

    return _move_files(context, as_created, as_created.base, load_base, attempt)


def _changes(context: Context, as_created: KeyedTable, buckets: int, target_bytes: int) -> RewriteResult:
    _partition(context, as_created, as_created.change, load_change, buckets)
    state = load_change(context.catalog, as_created)
    marked = next((one for one in state.history() if PROPERTY_MARKERS in one.summary), None)
    is_marked = marked is not None and marked.summary[PROPERTY_MARKERS] == str(buckets)
    table = with_current_buckets(as_created, state)
    if (
        not is_marked
        or not create.keeps_statistics(state.properties)
        or are_lost(context.catalog, table, state)
    ):
        _mark(context, table)

    def attempt(state: TableState) -> RewriteResult:
        statement = compact.rewrite_changes(as_created, target_bytes, every_file=True)
        return rewrite_files(
            context, "rewrite_changes", as_created.name, as_created.change, state, statement, as_created
        )

    return _move_files(context, as_created, as_created.change, load_change, attempt)


def _partition(context: Context, as_created: KeyedTable, side: Name, load: _Load, buckets: int) -> None:
    """Set the number of buckets for new files of a side table."""
    table = with_current_buckets(as_created, load(context.catalog, as_created))
    if table.layout.buckets == buckets:
        return
    try:
        context.run("change_bucket_count", compact.change_bucket_count(side, table.layout, buckets), table)
    except (StatementError, CatalogUnavailable, CommitStateUnknown):
        # Another process has done this, or the commit succeeded without a response.
        if with_current_buckets(as_created, load(context.catalog, as_created)).layout.buckets != buckets:
            raise


def _move_files(
    context: Context,
    table: KeyedTable,
    side: Name,
    load: _Load,
    attempt: Callable[[TableState], RewriteResult],
) -> RewriteResult:
    """Rewrite all files of a side table into the current buckets, in one commit."""
    result = RewriteResult(table.name.dotted, NOTHING)
    for _ in range(ATTEMPTS):
        state = load(context.catalog, table)
        if state.spec_id is not None and not has_old_files(context, side, state):
            return result
        result = attempt(state)
        if result.outcome != OVERTAKEN:
            return result
    return result


def _mark(context: Context, table: KeyedTable) -> None:
    """Create a marker in each current bucket, without file statistics, as in a new table.

    If this fails, the table continues to omit statistics, from which the next run detects that it has to
    continue.
    """
    context.run("leave_statistics_out", create.leave_statistics_out(table), table)
    _drop_markers(context, table)
    properties = {PROPERTY_MARKERS: str(table.layout.buckets)}
    context.run("mark_buckets", write.mark_buckets(table, properties), table)
    context.run("keep_statistics", create.keep_statistics(table), table)


def _drop_markers(context: Context, table: KeyedTable) -> None:
    statement = compact.trim(table, [MARKER_TXN])
    try:
        context.run("drop_markers", statement, table)
    except StatementError as error:
        if MIXED_MEANWHILE not in str(error):
            raise
        # Planned as a removal of whole files, but another process has merged them with other files since.
        context.run("drop_markers", statement, table)
