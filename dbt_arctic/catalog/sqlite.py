"""Reads the rows that Iceberg's JDBC catalog keeps in a SQLite file, without changing a table.

Depends on the two tables of that catalog (schema versions V0 and V1) and on the errors of SQLite. The
metadata that the rows refer to is read elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from dbt_arctic.catalog.jdbc_rows import Row
from dbt_arctic.errors import CatalogUnavailable

BUSY_SECONDS = 15.0
"""How long a read waits for a writer, whose commit locks the file for milliseconds."""


class SqliteRows:
    """The relations of the catalog ``name`` in the SQLite file ``path``. A missing file is an empty catalog.

    Each call opens the file again. So it holds no lock between calls, detects that the file was replaced, and
    shares nothing between threads.

    :raises CatalogUnavailable: the file is damaged, unreadable, or locked for longer than ``busy_seconds``.
    """

    def __init__(self, name: str, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self._name = name
        self._path = path
        self._busy_seconds = busy_seconds

    def has_views(self) -> bool:
        """Always: Spark is given a JDBC catalog with views for it."""
        return True

    def schemas(self) -> list[str]:
        """All namespaces that were created or that contain something, sorted."""
        with self._reading() as connection:
            found: set[str] = set()
            for table, column in (
                ("iceberg_namespace_properties", "namespace"),
                ("iceberg_tables", "table_namespace"),
            ):
                if _columns(connection, table):
                    query = f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = ?"
                    found.update(row[0] for row in connection.execute(query, (self._name,)))
            return sorted(found)

    def relations(self, schema: str, name: str | None = None) -> list[Row]:
        """The relations of a schema by name, or only the one called ``name``."""
        with self._reading() as connection:
            columns = _columns(connection, "iceberg_tables")
            if not columns:
                return []
            # Schema version V0 has no views and no column for the kind; V1 has NULL there for old rows.
            kind = "iceberg_type" if "iceberg_type" in columns else "NULL"
            query = (
                f"SELECT table_name, {kind}, metadata_location FROM iceberg_tables"
                " WHERE catalog_name = ? AND table_namespace = ?"
            )
            values = [self._name, schema]
            if name is not None:
                query += " AND table_name = ?"
                values.append(name)
            rows = connection.execute(query + " ORDER BY table_name", values).fetchall()
        return [Row.of(schema, *row) for row in rows]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._open()) as connection:
                yield connection
        except sqlite3.Error as error:
            raise self._unavailable(error) from error

    def _open(self) -> sqlite3.Connection:
        if not self._path.exists():
            return sqlite3.connect(":memory:")
        try:
            return self._connect("ro")
        except sqlite3.OperationalError as error:
            # A writer was killed during a commit. Its journal must be rolled back before anyone can read, and
            # SQLite requires a writable connection for that.
            if "readonly" not in str(error):
                raise
            return self._connect("rw")

    def _connect(self, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._path))}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=self._busy_seconds)
        try:
            # opening a connection does not read the file
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _unavailable(self, error: sqlite3.Error) -> CatalogUnavailable:
        text = str(error)
        if "locked" in text or "busy" in text:
            return CatalogUnavailable(
                f"The catalog `{self._name}` is locked.",
                where=str(self._path),
                why=f"another program kept the file locked for {self._busy_seconds:g} seconds ({text})",
                fix="close what has the file open (a database browser, a hanging run) and try again",
            )
        if any(words in text for words in ("readonly", "disk is full", "disk I/O")):
            return CatalogUnavailable(
                f"The catalog `{self._name}` cannot be read at the moment.",
                where=str(self._path),
                why=f"a commit was interrupted and cannot be rolled back: {text}",
                fix="make room on the disk, or give this user the right to write to the file and its folder. "
                "Keep the `-journal` file next to it: it is needed to roll the commit back.",
            )
        if isinstance(error, sqlite3.OperationalError):
            return CatalogUnavailable(
                f"The catalog `{self._name}` cannot be read.",
                where=str(self._path),
                why=text,
                fix="check that the file and its folder can be read by this user and that the disk is well",
            )
        return CatalogUnavailable(
            f"The catalog file of `{self._name}` is damaged.",
            where=str(self._path),
            why=text,
            fix=(
                "restore the file from a backup. Without one, move it away and register each table again:"
                f" `CALL {self._name}.system.register_table('schema.table', '<newest *.metadata.json of its"
                " metadata folder>')`. No rows are lost with this file."
            ),
        )


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; empty if it does not exist yet, because Spark creates the file first."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
