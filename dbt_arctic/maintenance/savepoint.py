"""Savepoints: a version under a name, which neither expiry nor ``clean`` takes away."""

from __future__ import annotations

from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import create_tag, drop_tag, savepoints, tag_of
from dbt_arctic.keyed.table import side_name
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.generations import generation_numbers, generation_of
from dbt_arctic.maintenance.versions import list_savepoints, resolve, tags_of
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.state import load_keyed


def make_savepoint(edge: Edge, name: Name, savepoint: str, text: str = "current") -> Version:
    """Keep a version under a name: a tag on both side tables. Returns the version.

    Cut off in between, one of them has the tag: it is no savepoint, and is made anew or dropped.

    :raises ConfigError: there is a savepoint of that name, or the name cannot be used.
    """
    tag = tag_of(savepoint)
    table = load_keyed(edge.catalog, name)
    known = list_savepoints(edge.catalog, table)
    if savepoint in known:
        raise ConfigError(
            f"{name} has a savepoint {savepoint} already",
            where=name.dotted,
            why=f"it is the version {known[savepoint]}",
            fix=f"choose another name, or drop it: dbt-arctic savepoint {name.identifier} {savepoint} --drop",
        )
    version = resolve(edge.catalog, table, text, name.dotted)
    generation = generation_of(edge.catalog, table, version.generation)
    for side, snapshot in (
        (generation.base, version.base_snapshot),
        (generation.change, version.change_snapshot),
    ):
        state = edge.catalog.load_table(side.schema, side.identifier)
        if state is not None and tag in state.tags:
            edge.run("drop_tag", drop_tag(side, savepoint), generation)
        edge.run("create_tag", create_tag(side, savepoint, snapshot), generation)
    return version


def drop_savepoint(edge: Edge, name: Name, savepoint: str) -> None:
    """:raises VersionUnavailable: there is none of that name, not even half of one."""
    table = load_keyed(edge.catalog, name)
    dropped = False
    for number in generation_numbers(edge.catalog, table.made_as):
        for role, tags in zip(("base", "change"), tags_of(edge.catalog, table, number), strict=True):
            if savepoint in savepoints(tags):
                side = side_name(table.made_as, role, number)
                edge.run("drop_tag", drop_tag(side, savepoint), table)
                dropped = True
    if not dropped:
        raise VersionUnavailable(
            f"{name} has no savepoint {savepoint!r}",
            where=name.dotted,
            why=f"its savepoints are: {', '.join(sorted(list_savepoints(edge.catalog, table))) or 'none'}",
            fix=f"list them: dbt-arctic savepoint {name.identifier}",
        )
