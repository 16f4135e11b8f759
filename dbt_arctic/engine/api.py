"""The interface of a Spark connection for the rest of dbt-arctic, independent of the connection method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

PARTITIONS = "spark.sql.shuffle.partitions"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


class ColumnInfo(NamedTuple):
    """One column of a result: its name and its Spark type (``decimal(12,2)``, ``struct<a:int>``)."""

    name: str
    type: str


class Traffic(NamedTuple):
    """Bytes of the files that statements read and wrote, and the number of their jobs."""

    read: int
    written: int
    jobs: int


class FileRead(NamedTuple):
    """Files to read, and how.

    :param format: of Spark: ``json``, ``csv``, ``parquet``, ``orc``, ``text``.
    :param paths: the files.
    :param base: the folder below which names of folders are columns (``day=2026-01-01``).
    :param schema: the columns in Spark's DDL; empty to infer them.
    :param options: of Spark's reader.
    :param positions: whether the view has ``_arctic_block`` and ``_arctic_order`` as well, by which the rows
        of a file are in their order.
    """

    format: str
    paths: Sequence[str]
    base: str
    schema: str
    options: Mapping[str, str]
    positions: bool = False


class SourceRead(NamedTuple):
    """A data source of Spark, and how to read it.

    :param format: ``kafka`` or ``jdbc``.
    :param options: of the reader. They may contain passwords, so they are in no statement.
    :param predicates: of the format ``jdbc``: the condition of each of several concurrent statements.
    """

    format: str
    options: Mapping[str, str]
    predicates: Sequence[str] = ()


@dataclass(frozen=True)
class FileSample:
    """The columns of a file, and its first rows.

    :param rows: values by column: texts of a CSV file, values of JSON, otherwise Python's own types.
    :param types: Spark types by column, if the file has them; empty if they have to be guessed from the rows.
    :param options: options of Spark's reader that the file needs.
    """

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    types: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


class Cursor(Protocol):
    """A DB-API-like cursor. It runs one statement at a time, and raises every error."""

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """DB-API description (7-tuples; name first, Spark type second); ``None`` for a write or DDL."""
        ...

    @property
    def known_rows(self) -> int | None:
        """Rows returned by a query or written by a write; ``None`` if unknown or not applicable."""
        ...

    @property
    def rowcount(self) -> int:
        """The same for users of DB-API, where -1 stands for an unknown number (PEP 249)."""
        ...

    @property
    def job_count(self) -> int | None:
        """The number of Spark jobs of the last statement; ``None`` if Spark does not report it (Connect)."""
        ...

    @property
    def statement_id(self) -> str:
        """A unique id of the last statement: Spark's job group, shown in Spark's UI."""
        ...

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement to completion. Raises an ``ArcticError``."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All remaining rows."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; ``None`` if there is none."""

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""

    def close(self) -> None:
        """Release the rows."""


class Connection(Protocol):
    """One separate Spark session: conf and temporary views are not shared with other connections."""

    @property
    def session(self) -> Any:
        """The pyspark session, for the code of Python models. The first access starts or opens it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether a session exists to which statements can be sent."""
        ...

    def remember_state(self) -> None:
        """Record that ``session`` holds state that a new session would lack."""
        ...

    def conf(self, *, start: bool = True) -> Mapping[str, str]:
        """All settings that are set in the session.

        :param start: whether a session may be opened to read them. Otherwise they are those that a new
            session begins with. For a server, one is opened if these are not known yet.
        """
        ...

    def cursor(self) -> Cursor:
        """Create a cursor."""

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns that a query would return, by analysis only and without a Spark job."""
        ...

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Create a temporary view over literal rows with string columns (or NULL)."""
        ...

    def create_file_view(self, name: str, files: FileRead) -> None:
        """A temporary view over exactly these files. Adds ``_source_file`` and ``_source_modified``.

        Lists the files; reads none.
        """
        ...

    def create_source_view(self, name: str, source: SourceRead) -> None:
        """A temporary view over a data source, with the columns of its reader. Reads no rows.

        :raises DependencyError: Spark does not have the reader.
        """
        ...

    def file_columns(self, files: FileRead) -> list[ColumnInfo]:
        """The columns that Spark infers from files. Reads them, if their format has no schema."""
        ...

    def noting(self) -> AbstractContextManager[list[str]]:
        """Collect the ids of the statements that are started while the context lasts."""
        ...

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        """The bytes that recent statements of this connection read and wrote, by statement id.

        ``None`` if Spark does not report it (Connect).
        """
        ...

    def cancel(self) -> None:
        """Stop the running statement and refuse new ones. Each fails with ``StatementCancelled``.

        Commits that Spark has completed before the call are reported as successful.
        """
        ...

    def close(self) -> None:
        """Close the session."""


class Engine(Protocol):
    """Creates connections. Only the first statement of a connection starts Spark."""

    def connect(self) -> Connection:
        """Create a connection."""

    def close(self) -> None:
        """Release the engine."""
