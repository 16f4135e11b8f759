"""The number of rows that a write wrote: from Spark, or from the commit if Spark does not report it."""

from __future__ import annotations

from dbt_arctic.keyed.log import find_transaction, rows_added
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.before_images import count_images
from dbt_arctic.store.context import Context


def rows_written(
    context: Context, reported: int | None, target: Name, *, txn: int | None = None, branch: str = "main"
) -> int | None:
    """The rows of the commit just made to a table; ``None`` if unknown.

    Spark Connect does not report the number, but the summary of the commit does. It is read if that needs no
    statement.

    :param reported: what the statement returned; ``None`` if unknown.
    :param txn: the transaction of the commit, if other writers may have committed since.
    """
    if reported is not None or context.catalog.of(target).needs_spark:
        return reported
    state = context.catalog.of(target).load_table(target.schema, target.identifier)
    if state is None or branch not in state.branches:
        return reported
    history = state.history(state.branches[branch])
    commit = history[0] if txn is None else find_transaction(history, txn)
    return None if commit is None else rows_added(commit)


def changes_among(context: Context, table: KeyedTable, rows: int | None, txn: int) -> int | None:
    """The number of changes in the commit just made, without before-images; ``None`` if unknown."""
    state = context.catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    commit = None if state is None else find_transaction(state.history(), txn)
    if commit is None or rows is None:
        return None
    images = count_images(context.catalog, table, [commit], commit.snapshot_id)
    return None if images is None else rows - images


def with_rows(what: str, rows: int | None) -> str:
    """A message with its number of rows, if that is known.

    >>> with_rows("UPSERT", 3), with_rows("UPSERT", None)
    ('UPSERT 3', 'UPSERT')
    """
    return f"{what} {rows}" if rows is not None else what
