"""Adds changes to stored aggregates: the affected groups, and those that must be computed again.

Groups that are read twice, since their extremes have to be asked for once it is known which of them have lost
one, are kept in memory in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt_arctic.auto.affected_keys import RANGED, counted, kept_rows, staged_values
from dbt_arctic.auto.group_counts import MANY
from dbt_arctic.auto.plan import BySums
from dbt_arctic.auto.stages import LEFT, Found, Stage
from dbt_arctic.keyed.names import quote_all
from dbt_arctic.keyed.sums import SumColumns, Touched, added, groups_with_changes, left_groups, net
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary.aggregate_maintenance import Sums
from dbt_arctic.store.change_log import logged_at
from dbt_arctic.store.computed_write import Attempt
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import columns_of, consistent_pair, stored_rows, version_of

_FEW = 2_000_000
"""Groups that are sent to each task."""


@dataclass(frozen=True)
class Adding:
    """The groups to write when changes are added to stored aggregates.

    :param difference: SQL of the rows to write, by the version that an attempt adds to.
    :param has_lost: whether groups were looked at, and some had lost an extreme.
    """

    difference: Callable[[Attempt], str]
    has_lost: bool = False


@contextmanager
def groups_touched(
    context: Context, table: KeyedTable, plan: BySums, changes: str, extremes: Stage | None, *, images: bool
) -> Iterator[Adding]:
    """What is kept in memory for it is there until it ends.

    :param changes: SQL of what to add to each group.
    :param extremes: asks groups that have lost an extreme for it; ``None`` where that is an error.
    """
    sums = plan.sums
    columns = _columns(table, sums)
    if extremes is None and not _has_many_groups(stored_rows(context.catalog, table), plan.changed_rows):

        def of_all(attempt: Attempt) -> str:
            groups = _groups(context, table, columns, changes, attempt, images=images)
            return added(table, columns, groups, images=images)

        yield Adding(of_all)
        return
    # To look up the stored rows of these groups costs less than to bring all of them together.
    ranged = [name for name in table.key if table.types[name] in RANGED]
    with staged_values(context, table, net(changes, table, columns), ranged) as found:
        few = "/*+ BROADCAST */ " if found.known_count <= _FEW else ""
        keys = f"SELECT {few}{quote_all(table.key)} FROM {found.relation}"
        touched = Touched(keys, found.between(table.types))
        changes = f"SELECT * FROM {found.relation}"

        def of_touched(attempt: Attempt) -> str:
            groups = _groups(context, table, columns, changes, attempt, images=images, touched=touched)
            return added(table, columns, groups, images=images)

        if extremes is None:
            yield Adding(of_touched)
            return
        base, change = consistent_pair(context.catalog, table)
        version = version_of(table, base, change)
        known, logged = (
            columns_of(context.catalog, table, version),
            logged_at(context.catalog, table, change, version.change_snapshot),
        )
        groups = groups_with_changes(
            table, columns, changes, version, known, images=images, logged=logged, touched=touched
        )
        with kept_rows(context, table, groups, "keys") as kept:
            groups = f"SELECT * FROM {quote_all([kept])}"
            left = f"(\n{left_groups(columns, groups, [stored_name(table, one) for one in sums.key])}\n)"
            lost = counted(context, left, [f"key_{place}" for place in range(len(sums.key))])
            asked = ""
            if lost.known_count:
                asked = extremes.sql(Found().also(LEFT, lost))

            def of_asked(attempt: Attempt) -> str:
                if attempt.pinned == version:
                    return added(table, columns, groups, images=images, asked=asked)
                # Something else has been written since: a group that has lost an extreme by that was not
                # asked, and ends the statement.
                anew = _groups(context, table, columns, changes, attempt, images=images, touched=touched)
                return added(table, columns, anew, images=images, asked=asked)

            yield Adding(of_asked, has_lost=lost.known_count > 0)


def _groups(
    context: Context,
    table: KeyedTable,
    columns: SumColumns,
    changes: str,
    attempt: Attempt,
    *,
    images: bool,
    touched: Touched | None = None,
) -> str:
    return groups_with_changes(
        table,
        columns,
        changes,
        attempt.pinned,
        attempt.known,
        images=images,
        logged=logged_at(context.catalog, table, attempt.change, attempt.pinned.change_snapshot),
        touched=touched,
    )


def _columns(table: KeyedTable, sums: Sums) -> SumColumns:
    """Columns as the table has written them."""

    def stored(name: str) -> str:
        return stored_name(table, name)

    return SumColumns(
        rows=stored(sums.rows),
        counts=[stored(name) for name in sums.counts],
        counted={stored(name): stored(by) for name, by in sums.counted.items()},
        whole=sums.whole,
        extremes={stored(name): which for name, which in sums.extremes.items()},
        ends={stored(name): (stored(other), stored(counter)) for name, (other, counter) in sums.ends.items()},
        spare=[stored(name) for name in sums.spare],
        derived={stored(name): sql for name, sql in sums.derived.items()},
    )


def _has_many_groups(stored: int | None, changed: int | None) -> bool:
    """Whether a table has so many groups that most of them have nothing to do with what has changed."""
    return stored is not None and stored >= MANY and changed is not None and changed < stored / 2


def stored_name(table: KeyedTable, column: str) -> str:
    """A column as the table has written it."""
    return next(name for name in table.column_names if name.lower() == column.lower())


__all__ = ["groups_touched", "stored_name"]
