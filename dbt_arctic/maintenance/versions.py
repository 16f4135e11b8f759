"""From what a person calls a version (a token, a savepoint, a time) to the version, and to its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from dbt_arctic.catalog.api import CatalogReader, Snapshot
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed import read
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import RESERVED, savepoints
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable, side_name
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.generations import (
    as_shown,
    generation_numbers,
    generation_of,
    load_sides,
)
from dbt_arctic.maintenance.pairs import base_for
from dbt_arctic.maintenance.restored import restored_ms
from dbt_arctic.store.state import columns_at, current_version, load_keyed


def resolve(catalog: CatalogReader, table: KeyedTable, text: str, where: str) -> Version:
    """The version that a text names: ``current``, ``1.123.456``, a savepoint, or a time (UTC by default).

    :raises VersionUnavailable: there is no such version, or none any more.
    """
    wanted = text.strip()
    if wanted.lower() in RESERVED:
        return current_version(catalog, table)
    if wanted.count(".") == 2 and wanted.replace(".", "").isdigit():
        return Version.parse(wanted, where)
    at_ms = as_time(wanted)
    return find_savepoint(catalog, table, wanted) if at_ms is None else version_at(catalog, table, at_ms)


def as_time(text: str) -> int | None:
    """Milliseconds since the epoch of a date or time in ISO form; ``None`` for any other text.

    >>> as_time("1970-01-01 00:00:02"), as_time("1970-01-01T01:00:00+01:00"), as_time("release")
    (2000, 0, None)
    """
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    at = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at
    return round(at.timestamp() * 1000)


def list_savepoints(catalog: CatalogReader, table: KeyedTable) -> dict[str, Version]:
    """Every savepoint of a table by name, those of earlier generations included."""
    found: dict[str, Version] = {}
    for number in generation_numbers(catalog, table.made_as):
        bases, changes = (savepoints(tags) for tags in tags_of(catalog, table, number))
        for name in sorted(bases.keys() & changes.keys()):
            found.setdefault(name, Version(number, changes[name], bases[name]))
    return found


def tags_of(catalog: CatalogReader, table: KeyedTable, number: int) -> list[Mapping[str, int]]:
    """The tags of a generation's base and change table; none of one that is not there, or not ours."""
    found: list[Mapping[str, int]] = []
    for role in ("base", "change"):
        side = side_name(table.made_as, role, number)
        state = catalog.load_table(side.schema, side.identifier)
        ours = state is not None and state.properties.get(PROPERTY_OF) == table.made_as.dotted
        found.append(state.tags if state is not None and ours else {})
    return found


def find_savepoint(catalog: CatalogReader, table: KeyedTable, name: str) -> Version:
    known = list_savepoints(catalog, table)
    if name not in known:
        raise VersionUnavailable(
            f"{table.name} has no version {name!r}",
            where=table.name.dotted,
            why=f"its savepoints are: {', '.join(sorted(known)) or 'none'}",
            fix="name a version as `dbt-arctic history` prints it, a savepoint, or a time as in "
            "'2026-01-31 12:00'",
        )
    return known[name]


def version_at(catalog: CatalogReader, table: KeyedTable, at_ms: int) -> Version:
    """What was shown at a time: of the generation of that time the last commit up to then.

    :raises VersionUnavailable: it was before everything that is left.
    """
    back_ms = restored_ms(catalog, table)
    oldest: int | None = None
    for number in _newest_first(table, at_ms, back_ms):
        generation = generation_of(catalog, table, number)
        base, change = load_sides(catalog, generation)
        history = change.history()
        snapshot = last_until(history, at_ms)
        if snapshot is not None:
            return pair(generation, base.history(), history, snapshot)
        oldest = history[-1].timestamp_ms
    since = datetime.fromtimestamp((oldest or 0) / 1000, timezone.utc)
    raise VersionUnavailable(
        f"what {table.name} was at that time is not on record",
        where=table.name.dotted,
        why=f"the oldest version that is left is of {since:%Y-%m-%d %H:%M:%S} UTC",
        fix=f"choose a version that `dbt-arctic history {table.name.identifier}` lists",
    )


def _newest_first(table: KeyedTable, at_ms: int, back_ms: int | None) -> list[int]:
    """The generations that may have been shown at a time, the likeliest first."""
    current, previous = table.generation.number, table.previous
    if previous is None:
        return [current]
    # After a full refresh was undone, the younger generation was shown up to that moment only.
    undone = previous.number > current
    if undone and back_ms is not None and at_ms >= back_ms:
        return [current]
    return [previous.number, current] if undone else [current, previous.number]


def last_until(history: Sequence[Snapshot], at_ms: int) -> int | None:
    """The last commit up to a time, of a history that is newest first."""
    return next((commit.snapshot_id for commit in history if commit.timestamp_ms <= at_ms), None)


def pair(
    table: KeyedTable, base: Sequence[Snapshot], change: Sequence[Snapshot], change_snapshot: int
) -> Version:
    """The base snapshot that belongs to a snapshot of the change table.

    :raises VersionUnavailable: the base of that time was expired.
    """
    base_snapshot = base_for(base, change, change_snapshot)
    if base_snapshot is None:
        raise VersionUnavailable(
            f"{table.name} cannot be read as it was at the commit {change_snapshot}",
            where=table.name.dotted,
            why="the base table's snapshot of that time was expired",
            fix="choose a later version; a savepoint keeps one for as long as it is needed",
        )
    return Version(table.generation.number, change_snapshot, base_snapshot)


def state_at(catalog: CatalogReader, table: KeyedTable, version: Version, keys: str | None = None) -> str:
    """SQL of a table's merged rows at a version, with the columns of today: one that came later is NULL.

    :param keys: SQL of the only keys whose rows are wanted.
    """
    return read.merge_on_read(*_at(catalog, table, version), keys=keys)


def deletes_at(catalog: CatalogReader, table: KeyedTable, version: Version) -> str:
    """SQL of the deletes that a table with a sequence remembered at a version."""
    return read.remembered_deletes(*_at(catalog, table, version))


def _at(catalog: CatalogReader, table: KeyedTable, version: Version) -> tuple[KeyedTable, Version, ColumnsAt]:
    generation = generation_of(catalog, table, version.generation)
    known = {
        **columns_at(catalog, generation.base, (version.base_snapshot,)),
        **columns_at(catalog, generation.change, (version.change_snapshot,)),
    }
    return as_shown(table, generation), version, known


def rows_at(catalog: CatalogReader, name: Name, text: str, where: str) -> str:
    """SQL of a keyed table's rows at what ``text`` names."""
    table = load_keyed(catalog, name)
    return state_at(catalog, table.visible, resolve(catalog, table, text, where))


def rows_at_time(catalog: CatalogReader, name: Name, text: str, where: str) -> str:
    """The same for a time only, so that a mistyped one is not taken for a savepoint."""
    table = load_keyed(catalog, name)
    at_ms = as_time(text.strip())
    if at_ms is None:
        raise ConfigError(
            f"{text!r} is not a time", where=where, fix="write it as '2026-01-31 12:00:00', in UTC"
        )
    return state_at(catalog, table.visible, version_at(catalog, table, at_ms))
