"""Full compaction into more or fewer buckets: another partition spec, and then all files in it.

Which rows there are never depends on where their files lie, so nothing that is cut off or met in between can
change a row: readers, writers, pulls and other compactions go on. What the number of buckets decides is
whether joins are in place. Hence the order: the base first, in one commit, which takes long and leaves the
table as it was until then; its changes after it, of which there are few. Every step looks first whether it
is done already, so the same command goes on where another was cut off.
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
from dbt_arctic.errors import CommitStateUnknown, StatementError
from dbt_arctic.keyed import compact, create, write
from dbt_arctic.keyed.log import PROPERTY_MARKERS
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import laid_out, load_base, load_change, load_keyed

_Load = Callable[[CatalogReader, KeyedTable], TableState]

ATTEMPTS = 3
"""To rewrite the files of a side, when others hide rows or trim at the same time."""


def rebucket(
    context: Context,
    name: Name,
    buckets: int,
    target_bytes: int = TARGET_FILE_BYTES,
    clock: Callable[[], float] = time.monotonic,
) -> RewriteResult:
    """Bring a table into a number of buckets.

    Commits: one that replaces the files of the base; two that drop the bucket markers and make new ones; one
    that replaces the files of the changes.
    """
    made_as = load_keyed(context.catalog, name)
    before = laid_out(made_as, load_base(context.catalog, made_as)).layout.buckets
    of_base = _base(context, made_as, buckets, target_bytes)
    if of_base.outcome == OVERTAKEN:
        return of_base
    began = clock()
    of_changes = _changes(context, made_as, buckets, target_bytes)
    if of_changes.outcome == OVERTAKEN:
        return replace(of_base, outcome=OVERTAKEN)
    told = f"{before} buckets into {buckets}" if before != buckets else f"all in {buckets} buckets"
    return RewriteResult(
        table=name.dotted,
        outcome=REWRITTEN,
        files_before=of_base.files_before + of_changes.files_before,
        files_after=of_base.files_after + of_changes.files_after,
        bytes_before=of_base.bytes_before + of_changes.bytes_before,
        bytes_after=of_base.bytes_after + of_changes.bytes_after,
        note=f"{told}, joins in place again after {clock() - began:.1f} s",
    )


def _base(context: Context, made_as: KeyedTable, buckets: int, target_bytes: int) -> RewriteResult:
    _partition(context, made_as, made_as.base, load_base, buckets)

    def attempt(state: TableState) -> RewriteResult:
        statement = compact.rewrite_base(laid_out(made_as, state), (), target_bytes)
        return rewrite_files(context, "rewrite_base", made_as.name, made_as.base, state, statement, made_as)

    return _move_files(context, made_as, made_as.base, load_base, attempt)


def _changes(context: Context, made_as: KeyedTable, buckets: int, target_bytes: int) -> RewriteResult:
    _partition(context, made_as, made_as.change, load_change, buckets)
    state = load_change(context.catalog, made_as)
    marked = next((one for one in state.history() if PROPERTY_MARKERS in one.summary), None)
    is_marked = marked is not None and marked.summary[PROPERTY_MARKERS] == str(buckets)
    table = laid_out(made_as, state)
    if (
        not is_marked
        or not create.keeps_statistics(state.properties)
        or are_lost(context.catalog, table, state)
    ):
        _mark(context, table)

    def attempt(state: TableState) -> RewriteResult:
        statement = compact.rewrite_changes(made_as, target_bytes, every_file=True)
        return rewrite_files(
            context, "rewrite_changes", made_as.name, made_as.change, state, statement, made_as
        )

    return _move_files(context, made_as, made_as.change, load_change, attempt)


def _partition(context: Context, made_as: KeyedTable, side: Name, load: _Load, buckets: int) -> None:
    """New files of a side go into so many buckets."""
    table = laid_out(made_as, load(context.catalog, made_as))
    if table.layout.buckets == buckets:
        return
    try:
        context.run("partition_anew", compact.partition_anew(side, table.layout, buckets), table)
    except (StatementError, CommitStateUnknown):
        # Another process has done this, or the commit succeeded without an answer.
        if laid_out(made_as, load(context.catalog, made_as)).layout.buckets != buckets:
            raise


def _move_files(
    context: Context,
    table: KeyedTable,
    side: Name,
    load: _Load,
    attempt: Callable[[TableState], RewriteResult],
) -> RewriteResult:
    """All files of a side into the buckets of now, in one commit."""
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
    """A marker in each bucket of now, of whose files nothing is known, as in a table that was just made.

    Where this fails, the table goes on to leave statistics out: that is what tells the next one to go on.
    """
    context.run("leave_statistics_out", create.leave_statistics_out(table), table)
    _drop_markers(context, table)
    said = {PROPERTY_MARKERS: str(table.layout.buckets)}
    context.run("mark_buckets", write.mark_buckets(table, said), table)
    context.run("keep_statistics", create.keep_statistics(table), table)


def _drop_markers(context: Context, table: KeyedTable) -> None:
    statement = compact.trim(table, [MARKER_TXN])
    try:
        context.run("drop_markers", statement, table)
    except StatementError as error:
        if MIXED_MEANWHILE not in str(error):
            raise
        # Planned as a removal of whole files, which another process has merged with other files since then.
        context.run("drop_markers", statement, table)
