"""Spark's queries on DuckDB: the text translated once for each shape, with the tables that a caller
registers.

What differs between two statements of one shape (names, numbers of snapshots and transactions, text, lists)
is removed before the translation and inserted after it, because translating costs far more than running.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.checks import EXACT_JSON

_PART = r"`(?:[^`]|``)+`"
_VALUES = r"VALUES (?:\((?:[^()'`]|'(?:[^'\\`]|\\.)*')*\)(?:, )?)+"
_TOKEN = re.compile(
    rf"(?P<ref>{_PART}\.{_PART}\.{_PART}(?:\.{_PART})?(?: VERSION AS OF \d+)?)(?!\()"
    rf"|(?P<values>{_VALUES})"
    r"|(?P<text>'(?:[^'\\]|\\.)*')"
    r"|(?P<list>(?<=\bIN )\(\d+(?:, \d+)*\))"
    r"|(?P<number>\b\d{7,}\b)"
    rf"|(?P<name>{_PART})"
)
_VALUE = re.compile(r"(?P<text>'(?:[^'\\]|\\.)*')|\b(?P<long>\d+)L\b")
_ESCAPES = {"n": "\n", "r": "\r", "0": "\0", "u0024": "$"}
_ESCAPE = re.compile(r"\\(u0024|.)", re.DOTALL)

TYPES = {
    "bigint": "BIGINT",
    "int": "INTEGER",
    "smallint": "SMALLINT",
    "string": "VARCHAR",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_FROM_DUCK = {**{duck: spark for spark, duck in TYPES.items()}, "HUGEINT": "bigint"}

Resolve = Callable[[str, bool], str]
"""From a table's name as the statement has it (and whether the statement asks for hidden columns) to what
DuckDB reads in its place."""


class QueryFailed(Exception):
    """DuckDB refuses the query: its text."""

    def __init__(self, error: Exception, sql: str) -> None:
        super().__init__(f"{error}\n{sql}")
        _, by_query, raised = str(error).partition("Invalid Input Error: AR-")
        self.raised = f"AR-{raised}" if by_query else ""
        """What the query itself raised, with ``raise_error``."""


def duck_type(spark_type: str) -> str:
    return spark_type.upper() if spark_type.startswith("decimal(") else TYPES[spark_type]


def unescape(literal: str) -> str:
    """The text of a literal of Spark SQL."""
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found.group(1), found.group(1)), literal[1:-1])


def sql_literal(value: Any, type_: str) -> str:
    if value is None:
        return f"NULL::{type_}"
    if isinstance(value, bool | int | float):
        return f"{value}::{type_}"
    return f"{_text(str(value))}::{type_}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _as_duck(found: re.Match[str]) -> str:
    """A value as DuckDB has it."""
    return f"{found['long']}::BIGINT" if found["long"] else _text(unescape(found.group()))


class Duck:
    """One in-memory database."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        self.connection.execute("CREATE MACRO arctic_bucket(n, v) AS hash(v) % n")
        self.connection.execute("CREATE MACRO spark_partition_id() AS 0")
        self.connection.execute("CREATE MACRO xxhash64(seed, v) AS hash(seed || ' ' || v)")
        names = " ".join(f"WHEN '{duck}' THEN '{spark}'" for duck, spark in _FROM_DUCK.items())
        self.connection.execute(
            f"CREATE MACRO spark_typeof(v) AS CASE typeof(v) {names} ELSE lower(typeof(v)) END"
        )
        self.connection.execute("CREATE MACRO timestamp_seconds(s) AS make_timestamp(s * 1000000)")
        self._schemas: dict[str, list[ColumnInfo]] = {}

    def query(self, spark_sql: str, resolve: Resolve) -> list[tuple[Any, ...]]:
        return self._execute(self.translate(spark_sql, resolve)).fetchall()

    def schema(self, spark_sql: str, resolve: Resolve) -> list[ColumnInfo]:
        text = self.translate(spark_sql, resolve)
        if text not in self._schemas:
            rows = self._execute(f"DESCRIBE {text}").fetchall()
            columns = [ColumnInfo(row[0], _FROM_DUCK.get(row[1], row[1].lower())) for row in rows]
            if "snapshot_" in text:  # such a table is gone one day
                return columns
            self._schemas[text] = columns
        return self._schemas[text]

    def table(self, name: str, columns: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> None:
        """:param columns: name and type in DuckDB's words."""
        names = ", ".join(f'"{column}"' for column, _ in columns)
        if not rows:
            listed = ", ".join(f'"{column}" {type_}' for column, type_ in columns)
            self._execute(f"CREATE TABLE {name} ({listed})")
            return
        types = [type_ for _, type_ in columns]
        lines = (", ".join(map(sql_literal, row, types)) for row in rows)
        values = ", ".join(f"({line})" for line in lines)
        self._execute(f"CREATE TABLE {name} AS SELECT * FROM (VALUES {values}) AS t({names})")

    def keep(self, name: str, text: str) -> None:
        """:param text: a query of DuckDB's, as of ``translate``."""
        self._execute(f"CREATE TABLE {name} AS {text}")

    def drop(self, name: str) -> None:
        self._execute(f"DROP TABLE IF EXISTS {name}")

    def translate(self, spark_sql: str, resolve: Resolve) -> str:
        # DuckDB's JSON always has NULLs.
        spark_sql = spark_sql.replace(f", {EXACT_JSON})", ")")
        parts: dict[str, str] = {}
        counts: dict[str, int] = {}
        hidden = "_last_updated_sequence_number" in spark_sql or "`_row_id`" in spark_sql

        def place(kind: str, original: str) -> str:
            """The same text is the same part: GROUP BY an expression has to stay that expression."""
            key = f"{kind} {original}"
            if key not in parts:
                counts[kind] = counts.get(kind, 0) + 1
                # A number that no statement has, of a width that no other number begins with.
                number = f"7{counts[kind]:03d}"
                made = f"77{number}77000777" if kind in ("number", "list") else f"zq{kind}{number}qz"
                parts[key] = made.replace("77000777", "77000778") if kind == "list" else made
            return parts[key]

        def take(found: re.Match[str]) -> str:
            kind = str(found.lastgroup)
            text = found.group()
            if kind == "name":
                return text
            if kind == "list":
                return f"({place(kind, text)})"
            if kind == "text":
                return text if len(text) <= 4 else f"'{place(kind, text)}'"
            return place(kind, text)

        translated = _translate(_TOKEN.sub(take, spark_sql))
        for key, made in parts.items():
            kind, _, original = key.partition(" ")
            if kind == "ref":
                translated = translated.replace(made, resolve(original, hidden))
            elif kind == "values":
                translated = translated.replace(made, f"({_VALUE.sub(_as_duck, original)})")
            elif kind == "text":
                translated = translated.replace(f"'{made}'", _text(unescape(original)))
            elif kind == "list":
                translated = translated.replace(f"({made})", original)
            else:
                translated = translated.replace(made, original)
        return translated

    def _execute(self, text: str) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(text)
        except (duckdb.ParserException, duckdb.CatalogException) as error:
            if isinstance(error, duckdb.CatalogException) and "Function" not in str(error):
                raise QueryFailed(error, text) from error
            raise NotImplementedError(f"the model of Spark does not know: {error}\n{text}") from error
        except duckdb.Error as error:
            raise QueryFailed(error, text) from error


def _inline(node: exp.Expression) -> exp.Expression:
    """``inline``, which has a row for each struct and a column for each field."""
    if not isinstance(node, exp.Inline):
        return node
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
    return exp.Anonymous(this="UNNEST", expressions=[node.this, depth])


def _count_tuples(count: exp.Count) -> None:
    """Several values are counted where none is NULL, which DuckDB does for one value only."""
    distinct = isinstance(count.this, exp.Distinct)
    values = count.this.expressions if distinct else [count.this, *count.expressions]
    if len(values) > 1:
        known = exp.and_(*(value.is_(exp.null()).not_() for value in values))
        tuple_ = exp.case().when(known, exp.Tuple(expressions=values))
        count.set("this", exp.Distinct(expressions=[tuple_]) if distinct else tuple_)
        count.set("expressions", None)


@lru_cache(maxsize=4096)
def _translate(shape: str) -> str:
    tree = sqlglot.parse_one(shape, read="spark").transform(_inline)
    for counted in tree.find_all(exp.Count):
        _count_tuples(counted)
    translated = tree.sql("duckdb")
    # Spark's raise_error has any type; DuckDB's error() needs a type.
    translated = re.sub(r"\bRAISE_ERROR\(", "error(", translated, flags=re.IGNORECASE)
    # A hash of several values, of which only equality matters.
    translated = re.sub(r"\bXXHASH64\(", "hash(", translated, flags=re.IGNORECASE)
    translated = re.sub(r"\bTYPEOF\(", "spark_typeof(", translated, flags=re.IGNORECASE)
    translated = re.sub(
        r"\bRANGE\((?:0, )?(\d+)(?:, 1, 1)?\)", r"(SELECT range AS id FROM range(\1))", translated
    )
    return re.sub(r'"?\blake"?\."?system"?\."?bucket"?\(', "arctic_bucket(", translated, flags=re.IGNORECASE)
