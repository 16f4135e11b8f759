"""Orphan files: files in the folders of tables that no version refers to, left by killed writers.

Iceberg finds and removes them. This module decides which folders it may search: only those that a single
relation of the whole catalog uses. After a rename, another table may have been created in the folder of the
old name, and each table's files would look like orphans to the other.

Iceberg lists a local folder and HDFS with Hadoop's client. Objects in a store are listed with the client of
the table, which has the credentials of the catalog, also those that a REST server hands out; a Spark need not
have Hadoop's client of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.locations import canonical_location
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.store.context import Context

DAY_MS = 24 * 60 * 60 * 1000
_STORES = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"}
"""The schemes of stores whose clients in Iceberg can list objects."""


@dataclass(frozen=True)
class Orphans:
    """The orphan files of one table's folder."""

    table: Name
    files: tuple[str, ...]


@dataclass(frozen=True)
class Shared:
    """A table whose folder is not searched, and why."""

    table: Name
    why: str


def find_orphans(
    context: Context, catalog_name: str, schemas: Sequence[str], older_than_ms: int
) -> tuple[list[Orphans], list[Shared]]:
    """Find orphan files with one statement per table, which lists the table's folder."""
    found: list[Orphans] = []
    shared: list[Shared] = []
    before_ms = context.now_ms() - older_than_ms
    # Another catalog of the profile may have tables in the same folders.
    catalogs = context.catalog.names_with(Name(catalog_name, "", ""))
    folders = {name: folder for one in catalogs for name, folder in _folders(context.catalog, one).items()}
    chosen = (name for name in folders if name.catalog == catalog_name and name.schema in schemas)
    for name in sorted(chosen):
        folder = folders[name]
        if folder is None or not folder.is_table:
            continue
        why = _shared_with(name, folders)
        if why:
            shared.append(Shared(name, why))
            continue
        rows = context.query(_statement(name, before_ms, folder.path, dry_run=True))
        if rows:
            found.append(Orphans(name, tuple(sorted(str(row[0]) for row in rows))))
    return found, shared


def remove_orphans(context: Context, orphans: Orphans, older_than_ms: int) -> None:
    """Remove orphan files. Iceberg searches again, so files that a new version uses by now are kept."""
    before_ms = context.now_ms() - older_than_ms
    statement = _statement(orphans.table, before_ms, orphans.files[0], dry_run=False)
    context.run("remove_files", statement, None)


@dataclass(frozen=True)
class _Folder:
    path: str
    is_table: bool


def _folders(catalog: CatalogReader, catalog_name: str) -> dict[Name, _Folder | None]:
    """The folder of every table and view; ``None`` if it is unknown."""
    found: dict[Name, _Folder | None] = {}
    for schema in catalog.of(Name(catalog_name, "", "")).list_schemas():
        inventory = take_inventory(catalog, catalog_name, schema)
        damaged: list[str] = [*inventory.damaged_tables, *inventory.damaged_views]
        found |= dict.fromkeys((inventory.name(name) for name in damaged), None)
        for name, table in inventory.tables.items():
            found[inventory.name(name)] = _Folder(canonical_location(table.location) + "/", True)
        for name, view in inventory.views.items():
            known = _Folder(canonical_location(view.location) + "/", False) if view.location else None
            found[inventory.name(name)] = known
    return found


def _shared_with(name: Name, folders: dict[Name, _Folder | None]) -> str:
    own = folders[name]
    assert own is not None, "its own folder was just read"
    for other, folder in sorted(folders.items()):
        if other == name:
            continue
        if folder is None and other.schema == name.schema:
            return f"{other} cannot be read and may have files in the same folder"
        if folder and (folder.path.startswith(own.path) or own.path.startswith(folder.path)):
            return f"{other} has files in the same folder"
    return ""


def _statement(table: Name, before_ms: int, place: str, dry_run: bool) -> str:
    """The call of Iceberg's procedure.

    :param place: the folder of the table, or a file in it.
    """
    by_table = ", prefix_listing => true" if urlsplit(place).scheme in _STORES else ""
    return (
        f"CALL {quote(table.catalog)}.system.remove_orphan_files(table => {table.procedure_argument()}, "
        f"older_than => timestamp_millis({before_ms}), dry_run => {str(dry_run).lower()}{by_table})"
    )
