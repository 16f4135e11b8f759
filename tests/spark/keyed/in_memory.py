"""The same stories on the lake in memory (``tests/model``): no Spark, the product's statements on DuckDB.

``tests/model/test_conformance.py`` holds that lake against Spark and Iceberg. It fails at any statement that
it does not know.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from dbt_arctic.adapter.engines import RECORDS
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import literal, quote, quote_all
from tests.model import plain  # noqa: F401  # the statements of users
from tests.model.catalog import MemoryCatalog
from tests.model.duck import Duck
from tests.model.lake import Lake
from tests.model.statements import Interpreter, Shared
from tests.model.world import with_spark_errors

Row = dict[str, Any]


class Clock:
    """The machine's, which never shows a time twice: no two commits share theirs, as on a real lake."""

    def __init__(self) -> None:
        self._last = 0

    def now_ms(self) -> int:
        self._last = max(self._last + 1, int(time.time() * 1000))
        return self._last


class Cursor:
    """What a cursor of a connection to Spark has."""

    job_count = -1

    def __init__(self, session: Interpreter) -> None:
        self._session = session
        self._rows: list[tuple[Any, ...]] = []
        self.known_rows: int | None = None

    def execute(self, sql: str) -> None:
        if sql.lstrip().startswith(("SELECT", "WITH", "(", "EXPLAIN")):
            self._rows = with_spark_errors(lambda: self._session.query(sql), sql)
        else:
            self.known_rows = with_spark_errors(lambda: self._session.run(sql), sql)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class Connection:
    """A session on the lake in memory."""

    def __init__(self, shared: Shared) -> None:
        self._session = Interpreter(shared)

    def cursor(self) -> Cursor:
        return Cursor(self._session)

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        found: list[ColumnInfo] = with_spark_errors(lambda: self._session.schema(sql), sql)
        return found

    def close(self) -> None:
        """Nothing is held."""


class Memory:
    """A lake with one schema."""

    duck: Duck | None = None

    def __init__(self, schema: str, *, has_views: bool = True) -> None:
        if Memory.duck is None:
            Memory.duck = Duck()
        self.schema = schema
        self.clock = Clock()
        self._ids = iter(range(10**17, 9 * 10**18, 7_777_777))
        self._shared = Shared(Lake(self.clock.now_ms, lambda: next(self._ids)), Memory.duck)
        self._shared.lake.has_views = self.has_views = has_views

    def connection(self) -> Connection:
        return Connection(self._shared)

    def catalog(self) -> CatalogReader:
        catalog = MemoryCatalog(self._shared.lake, self.schema)
        return catalog if self.has_views else WithRecords(catalog, RECORDS)

    def close(self) -> None:
        self._shared.close()


def rows_sql(rows: Sequence[Row], types: Mapping[str, str]) -> str:
    """A model's SQL that produces these rows."""
    names = [f"c{at}" for at in range(len(types))]
    casts = ", ".join(
        f"CAST({name} AS {type_}) AS {quote(column)}"
        for name, (column, type_) in zip(names, types.items(), strict=True)
    )
    listed: Iterable[Row] = rows or [{}]
    lines = ", ".join(f"({', '.join(_value(row.get(column)) for column in types)})" for row in listed)
    nothing = "" if rows else "\nWHERE false"
    return f"SELECT {casts}\nFROM VALUES {lines} AS s({', '.join(names)}){nothing}"


def _value(value: Any) -> str:
    return "NULL" if value is None else literal(str(value))


def read(connection: Connection, sql: str, columns: Sequence[str]) -> list[Row]:
    """The rows of a query in the form in which the tests keep them."""
    cursor = connection.cursor()
    cursor.execute(f"SELECT {quote_all(columns)} FROM ({sql})")
    return [dict(zip(columns, map(_told_as_json, row), strict=True)) for row in cursor.fetchall()]


def _told_as_json(value: Any) -> Any:
    if isinstance(value, Decimal | float) or type(value) is date:
        return str(value)
    assert value is None or isinstance(value, int | str), f"not known in memory: {value!r}"
    return value
