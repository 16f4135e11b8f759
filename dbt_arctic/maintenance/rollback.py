"""``rollback``: an earlier version's rows as a new commit, which the models downstream pull as changes."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK, PROPERTY_RUN, consumed_versions, log_range
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.rollback import insert_difference, of_changed_keys
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Version, encode_consumed
from dbt_arctic.maintenance.finding import rebuild, restore
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.log_checks import check_commits
from dbt_arctic.maintenance.versions import resolve, state_at
from dbt_arctic.refresh.computed import Attempt, Purpose, write_computed
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.state import columns_at, load_keyed


@dataclass(frozen=True)
class RolledBack:
    """:param rows: upserts and deletes that it took; -1 where nobody tells.
    :param before: the version to go back to, should this have been a mistake.
    """

    table: str
    to: Version
    before: Version
    rows: int


def roll_back(edge: Edge, name: Name, text: str) -> RolledBack:
    """Make the merged rows equal to those of a version, in one commit under compare-and-swap.

    What the version was computed from is committed with it: the model's next run takes up from there, and
    so pulls again what is undone here.

    :raises ConfigError: the table has a sequence, by which rows of then would lose.
    :raises VersionUnavailable: the version is gone, or it had another key.
    :raises ConcurrentRun: others kept committing, or a full refresh went through meanwhile.
    """
    table = load_keyed(edge.catalog, name)
    _refuse_sequence(table)
    to = resolve(edge.catalog, table, text, name.dotted)

    def statement(attempt: Attempt) -> str:
        then_sql, now_sql = _states(edge.catalog, table, attempt.change, to, attempt.pinned)
        properties = {PROPERTY_RUN: edge.run_id, PROPERTY_ROLLBACK: to.token}
        consumed = _consumed(edge.catalog, table, attempt.change, to)
        if consumed is not None:
            properties[PROPERTY_CONSUMED] = consumed
        return insert_difference(table, now_sql, then_sql, attempt.txn, properties, attempt.branch)

    purpose = Purpose("rollback", name.dotted, "look at dbt-arctic history and roll back again")
    written = write_computed(edge, table, purpose, statement)
    return RolledBack(name.dotted, to, written.attempt.pinned, written.rows)


def _refuse_sequence(table: KeyedTable) -> None:
    if table.sequence_by is not None:
        raise ConfigError(
            f"{table.name} cannot be rolled back: its changes are ordered by {table.sequence_by}",
            where=table.name.dotted,
            why="a row of an older version has an older sequence, so it would lose against the row of now",
            fix="write the rows again with a newer sequence, read from at_version(); or rebuild: "
            f"{rebuild(table.name)}; to undo a full refresh: {restore(table.name)} --previous",
        )


def _states(
    catalog: CatalogReader, table: KeyedTable, change: TableState, to: Version, now: Version
) -> tuple[str, str]:
    """SQL of the rows of then and of now, restricted to keys that may differ where the log tells them."""
    then_sql, now_sql = state_at(catalog, table, to), state_at(catalog, table, now)
    if to.generation != now.generation:
        then = generation_of(catalog, table, to.generation)
        if then.key != table.key:
            raise VersionUnavailable(
                f"{table.name} cannot go back to the version {to} as changes of its rows",
                where=table.name.dotted,
                why=f"its key was {', '.join(then.key)} then, and is {', '.join(table.key)} now",
                fix=f"show that generation again: dbt-arctic restore {table.name.schema}."
                f"{table.name.identifier} --generation {to.generation}",
            )
        return then_sql, now_sql
    log = log_range(change.history(now.change_snapshot), to.change_snapshot)
    if log is None or _by_hand(catalog, table):
        return then_sql, now_sql
    known = columns_at(catalog, table.change, (now.change_snapshot, *log.readable_at))
    return (
        of_changed_keys(table, then_sql, log, now, known),
        of_changed_keys(table, now_sql, log, now, known),
    )


def _by_hand(catalog: CatalogReader, table: KeyedTable) -> bool:
    """Whether somebody else wrote: then any row may differ, not only those that the log names."""
    return any(check_commits(table, *load_sides(catalog, table)))


def _consumed(catalog: CatalogReader, table: KeyedTable, change: TableState, to: Version) -> str | None:
    """What the version was computed from, to be committed again; ``None`` where nothing ever pulled."""
    _, then = load_sides(catalog, generation_of(catalog, table, to.generation))
    history = then.history(to.change_snapshot)
    consumed, current = consumed_versions(history), consumed_versions(change.history())
    if not consumed and not current:
        return None
    if not consumed and history[-1].parent_id is not None:
        raise VersionUnavailable(
            f"what the version {to} of {table.name} was computed from is not on record any more",
            where=table.name.dotted,
            why="the commits that said so were expired",
            fix=f"choose a later version, or {rebuild(table.name)}",
        )
    return encode_consumed(consumed)
