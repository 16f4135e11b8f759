"""Computes once the affected keys of a refresh, and other values that several of its statements read."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from dbt_arctic.auto.stage_results import StagedValues
from dbt_arctic.auto.temporary_views import make_view
from dbt_arctic.keyed.names import is_as_stored, literal, quote
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.store.context import Context

RANGED = ("tinyint", "smallint", "int", "bigint", "date", "string")
"""Types with exact literals, whose order in Spark is the same as in file statistics."""


@contextmanager
def kept_rows(context: Context, table: KeyedTable, sql: str, what: Literal["keys", "rows"]) -> Iterator[str]:
    """Cache the rows of a query in this session, in memory or on disk, and return the cache's name.

    Keys are computed by the first query that reads them, which selects their MIN and MAX. Rows are computed
    immediately, because Spark chooses its joins by their number.
    """
    name = f"arctic_{what}_{secrets.token_hex(6)}"
    when = "LAZY " if what == "keys" else ""
    if what == "keys" and context.cores:
        # A statement that reads the keys five times would start five times as many tasks. Starting them takes
        # longer than reading the keys.
        sql = f"SELECT /*+ COALESCE({2 * context.cores}) */ *\nFROM (\n{sql}\n)"
    make_view(context, f"stage_{what}", f"CACHE {when}TABLE {quote(name)} AS\n{sql}", table)
    try:
        yield name
    finally:
        context.run(f"drop_{what}", f"DROP VIEW IF EXISTS {quote(name)}", table)


@contextmanager
def staged_values(
    context: Context, table: KeyedTable, sql: str, columns: Sequence[str]
) -> Iterator[StagedValues]:
    """Cache keys or other values, and find their ranges."""
    with kept_rows(context, table, sql, "keys") as name:
        yield counted(context, quote(name), columns)


def counted(context: Context, relation: str, columns: Sequence[str]) -> StagedValues:
    """Count values and find their ranges, by one query.

    :param relation: the relation of the values, for a FROM clause.
    """
    named = [quote(one) for one in columns]
    # As strings: Python has no year 0 or 10000, which a table may use for "always".
    bounds = (
        f"CAST(min({one}) AS STRING), CAST(max({one}) AS STRING), count({one}), typeof(min({one}))"
        for one in named
    )
    found = context.query(f"SELECT {', '.join(['count(*)', *bounds])} FROM {relation}")[0]
    count = int(found[0])
    ranges = {}
    for place, column in enumerate(columns):
        low, high, present, type_ = found[1 + 4 * place : 5 + 4 * place]
        is_known = count and present == count and type_ in RANGED
        if is_known and not _is_beyond(type_, low, high) and is_as_stored(low + high):
            ranges[column] = ValueRange(_literal(low, type_), _literal(high, type_))
    return StagedValues(relation, count, ranges)


def _is_beyond(type_: str, *values: str) -> bool:
    """Whether a value is a date whose year is not written with four digits."""
    return type_ == "date" and any(len(value) != len("2024-01-31") for value in values)


def literals_of(values: Sequence[str], type_: str) -> list[str] | None:
    """SQL literals of values; ``None`` if the type or a value has no exact one.

    :param values: as strings of Spark's.
    """
    exact = all(not _is_beyond(type_, value) and is_as_stored(value) for value in values)
    return [_literal(value, type_) for value in values] if type_ in RANGED and exact else None


def _literal(value: str, type_: str) -> str:
    if type_ == "date":
        return f"DATE {literal(value)}"
    return literal(value) if type_ == "string" else str(int(value))
