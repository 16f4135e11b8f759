"""Prevents a build with an expired lease from replacing a commit that was computed from the old rows.

A writer cannot know whether the builder has ended or is only slow: a paused process, a clock that is ahead.
So the writer marks the finished generation before it reports success, and reads the view again. A builder
reads the mark after it has replaced the view. So either the builder finds the mark and restores the view, or
the writer finds the new generation and reports no success.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ConcurrentRun, StatementError
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import KeyedTable, side_name
from dbt_arctic.store.context import Context
from dbt_arctic.store.lease import BuildInProgress
from dbt_arctic.store.state import load_keyed

PROPERTY_OVERTAKEN = "arctic.overtaken"
"""Property of a change table: the transaction in the previous generation for which this one gives way."""


def overtake(
    context: Context,
    table: KeyedTable,
    builds: Sequence[BuildInProgress],
    txn: int,
    pending: Callable[[BuildInProgress], ConcurrentRun],
) -> None:
    """Mark finished builds with an expired lease, after a computed commit.

    :param txn: the transaction of the commit.
    :param pending: the error that says that it is unknown whether the table contains the commit.
    :raises ConcurrentRun: one of the builds was published in the meantime.
    """
    for build in builds:
        change = side_name(table.storage_name, "change", build.number)
        try:
            context.run("overtake_build", _set(change, str(txn)), table)
        except StatementError as error:
            if context.catalog.of(change).load_table(change.schema, change.identifier) is not None:
                raise pending(build) from error
    if not builds:
        return
    shown = load_keyed(context.catalog, table.name)
    if shown.generation != table.generation:
        # This commit is not reported as successful, so the generation need not give way to it.
        context.run("keep_build", _unset(shown.change), table)
        raise pending(builds[-1])


def overtaken_by(change: TableState) -> str:
    """The transaction for which a generation gives way; empty if there is none."""
    return change.properties.get(PROPERTY_OVERTAKEN, "")


def require_not_overtaken(change: TableState, table: KeyedTable, where: str) -> None:
    """Check that no commit was made that the build would replace.

    :param change: the change table of the build.
    :raises ConcurrentRun: another run took this build for one that had ended.
    """
    if overtaken_by(change):
        raise ConcurrentRun(
            f"another run changed {table.name} while this run was about to replace it",
            where=where,
            why="the lease of this run was not renewed in time, or the clocks of two hosts differ, so the "
            "other run took it for one that had ended; its commit was computed from the old rows",
            fix="the table has the old rows with that commit; run again",
        )


def _set(change: Name, value: str) -> str:
    return f"ALTER TABLE {change.sql} SET TBLPROPERTIES ({literal(PROPERTY_OVERTAKEN)} = {literal(value)})"


def _unset(change: Name) -> str:
    return f"ALTER TABLE {change.sql} UNSET TBLPROPERTIES IF EXISTS ({literal(PROPERTY_OVERTAKEN)})"
