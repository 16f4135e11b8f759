"""Reads the rows that Iceberg's JDBC catalog keeps in a SQLite file, without changing a table.

Depends on the errors of SQLite. The metadata that the rows refer to is read elsewhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from dbt_arctic.catalog.jdbc_rows import JdbcRows
from dbt_arctic.errors import CatalogUnavailable

BUSY_SECONDS = 15.0
"""How long a read waits for a writer, whose commit locks the file for milliseconds."""


class SqliteRows(JdbcRows):
    """The relations of the catalog ``name`` in the SQLite file ``path``. A missing file is an empty catalog.

    Each call opens the file again. So it holds no lock between calls, detects that the file was replaced, and
    shares nothing between threads.

    :raises CatalogUnavailable: the file is damaged, unreadable, or locked for longer than ``busy_seconds``.
    """

    def __init__(self, name: str, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        super().__init__(name)
        self._path = path
        self._busy_seconds = busy_seconds

    def has_views(self) -> bool:
        return True  # Spark is given a JDBC catalog with views for it

    @contextmanager
    def _database(self) -> Iterator[_Open]:
        try:
            with closing(self._open()) as connection:
                yield _Open(connection)
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
                fix="free some disk space, or give this user permission to write to the file and its folder. "
                "Keep the `-journal` file next to it: it is needed to roll the commit back.",
            )
        if isinstance(error, sqlite3.OperationalError):
            return CatalogUnavailable(
                f"The catalog `{self._name}` cannot be read.",
                where=str(self._path),
                why=text,
                fix="check that this user can read the file and its folder, and that the disk is healthy",
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


class _Open:
    """An open connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> Collection[str]:
        return {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def rows(self, sql: str, values: dict[str, str]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()
