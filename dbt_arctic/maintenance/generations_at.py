"""The generation of a keyed table that was current at a time."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.table import Generation, KeyedTable
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.store.publish_view import Switch, switches_of


def generations_at(catalog: CatalogReader, table: KeyedTable, at_ms: int) -> list[int]:
    """The generations that may have been current at a time, the most likely first.

    The view records its latest switches. Before them, the newest generation with a commit was current.

    :raises VersionUnavailable: the generation that was current then is gone.
    """
    view = catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
    switches = [] if view is None else switches_of(view)
    at = _last_until(catalog, table, switches, at_ms)
    if at is None:
        kept = filter(None, (table.generation, table.previous))
        return sorted((generation.number for generation in kept), reverse=True)
    if at == len(switches) - 1:
        # Of two switches at the same moment, the earlier one is current, and the other one was undone.
        return [table.generation.number]
    generation = switches[at].generation
    if not _is_kept(table, generation):
        raise VersionUnavailable(
            f"{table.name} has no version of that time",
            where=table.name.dotted,
            why=f"generation {generation.number}, which was current then, is gone",
            fix=f"choose a version that `dbt-arctic history {table.name.identifier}` lists",
        )
    return [generation.number]


def _last_until(
    catalog: CatalogReader, table: KeyedTable, switches: Sequence[Switch], at_ms: int
) -> int | None:
    """The place of the last switch until a time."""
    for at in reversed(range(len(switches))):
        since_ms, generation = switches[at]
        is_built = all(generation.number > before.generation.number for before in switches[:at])
        if since_ms > at_ms and is_built and _is_kept(table, generation):
            # Its first commit is listed with a time right before the switch.
            _, change = load_sides(catalog, generation_of(catalog, table, generation.number))
            since_ms = change.history()[-1].timestamp_ms
        if since_ms <= at_ms:
            return at
    return None


def _is_kept(table: KeyedTable, generation: Generation) -> bool:
    return generation in (table.generation, table.previous)
