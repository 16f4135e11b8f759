"""The file list of a source: a table with every file that was found in the source's folder.

A model consumes the file list as it consumes any other Iceberg table: its commit records the snapshot up to
which it has read the list. So which files a model has read is a part of its own commit, in a few bytes.

Columns: ``path`` STRING, ``modified_ms`` BIGINT (UTC milliseconds since the epoch), ``size_bytes`` BIGINT,
``found_at`` TIMESTAMP. Rows are only appended. Two runs may append the same file, so rows are a set.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.catalog.api import CatalogReader, ListedFile, TableState
from dbt_arctic.keyed.names import Name, literal, quote, quote_all

COLUMNS = ("path", "modified_ms", "size_bytes")
PROPERTY_SOURCE = "arctic.files-of"
"""On the table: the source whose files it lists."""


def file_list_name(target: Name, source: str) -> Name:
    """The file list of a source for the models of one schema."""
    return target.sibling(f"{source.replace('.', '__')}__files")


def create_statement(name: Name, source: str) -> str:
    """SQL that creates an empty file list."""
    return (
        f"CREATE TABLE IF NOT EXISTS {name.sql} (`path` STRING NOT NULL, `modified_ms` BIGINT NOT NULL, "
        "`size_bytes` BIGINT NOT NULL, `found_at` TIMESTAMP NOT NULL)\nUSING iceberg\n"
        f"TBLPROPERTIES ('format-version'='3', {literal(PROPERTY_SOURCE)}={literal(source)})"
    )


def insert_statement(name: Name, view: str) -> str:
    """SQL that appends files to a list.

    :param view: a temporary view with the columns of ``COLUMNS`` as strings.
    """
    return (
        f"INSERT INTO {name.sql} ({quote_all((*COLUMNS, 'found_at'))})\n"
        "SELECT /*+ COALESCE(1) */ `path`, CAST(`modified_ms` AS BIGINT), CAST(`size_bytes` AS BIGINT), "
        f"current_timestamp()\nFROM {quote(view)}"
    )


def load_files(catalog: CatalogReader, name: Name, snapshot_id: int | None) -> frozenset[ListedFile]:
    """The files of a list at a snapshot; none without a snapshot."""
    if snapshot_id is None:
        return frozenset()
    rows = catalog.read_rows(name.schema, name.identifier, COLUMNS, snapshot_id)
    return frozenset(ListedFile(str(path), int(at), int(size)) for path, at, size in rows)


def has_snapshot(state: TableState, snapshot_id: int) -> bool:
    """Whether a list still has a snapshot."""
    return any(snapshot.snapshot_id == snapshot_id for snapshot in state.snapshots)


def as_rows(files: Iterable[ListedFile]) -> list[tuple[str, int, int]]:
    """The rows that list files, in the order of ``COLUMNS``."""
    return [(file.path, file.modified_ms, file.size_bytes) for file in sorted(files)]


__all__ = [
    "COLUMNS",
    "PROPERTY_SOURCE",
    "as_rows",
    "create_statement",
    "file_list_name",
    "has_snapshot",
    "insert_statement",
    "load_files",
]
