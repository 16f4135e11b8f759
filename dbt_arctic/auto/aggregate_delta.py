"""Adds the delta to stored aggregates: the affected groups, and those that must be recomputed.

If many groups are stored, the delta is first aggregated by group (summary delta, Mumick et al. 1997), and
only the stored rows of these groups are read.

Affected groups are cached if they are read twice: the groups that lost a MIN or MAX are only known after a
first read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt_arctic.auto.affected_keys import RANGED, counted, kept_rows, staged_values
from dbt_arctic.auto.group_counts import MANY
from dbt_arctic.auto.plan import BySummaryDelta
from dbt_arctic.auto.stage_results import StageResults
from dbt_arctic.auto.stages import LOST_EXTREMES, Stage
from dbt_arctic.keyed.names import quote_all
from dbt_arctic.keyed.summary_delta import (
    AffectedGroups,
    OppositeEnd,
    SumColumns,
    changed_groups,
    groups_to_recompute,
    groups_with_changes,
    net_changes,
)
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary.aggregate_maintenance import SummaryDelta
from dbt_arctic.store.change_log import logged_at
from dbt_arctic.store.computed_write import Attempt
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import columns_of, consistent_pair, stored_rows, version_of

_MAX_BROADCAST_GROUPS = 2_000_000
"""The most groups that are broadcast."""


@dataclass(frozen=True)
class AggregateWrite:
    """The groups to write when a delta is added to stored aggregates.

    :param difference: the SQL of the rows to write, by the version that an attempt adds to.
    :param has_lost: whether the groups were checked, and some of them lost a MIN or MAX.
    """

    difference: Callable[[Attempt], str]
    has_lost: bool = False


@dataclass(frozen=True)
class _How:
    """How the SQL of groups is written. The parameters are those of ``groups_with_changes``."""

    images: bool
    one_task: bool


@contextmanager
def affected_groups(
    context: Context,
    table: KeyedTable,
    plan: BySummaryDelta,
    changes: str,
    extremes: Stage | None,
    *,
    images: bool,
    one_task: bool,
) -> Iterator[AggregateWrite]:
    """Compute the groups to write. Caches exist until the context ends.

    :param changes: the SQL of the change of each group.
    :param extremes: recomputes the extremes of groups that lost one; ``None`` if that is an error.
    :param one_task: whether one task adds the changes.
    """
    sums = plan.summary_delta
    columns = _columns(table, sums)
    how = _How(images, one_task)
    if extremes is None and not _has_many_groups(stored_rows(context.catalog, table), plan.changed_rows):

        def of_all(attempt: Attempt) -> str:
            groups = _groups(context, table, columns, changes, attempt, how)
            return changed_groups(table, columns, groups, images=images)

        yield AggregateWrite(of_all)
        return
    # Looking up the stored rows of these groups costs less than joining all stored rows.
    ranged = [name for name in table.key if table.types[name] in RANGED]
    with staged_values(context, table, net_changes(changes, table, columns), ranged) as found:
        hint = "/*+ BROADCAST */ " if found.known_count <= _MAX_BROADCAST_GROUPS else ""
        keys = f"SELECT {hint}{quote_all(table.key)} FROM {found.relation}"
        affected = AffectedGroups(keys, found.between(table.types))
        changes = f"SELECT * FROM {found.relation}"

        def of_affected(attempt: Attempt) -> str:
            groups = _groups(context, table, columns, changes, attempt, how, affected)
            return changed_groups(table, columns, groups, images=images)

        if extremes is None:
            yield AggregateWrite(of_affected)
            return
        base, change = consistent_pair(context.catalog, table)
        version = version_of(table, base, change)
        known, logged = (
            columns_of(context.catalog, table, version),
            logged_at(context.catalog, table, change, version.change_snapshot),
        )
        groups = groups_with_changes(
            table,
            columns,
            changes,
            version,
            known,
            images=images,
            logged=logged,
            affected=affected,
            one_task=one_task,
        )
        with kept_rows(context, table, groups, "keys") as kept:
            groups = f"SELECT * FROM {quote_all([kept])}"
            names = [stored_name(table, one) for one in sums.group_columns]
            losing = f"(\n{groups_to_recompute(columns, groups, names)}\n)"
            lost = counted(context, losing, [f"key_{place}" for place in range(len(names))])
            recomputed = ""
            if lost.known_count:
                recomputed = extremes.sql(StageResults().also(LOST_EXTREMES, lost))

            def of_recomputed(attempt: Attempt) -> str:
                if attempt.pinned == version:
                    return changed_groups(table, columns, groups, images=images, recomputed=recomputed)
                # Another commit came in between. A group that lost a MIN or MAX by it was not recomputed, so
                # the statement fails for it.
                groups_now = _groups(context, table, columns, changes, attempt, how, affected)
                return changed_groups(table, columns, groups_now, images=images, recomputed=recomputed)

            yield AggregateWrite(of_recomputed, has_lost=lost.known_count > 0)


def _groups(
    context: Context,
    table: KeyedTable,
    columns: SumColumns,
    changes: str,
    attempt: Attempt,
    how: _How,
    affected: AffectedGroups | None = None,
) -> str:
    return groups_with_changes(
        table,
        columns,
        changes,
        attempt.pinned,
        attempt.known,
        images=how.images,
        logged=logged_at(context.catalog, table, attempt.change, attempt.pinned.change_snapshot),
        affected=affected,
        one_task=how.one_task,
    )


def _columns(table: KeyedTable, sums: SummaryDelta) -> SumColumns:
    """The columns of aggregates, spelled as in the table."""

    def stored(name: str) -> str:
        return stored_name(table, name)

    return SumColumns(
        rows=stored(sums.rows),
        counts=[stored(name) for name in sums.counts],
        counted={stored(name): stored(by) for name, by in sums.counted.items()},
        whole=sums.whole,
        extremes={stored(name): which for name, which in sums.extremes.items()},
        ends={
            stored(name): OppositeEnd(stored(end.column), stored(end.counter))
            for name, end in sums.ends.items()
        },
        spare=[stored(name) for name in sums.spare],
        derived={stored(name): sql for name, sql in sums.derived.items()},
        carried=[stored(name) for name in sums.carried],
    )


def _has_many_groups(stored: int | None, changed: int | None) -> bool:
    """Whether most of a table's groups are not affected by the changes."""
    return stored is not None and stored >= MANY and changed is not None and changed < stored / 2


def stored_name(table: KeyedTable, column: str) -> str:
    """A column, spelled as in the table."""
    return next(name for name in table.column_names if name.lower() == column.lower())


__all__ = ["affected_groups", "stored_name"]
