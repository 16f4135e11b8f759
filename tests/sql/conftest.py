"""Generated SQL on DuckDB: Spark's text translated, Iceberg's snapshots and metadata columns as plain ones.

``x VERSION AS OF 7`` reads the table ``x@7``. ``_last_updated_sequence_number`` is a column like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import duckdb
import pytest
import sqlglot

from dbt_arctic.keyed.checks import EXACT_JSON

_PINNED = re.compile(r"`([^`]+)` VERSION AS OF (\d+)")


@lru_cache(maxsize=256)
def _translated(spark_sql: str) -> str:
    """The statement for DuckDB. Hypothesis runs a statement on many tables, and translates it once."""
    # DuckDB's JSON always has NULLs.
    text = _PINNED.sub(r"`\1@\2`", spark_sql).replace(f", {EXACT_JSON})", ")")
    (translated,) = sqlglot.transpile(text, read="spark", write="duckdb")
    # Spark's raise_error has any type; DuckDB's error() needs a type.
    return re.sub(r"\bRAISE_ERROR\(", "error(", translated, flags=re.IGNORECASE)


class Duck:
    """A database with the catalog ``lake`` and its schema ``s``."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        self.connection.execute("ATTACH ':memory:' AS lake")
        self.connection.execute("CREATE SCHEMA lake.s")

    def table(self, name: str, columns: str, rows: Sequence[tuple[Any, ...]] = ()) -> None:
        self.connection.execute(f'CREATE OR REPLACE TABLE lake.s."{name}" ({columns})')
        if rows:
            places = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
            values = [value for row in rows for value in row]
            self.connection.execute(f'INSERT INTO lake.s."{name}" VALUES {places}', values)

    def query(self, spark_sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(_translated(spark_sql)).fetchall()


@pytest.fixture
def duck() -> Iterator[Duck]:
    made = Duck()
    yield made
    made.connection.close()
