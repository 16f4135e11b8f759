"""Resolves a version given as a token, a savepoint or a time, and reads its rows."""

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
from dbt_arctic.maintenance.generations import as_shown, generation_of, load_sides
from dbt_arctic.maintenance.generations_at import generations_at
from dbt_arctic.maintenance.pairs import base_for
from dbt_arctic.maintenance.short_versions import complete, is_short
from dbt_arctic.store.generations import generation_numbers
from dbt_arctic.store.state import columns_at, current_version, load_keyed


def resolve(catalog: CatalogReader, table: KeyedTable, text: str, where: str) -> Version:
    """The version for a string.

    It is ``current``, ``1.123.456`` or its short form, a savepoint, or a time (UTC by default).

    :raises VersionUnavailable: the version does not exist, is no longer available, or its short form is
        ambiguous.
    """
    wanted = text.strip()
    if wanted.lower() in RESERVED:
        return current_version(catalog, table)
    if is_short(wanted):
        return complete(catalog, table, wanted, where)
    at_ms = as_time(wanted)
    return find_savepoint(catalog, table, wanted) if at_ms is None else version_at(catalog, table, at_ms)


def as_time(text: str) -> int | None:
    """Milliseconds since the epoch of a date or time in ISO format; ``None`` for any other string.

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
    """All savepoints of a table by name, including those of earlier generations."""
    found: dict[str, Version] = {}
    for number in generation_numbers(catalog, table.storage_name):
        bases, changes = (savepoints(tags) for tags in tags_of(catalog, table, number))
        for name in sorted(bases.keys() & changes.keys()):
            found.setdefault(name, Version(number, changes[name], bases[name]))
    return found


def tags_of(catalog: CatalogReader, table: KeyedTable, number: int) -> list[Mapping[str, int]]:
    """The tags of a generation's base and change table.

    Empty for a table that is missing or not part of it.
    """
    found: list[Mapping[str, int]] = []
    for role in ("base", "change"):
        side = side_name(table.storage_name, role, number)
        state = catalog.of(side).load_table(side.schema, side.identifier)
        ours = state is not None and state.properties.get(PROPERTY_OF) == table.storage_name.dotted
        found.append(state.tags if state is not None and ours else {})
    return found


def find_savepoint(catalog: CatalogReader, table: KeyedTable, name: str) -> Version:
    """The version of a savepoint.

    :raises VersionUnavailable: there is no such savepoint.
    """
    known = list_savepoints(catalog, table)
    if name not in known:
        raise VersionUnavailable(
            f"{table.name} has no version {name!r}",
            where=table.name.dotted,
            why=f"its savepoints are: {', '.join(sorted(known)) or 'none'}",
            fix="give a version from `dbt-arctic history`, a savepoint, or a time such as '2026-01-31 12:00'",
        )
    return known[name]


def version_at(catalog: CatalogReader, table: KeyedTable, at_ms: int) -> Version:
    """The version that was current at a time: the last commit before it, in the generation of that time.

    :raises VersionUnavailable: the time is before the oldest remaining version, or its generation is gone.
    """
    oldest: int | None = None
    for number in generations_at(catalog, table, at_ms):
        generation = generation_of(catalog, table, number)
        base, change = load_sides(catalog, generation)
        history = change.history()
        snapshot = last_until(history, at_ms)
        if snapshot is not None:
            return pair(generation, base.history(), history, snapshot)
        oldest = history[-1].timestamp_ms
    since = datetime.fromtimestamp((oldest or 0) / 1000, timezone.utc)
    raise VersionUnavailable(
        f"{table.name} has no version of that time",
        where=table.name.dotted,
        why=f"the oldest remaining version is from {since:%Y-%m-%d %H:%M:%S} UTC",
        fix=f"choose a version that `dbt-arctic history {table.name.identifier}` lists",
    )


def last_until(history: Sequence[Snapshot], at_ms: int) -> int | None:
    """The last commit before a time, in a history with the newest first."""
    return next((commit.snapshot_id for commit in history if commit.timestamp_ms <= at_ms), None)


def pair(
    table: KeyedTable, base: Sequence[Snapshot], change: Sequence[Snapshot], change_snapshot: int
) -> Version:
    """The base snapshot that belongs to a snapshot of the change table.

    :raises VersionUnavailable: the base snapshot of that time has expired.
    """
    base_snapshot = base_for(base, change, change_snapshot)
    if base_snapshot is None:
        raise VersionUnavailable(
            f"{table.name} cannot be read as of commit {change_snapshot}",
            where=table.name.dotted,
            why="the base table's snapshot of that time has expired",
            fix="choose a later version; a savepoint protects a version from expiry",
        )
    return Version(table.generation.number, change_snapshot, base_snapshot)


def state_at(catalog: CatalogReader, table: KeyedTable, version: Version, keys: str | None = None) -> str:
    """SQL for a table's merged rows at a version, with the current columns; columns added later are NULL.

    :param keys: SQL for the keys whose rows are returned; all rows without it.
    """
    return read.merge_on_read(*_at(catalog, table, version), keys=keys)


def deletes_at(catalog: CatalogReader, table: KeyedTable, version: Version) -> str:
    """SQL for the tombstones of a table with ``sequence_by`` at a version."""
    return read.tombstones_of(*_at(catalog, table, version))


def _at(catalog: CatalogReader, table: KeyedTable, version: Version) -> tuple[KeyedTable, Version, ColumnsAt]:
    generation = generation_of(catalog, table, version.generation)
    known = {
        **columns_at(catalog, generation.base, (version.base_snapshot,)),
        **columns_at(catalog, generation.change, (version.change_snapshot,)),
    }
    return as_shown(table, generation), version, known


def rows_at(catalog: CatalogReader, name: Name, text: str, where: str) -> str:
    """SQL for a keyed table's rows at the version that ``text`` gives."""
    table = load_keyed(catalog, name)
    return state_at(catalog, table.visible, resolve(catalog, table, text, where))


def rows_at_time(catalog: CatalogReader, name: Name, text: str, where: str) -> str:
    """As ``at_version``, but only for a time, so that a mistyped time is not looked up as a savepoint."""
    table = load_keyed(catalog, name)
    at_ms = as_time(text.strip())
    if at_ms is None:
        raise ConfigError(
            f"{text!r} is not a time", where=where, fix="write it as '2026-01-31 12:00:00', in UTC"
        )
    return state_at(catalog, table.visible, version_at(catalog, table, at_ms))
