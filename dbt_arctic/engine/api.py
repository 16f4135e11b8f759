"""What the rest of dbt-arctic may expect of a Spark, whichever way it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

PARTITIONS = "spark.sql.shuffle.partitions"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"


class ColumnInfo(NamedTuple):
    """One column of a result: its name and its Spark type (``decimal(12,2)``, ``struct<a:int>``)."""

    name: str
    type: str


class Traffic(NamedTuple):
    """Bytes of the files that statements opened and of those that they added, and how many jobs they ran."""

    read: int
    written: int
    jobs: int


class Cursor(Protocol):
    """A DB-API-like cursor. One statement at a time; errors always surface."""

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """DB-API description (7-tuples; name first, Spark type second), ``None`` for a write or DDL."""
        ...

    @property
    def rowcount(self) -> int:
        """Rows returned by a query or written by a write; -1 where that has no meaning."""
        ...

    @property
    def job_count(self) -> int | None:
        """How many Spark jobs the last statement ran; ``None`` where Spark does not tell (Connect)."""
        ...

    @property
    def statement_id(self) -> str:
        """A unique id of the last statement: Spark's job group, shown in Spark's UI."""
        ...

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement to its end. Raises an ``ArcticError``."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """One Spark session of its own: conf and temporary views are not shared with others."""

    @property
    def session(self) -> Any:
        """The pyspark session, for the code of Python models; the first use starts or opens it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether a session exists already that statements may be sent to."""
        ...

    def remember_state(self) -> None:
        """Told by who makes something in ``session`` that a new session would lack."""
        ...

    def cursor(self) -> Cursor: ...

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns a query would return: analysis only, no Spark job."""
        ...

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A temporary view over literal rows, every column a string (or NULL)."""
        ...

    def noting(self) -> AbstractContextManager[list[str]]:
        """The ids of the statements that are begun while the context lasts."""
        ...

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        """What statements of this connection, named by their ids, read and wrote just now.

        ``None`` where Spark does not tell (Connect).
        """
        ...

    def cancel(self) -> None:
        """Stop the statement that runs now, and send none any more; each fails with ``StatementCancelled``.

        What Spark has committed when it is called is reported as done.
        """
        ...

    def close(self) -> None: ...


class Engine(Protocol):
    """Where connections come from. Making one starts nothing; its first statement does."""

    def connect(self) -> Connection: ...

    def close(self) -> None: ...
