"""``adopt --undo``: converts a keyed table back to a plain table, which is its base under the public name.

The change table, which is dropped, records what the model has consumed and which batches were appended. An
empty commit to the base repeats both, so that the plain table is not read into again from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.catalog.api import TableState
from dbt_arctic.compaction.major import pending_transactions
from dbt_arctic.errors import ConcurrentRun, ConfigError, UnknownRelation
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import adoption, create
from dbt_arctic.keyed.idempotency_keys import appended_keys, carried_keys
from dbt_arctic.keyed.log import (
    PROPERTY_RUN,
    consumed_versions,
    landed_again,
    merged_transactions,
    versions_to_carry,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable, hidden_columns
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, encode_consumed
from dbt_arctic.maintenance.adopt import finish_adoption, side_tables_of
from dbt_arctic.maintenance.generations import load_sides
from dbt_arctic.store.context import Context
from dbt_arctic.store.generations import generation_numbers, load_generation
from dbt_arctic.store.replay import replay_after_switch
from dbt_arctic.store.state import find_keyed, head, load_change


def undo_adoption(context: Context, name: Name) -> None:
    """Drop the view, the change table and the previous generation, and rename the base to the public name.

    If it is interrupted, the same command completes it. Until the base is renamed, the model's next run
    restores the keyed table.

    :raises ConfigError: changes are not merged yet, or the table has a savepoint.
    :raises ConcurrentRun: another run wrote to the table in the meantime, and it is still keyed; or rows that
        were committed during a full refresh cannot be replayed.
    """
    finish_adoption(context, name)
    table = find_keyed(context.catalog, name)
    if table is not None:
        _unname(context, table)
    plain = context.catalog.of(name).load_table(name.schema, name.identifier)
    if plain is None or plain.properties.get(PROPERTY_OF) != name.dotted:
        raise UnknownRelation(
            f"{name} is not a keyed table", where=name.dotted, fix="there is nothing to undo"
        )
    for side in side_tables_of(context.catalog, name):
        context.run("drop_side_table", create.drop_table(side), None)
    if (hidden := hidden_columns(plain.properties)) and set(hidden) <= {one.name for one in plain.columns}:
        context.run("drop_columns", create.drop_columns(name, [(column,) for column in hidden]), None)
    for statement in adoption.undo_description(name, plain.properties):
        context.run("forget", statement, None)


def _unname(context: Context, table: KeyedTable) -> None:
    base, change = load_sides(context.catalog, table)
    _refuse_savepoints(context, table)
    # Commits from the time of the last full refresh that are not replayed yet would be dropped with the
    # previous generation.
    replay_after_switch(context, table, table.name.dotted)
    change = load_change(context.catalog, table)
    merged = merged_transactions(base.history()) - landed_again(change.history(), base.history())
    pending = pending_transactions(context, table, head(change)) - merged
    if pending:
        raise ConfigError(
            f"{table.name} has {counted(len(pending), 'commit')} not merged into its base",
            where=table.name.dotted,
            why="the base does not contain them",
            fix=f"merge them: dbt run-operation compact --args '{{table: {table.name.identifier}}}'",
        )
    if table.storage_name != table.name:
        raise ConfigError(
            f"{table.name} was renamed; its side tables are named after {table.storage_name.identifier}",
            where=table.name.dotted,
            fix=f"rename the {'view' if table.has_view else 'record'} back first: "
            f"{create.name_after_sides(table)}",
        )
    base = _carry_records(context, table, base, change)
    context.run("move", adoption.mark_as_moving(table.base), table)
    context.run("drop_view", create.drop_description(table), table)
    if _moved(context, table, base, change):
        finish_adoption(context, table.name)
        raise _written(table)
    context.run("rename", create.rename_table(table.base, table.name), table)


def _carry_records(context: Context, table: KeyedTable, base: TableState, change: TableState) -> TableState:
    """Repeat in the base what only the change table records. Returns the base with that commit.

    :raises ConcurrentRun: another commit was made to the base in the meantime.
    """
    properties = _records(base, change)
    if not properties:
        return base
    properties = {PROPERTY_RUN: context.run_id, **properties}
    context.run("carry_on", adoption.carry_records(table.base, table.column_names, properties), table)
    now, _ = load_sides(context.catalog, table)
    if now.history()[0].parent_id != base.current_snapshot_id:
        raise _written(table)
    return now


def _records(base: TableState, change: TableState) -> Mapping[str, str]:
    """The records of a change table that its base does not have, as properties of a commit.

    The entries that identify an automatic model's query are left out: what its table has for the next
    refresh is dropped as well.
    """
    found: dict[str, str] = {}
    consumed = versions_to_carry(change.history(), are_its_rows=False)
    if consumed and consumed != consumed_versions(base.history()):
        found[PROPERTY_CONSUMED] = encode_consumed(consumed)
    keys = appended_keys(change.history(), change.properties)
    if keys != appended_keys(base.history(), base.properties):
        found |= carried_keys(keys)
    return found


def _written(table: KeyedTable) -> ConcurrentRun:
    return ConcurrentRun(
        f"another run wrote to {table.name} in the meantime",
        where=table.name.dotted,
        why="its changes are not merged yet, or it has rewritten the base table",
        fix="try again when no run is active",
    )


def _moved(context: Context, table: KeyedTable, base: TableState, change: TableState) -> bool:
    now = load_sides(context.catalog, table)
    return [state.current_snapshot_id for state in now] != [
        base.current_snapshot_id,
        change.current_snapshot_id,
    ]


def _refuse_savepoints(context: Context, table: KeyedTable) -> None:
    for number in generation_numbers(context.catalog, table.storage_name):
        generation = (
            table
            if number == table.generation.number
            else load_generation(context.catalog, table.name, table.storage_name.identifier, number)
        )
        found = savepoints(load_change(context.catalog, generation).tags)
        if found:
            raise ConfigError(
                f"{table.name} has the savepoints {', '.join(sorted(found))}",
                where=table.name.dotted,
                why="they would be dropped with the change table",
                fix=f"drop them: dbt-arctic savepoint {table.name.identifier} {sorted(found)[0]} --drop",
            )
