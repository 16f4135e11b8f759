"""Savepoints: named versions that neither expiry nor ``clean`` removes."""

from __future__ import annotations

from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.log import versions_to_carry
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import (
    consumed_at,
    create_tag,
    drop_tag,
    forget_consumed,
    note_consumed,
    savepoints,
    tag_of,
)
from dbt_arctic.keyed.table import KeyedTable, side_name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Version
from dbt_arctic.maintenance.generations import generation_of
from dbt_arctic.maintenance.versions import list_savepoints, resolve, tags_of
from dbt_arctic.store.context import Context
from dbt_arctic.store.generations import generation_numbers
from dbt_arctic.store.state import load_change, load_keyed


def make_savepoint(context: Context, name: Name, savepoint: str, text: str = "current") -> Version:
    """Keep a version under a name, with a tag on both side tables. Returns the version.

    If this is interrupted, only one of them has the tag. That is not a savepoint; the command can be
    repeated, or the tag dropped.

    :raises ConfigError: a savepoint of that name exists, or the name is invalid.
    """
    tag = tag_of(savepoint)
    table = load_keyed(context.catalog, name)
    known = list_savepoints(context.catalog, table)
    if savepoint in known:
        raise ConfigError(
            f"{name} already has a savepoint {savepoint}",
            where=name.dotted,
            why=f"it keeps version {known[savepoint]}",
            fix="choose another name, or drop it: "
            f"dbt-arctic savepoint {name.schema}.{name.identifier} {savepoint} --drop",
        )
    version = resolve(context.catalog, table, text, name.dotted)
    generation = generation_of(context.catalog, table, version.generation)
    _note_consumed(context, generation, version.change_snapshot)
    for side, snapshot in (
        (generation.base, version.base_snapshot),
        (generation.change, version.change_snapshot),
    ):
        state = context.catalog.of(side).load_table(side.schema, side.identifier)
        if state is not None and tag in state.tags:
            context.run("drop_tag", drop_tag(side, savepoint), generation)
        context.run("create_tag", create_tag(side, savepoint, snapshot), generation)
    # Before the tag existed, dropping another savepoint could have removed the note.
    _note_consumed(context, generation, version.change_snapshot)
    return version


def _note_consumed(context: Context, table: KeyedTable, snapshot_id: int) -> None:
    """Record the consumed versions for a rollback after the commits before the savepoint have expired."""
    change = load_change(context.catalog, table)
    history = change.history(snapshot_id)
    if not history or PROPERTY_CONSUMED in history[0].summary or consumed_at(change.properties, snapshot_id):
        return
    consumed = versions_to_carry(history)
    if consumed:
        context.run("note_consumed", note_consumed(table.change, snapshot_id, consumed), table)


def drop_savepoint(context: Context, name: Name, savepoint: str) -> None:
    """Drop a savepoint from both side tables.

    :raises VersionUnavailable: neither side table has a savepoint of that name.
    """
    table = load_keyed(context.catalog, name)
    dropped = False
    for number in generation_numbers(context.catalog, table.storage_name):
        for role, tags in zip(("base", "change"), tags_of(context.catalog, table, number), strict=True):
            if savepoint in savepoints(tags):
                side = side_name(table.storage_name, role, number)
                context.run("drop_tag", drop_tag(side, savepoint), table)
                dropped = True
                if role == "change":
                    _forget_consumed(context, table, side, tags[tag_of(savepoint)])
    if not dropped:
        raise VersionUnavailable(
            f"{name} has no savepoint {savepoint!r}",
            where=name.dotted,
            why=f"its savepoints are: {', '.join(sorted(list_savepoints(context.catalog, table))) or 'none'}",
            fix=f"list them: dbt-arctic savepoint {name.schema}.{name.identifier}",
        )


def _forget_consumed(context: Context, table: KeyedTable, change: Name, snapshot_id: int) -> None:
    """Drop the note, unless another savepoint has the same snapshot."""
    state = context.catalog.of(change).load_table(change.schema, change.identifier)
    if state is None or snapshot_id in savepoints(state.tags).values():
        return
    if consumed_at(state.properties, snapshot_id):
        context.run("forget_consumed", forget_consumed(change, snapshot_id), table)
