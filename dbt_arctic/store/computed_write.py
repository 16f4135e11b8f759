"""Writes that depend on rows or versions they have read.

They are published only if the change table has not moved.

Pin a version, write the rows computed from it to a branch, fast-forward; otherwise compute again. This is the
only implementation of this protocol for keyed tables. It knows nothing about what is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ConcurrentRun, DamagedKeyedTable
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.one_sided_shuffle import enable_one_sided_shuffle, reset_one_sided_shuffle
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.store.branches import (
    ATTEMPTS,
    branch_name,
    drop_stale_branches,
    publish,
    require_commits,
    staged,
)
from dbt_arctic.store.context import Context
from dbt_arctic.store.lease import BuildInProgress, find_builds, refuse_during_build
from dbt_arctic.store.overtaken_build import overtake
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.side_columns import changing_columns, takes_rows
from dbt_arctic.store.state import (
    columns_of,
    consistent_pair,
    head,
    load_change,
    load_keyed,
    reads_alike,
    version_of,
)
from dbt_arctic.store.writer_lock import writer_lock


@dataclass(frozen=True)
class Purpose:
    """Describes a computed write for the names of its steps and for its errors.

    :param step: the name of the statement that writes.
    :param where: the model or table that errors name.
    :param again: what the user does after other runs were faster, for example ``run the model again``.
    :param pulls: whether it consumes upstream versions. A full refresh consumes them itself and would lose
        any other computed write that runs concurrently, so the two exclude each other.
    :param records: whether its commit records something other than rows: a rollback, or an idempotency key.
    :param joins: whether the statement joins other rows with the rows of the table, whose distribution should
        be kept.
    """

    step: str
    where: str
    again: str
    joins: bool = False
    pulls: bool = False
    records: bool = False

    @property
    def publishes_empty(self) -> bool:
        """Whether a commit without rows carries information."""
        return self.pulls or self.records


@dataclass(frozen=True)
class Attempt:
    """The state that one attempt is computed from, and the branch that it writes to.

    :param version: the pinned state. The base table is pinned only if the write reads rows.
    :param known: the columns of these snapshots.
    :param previous: the previous attempt, which another commit overtook. Its branch still exists.
    """

    change: TableState
    version: Version | None
    known: ColumnsAt
    txn: int
    branch: str
    previous: Attempt | None = None

    @property
    def pinned(self) -> Version:
        """The pinned version of an attempt that reads rows."""
        assert self.version is not None, "a write that reads rows says so"
        return self.version


@dataclass(frozen=True)
class WriteResult:
    """The result of a computed write.

    :param rows: rows written; ``None`` if unknown.
    """

    rows: int | None
    sql: str
    attempt: Attempt


def write_computed(
    context: Context,
    table: KeyedTable,
    purpose: Purpose,
    statement: Callable[[Attempt], str],
    *,
    check: Callable[[TableState], None] | None = None,
    reads_rows: bool = True,
) -> WriteResult:
    """Publish one commit that was computed from the state right before it.

    The parameters are those of ``write_with_retries``.

    :raises ConcurrentRun: other runs kept committing, or a full refresh was published. Nothing was published.
    """
    written = write_with_retries(context, table, purpose, statement, check=check, reads_rows=reads_rows)
    assert written is not None
    return written


def write_with_retries(
    context: Context,
    table: KeyedTable,
    purpose: Purpose,
    statement: Callable[[Attempt], str],
    *,
    check: Callable[[TableState], None] | None = None,
    pointless: Callable[[TableState], bool] = lambda change: False,
    reads_rows: bool = True,
) -> WriteResult | None:
    """Like ``write_computed``, but publishes nothing and returns ``None`` if the write has become pointless.

    :param statement: returns the SQL of one attempt. It writes to the branch of the attempt, with its
        ``txn``.
    :param check: inspects the pinned change table and raises an error if this write is not allowed.
    :param pointless: inspects the pinned change table and ends the write if a different write is needed.
    :param reads_rows: whether ``statement`` needs a pinned version. Otherwise it only requires that no other
        commit was made in the meantime.
    :raises ConcurrentRun: other runs kept committing, or a full refresh was published. Nothing was published.
    """
    previous: Attempt | None = None
    if not purpose.pulls:
        refuse_during_build(context, table, f"{purpose.step} has to wait", purpose.where)
    with ExitStack() as kept:
        for count in range(ATTEMPTS):
            if count:
                # Writers of one process take turns, so that they do not overtake each other endlessly.
                kept.enter_context(writer_lock(table.change))
            attempt = _pin(context, table, reads_rows, previous)
            # Must follow the pins: the view then shows every column that was added before them.
            _require_generation(context, table, purpose, same_columns=reads_rows)
            if not takes_rows(attempt.change.columns, table):
                raise changing_columns(table.name, purpose.where, purpose.again)
            if check is not None:
                check(attempt.change)
            if pointless(attempt.change):
                return None
            drop_stale_branches(context, table.change, attempt.change, table)
            kept.enter_context(staged(context, table.change, head(attempt.change), attempt.branch, table))
            sql = statement(attempt)
            reported = _run(context, table, purpose, sql)
            rows = rows_written(context, reported, table.change, txn=attempt.txn, branch=attempt.branch)
            if rows == 0 and not purpose.publishes_empty:
                return WriteResult(rows, sql, attempt)
            with writer_lock(table.change):
                pinned = attempt.change
                published = publish(
                    context, table.change, attempt.branch, table, head(pinned), pinned.columns
                )
            if published:
                # The second check detects a build that ends between the two.
                if not purpose.pulls:
                    _require_no_switch(context, table, purpose, attempt.txn)
                _require_generation(context, table, purpose)
                return WriteResult(rows, sql, attempt)
            previous = attempt
    raise ConcurrentRun(
        f"the commit to {table.name} conflicted with other commits {ATTEMPTS} times",
        where=purpose.where,
        fix=f"{purpose.again} when fewer writers are active; nothing was changed",
    )


def _run(context: Context, table: KeyedTable, purpose: Purpose, sql: str) -> int | None:
    if not purpose.joins:
        return context.run(purpose.step, sql, table)
    try:
        context.run("set_in_place", enable_one_sided_shuffle(), table)
        return context.run(purpose.step, sql, table)
    finally:
        context.run("reset_in_place", reset_one_sided_shuffle(), table)


def branch_head(context: Context, table: KeyedTable, branch: str, since: int | None) -> int:
    """The snapshot that holds the rows of an unpublished branch of the change table.

    :param since: the snapshot at which the branch was created.
    :raises CommitStateUnknown: the statement that wrote the rows was executed twice.
    """
    state = context.catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    if state is None or (snapshot := state.branches.get(branch)) is None:
        raise DamagedKeyedTable(
            f"the branch {branch} of {table.change} no longer exists",
            where=table.name.dotted,
            why="it was dropped while rows were being written to it",
            fix="write them again; nothing was published",
        )
    require_commits(table.change, state, branch, since, 1)
    return snapshot


def _pin(context: Context, table: KeyedTable, reads_rows: bool, previous: Attempt | None) -> Attempt:
    txn = context.new_txn()
    branch = branch_name(txn)
    if not reads_rows:
        return Attempt(load_change(context.catalog, table), None, {}, txn, branch, previous)
    base, change = consistent_pair(context.catalog, table)
    version = version_of(table, base, change)
    known = columns_of(context.catalog, table, version)
    return Attempt(change, version, known, txn, branch, previous)


def _require_no_switch(context: Context, table: KeyedTable, purpose: Purpose, txn: int) -> None:
    """Refuse the write if a switch of generations is pending, and stop builds that seem to have ended.

    The build may have done its last check before this write landed.
    """

    def pending(build: BuildInProgress) -> ConcurrentRun:
        return ConcurrentRun(
            f"a full refresh is replacing {table.name} right now",
            where=purpose.where,
            why=f"{build.lease.description} is publishing generation {build.number}, which may lack this "
            "commit; or that run fails, and the table contains it",
            fix=f"after that run has ended, check dbt-arctic history {table.name.identifier}; "
            f"{purpose.again} if this commit is missing",
        )

    builds = list(find_builds(context, table.name, table))
    for build in builds:
        if build.finished and not build.is_expired:
            raise pending(build)
    overtake(context, table, [build for build in builds if build.is_expired], txn, pending)


def _require_generation(
    context: Context, table: KeyedTable, purpose: Purpose, *, same_columns: bool = False
) -> None:
    shown = load_keyed(context.catalog, table.name)
    if shown.generation == table.generation and same_columns and not reads_alike(shown, table):
        raise ConcurrentRun(
            f"the columns of {table.name} changed in the meantime",
            where=purpose.where,
            why="rows computed without them would overwrite values that another run has just written",
            fix=f"{purpose.again}; nothing was changed",
        )
    if shown.generation != table.generation:
        raise ConcurrentRun(
            f"{table.name} got a new generation in the meantime",
            where=purpose.where,
            why="a full refresh, or the undo of one, replaced its rows and consumed versions",
            fix=f"{purpose.again} if it is still needed",
        )
