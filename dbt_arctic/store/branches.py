"""Branches as staging areas: created from a pinned main, published by fast-forward, dropped afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile

from dbt_arctic.catalog.api import CatalogColumn, TableState
from dbt_arctic.errors import ArcticError, CommitConflict, CommitStateUnknown, StatementError
from dbt_arctic.keyed.branch import create_branch, drop_branch, fast_forward
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.leftovers import branch_name, is_abandoned_branch

__all__ = ["ATTEMPTS", "branch_name", "changes_rows", "drop_stale_branches", "publish", "staged"]

ATTEMPTS = 5
"""How often a write on a branch is retried after other commits interfered."""
_CHANGED_FILES = ("added-data-files", "deleted-data-files", "added-delete-files")
"""Entries of the summary of each commit that adds or removes rows."""
_NO_BRANCH = "Ref does not exist"
"""Iceberg's error for a branch that does not exist (any more)."""


@contextmanager
def staged(
    context: Context, target: Name, snapshot_id: int | None, branch: str, table: KeyedTable | None = None
) -> Iterator[None]:
    """Create a branch of ``target`` at a snapshot, and drop it at the end, published or not."""
    context.run("create_branch", create_branch(target, branch, snapshot_id), table)
    try:
        yield
    finally:
        # The user must see the original failure, or none if the write was published. A later run drops a
        # branch that remains.
        with suppress(ArcticError):
            context.run("drop_branch", drop_branch(target, branch), table)


def drop_stale_branches(context: Context, target: Name, state: TableState, table: KeyedTable | None) -> None:
    """Drop the branches that a crashed run left.

    A recent branch may belong to a run that is still in progress.
    """
    for branch in state.branches:
        if is_abandoned_branch(branch, context.now_ms()):
            context.run("drop_branch", drop_branch(target, branch), table)


def publish(
    context: Context,
    target: Name,
    branch: str,
    table: KeyedTable | None,
    since: int | None,
    columns: Sequence[CatalogColumn] = (),
    most_commits: int | None = None,
) -> bool:
    """Fast-forward main to a branch. Returns ``False`` if main has moved since the branch was created.

    :param since: the snapshot at which the branch was created.
    :param columns: the columns with which its rows were written, if the write requires that they are
        unchanged.
    :param most_commits: how many commits its statements make at most; ``None`` if repeated ones are harmless.
    :raises CommitStateUnknown: the branch has more commits, so a statement was executed twice.
    """
    state = context.catalog.of(target).load_table(target.schema, target.identifier)
    is_as_made = state is not None and _begins_at(state, branch, since) and _has(state, columns)
    if not (is_as_made or context.prints_only):
        return False
    made = None if state is None else state.branches.get(branch)
    if state is not None and most_commits is not None:
        require_commits(target, state, branch, since, most_commits)
    for left in reversed(range(ATTEMPTS)):
        try:
            context.run("fast_forward", fast_forward(target, branch), table)
        except StatementError as error:
            # If the statement is sent again after a lost response, it finds its own commit below later ones,
            # or its branch dropped.
            if _NO_BRANCH in str(error) and _landed(context, target, made):
                return True
            if "fast-forward" not in str(error):
                raise
            return _landed(context, target, made)
        except CommitStateUnknown:
            if not _landed(context, target, made):
                raise
        except CommitConflict:
            # Any other commit to the table conflicts, even one to a branch, and main may not have moved.
            if not left:
                raise
            continue
        return True
    return False


def _begins_at(state: TableState, branch: str, since: int | None) -> bool:
    """Whether a branch exists and starts from this snapshot of main; ``None``: from an empty table.

    If a branch is dropped while a statement writes to it, the commit of the statement creates it again from
    the current main. Its rows were computed without the newer commits of main, and a fast-forward would not
    detect that.
    """
    main = {one.snapshot_id for one in state.history()}
    at = state.branches.get(branch)
    if at is None:
        return False
    return next((one.snapshot_id for one in state.history(at) if one.snapshot_id in main), None) == since


def require_commits(target: Name, state: TableState, branch: str, since: int | None, most: int) -> None:
    """Refuse a branch with more commits than its statements make.

    :raises CommitStateUnknown: a statement was executed twice, so its rows are there twice.
    """
    if _commits(state, branch, since) > most:
        raise CommitStateUnknown(
            f"the rows of a run were committed twice to a branch of {target}",
            where=target.dotted,
            why="a component between Spark and the catalog got no answer and repeated the commit",
            fix="run again; the table was not changed",
        )


def _commits(state: TableState, branch: str, since: int | None) -> int:
    """The number of commits of a branch after it was created.

    Iceberg creates the branch of an empty table with a commit of its own.
    """
    ids = [one.snapshot_id for one in state.history(state.branches.get(branch))]
    return ids.index(since) if since in ids else len(ids) - 1


def changes_rows(context: Context, target: Name, branch: str, since: int | None) -> bool:
    """Whether a commit to a branch has added or removed rows.

    :param since: the snapshot at which the branch was created.
    """
    state = context.catalog.of(target).load_table(target.schema, target.identifier)
    if state is None or branch not in state.branches:
        return True  # another process dropped it, which its publication detects
    commits = takewhile(lambda one: one.snapshot_id != since, state.history(state.branches[branch]))
    return any(int(one.summary.get(files, "0")) for one in commits for files in _CHANGED_FILES)


def _has(state: TableState, columns: Sequence[CatalogColumn]) -> bool:
    """Whether the table still has the given columns.

    A column that was dropped and added again has lost its values.
    """
    numbers = {column.name: column.field_id for column in state.columns}
    return all(column.name in numbers and numbers[column.name] == column.field_id for column in columns)


def _landed(context: Context, target: Name, made: int | None) -> bool:
    """Whether main contains the snapshot that a branch had, possibly below later commits of others.

    The branch itself may have been dropped by the commit that published it.
    """
    state = context.catalog.of(target).load_table(target.schema, target.identifier)
    return state is not None and any(one.snapshot_id == made for one in state.history())
