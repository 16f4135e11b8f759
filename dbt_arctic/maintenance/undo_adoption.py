"""``adopt --undo``: converts a keyed table back to a plain table, which is its base under the public name."""

from __future__ import annotations

from dbt_arctic.catalog.api import TableState
from dbt_arctic.compaction.major import pending_transactions
from dbt_arctic.errors import ConcurrentRun, ConfigError, UnknownRelation
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import adoption, create
from dbt_arctic.keyed.log import landed_again, merged_transactions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable, hidden_columns
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
    context.run("move", adoption.mark_as_moving(table.base), table)
    context.run("drop_view", create.drop_description(table), table)
    if _moved(context, table, base, change):
        finish_adoption(context, table.name)
        raise ConcurrentRun(
            f"another run wrote to {table.name} in the meantime",
            where=table.name.dotted,
            why="its changes are not merged yet",
            fix="try again when no run is active",
        )
    context.run("rename", create.rename_table(table.base, table.name), table)


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
