"""SQL for rows that lack values which did not change: they keep the latest value that is known.

A row names such columns in ``_unavailable``. Their values are those of the latest earlier row of the key: in
the batch, or stored. Complete rows are stored, as by ``partial``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.checks import raise_error_sql, when_broken
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.partial import without_losers
from dbt_arctic.keyed.read import key_equality, merge_on_read
from dbt_arctic.keyed.table import ACTION, OFFSET, UNAVAILABLE, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.keyed.write import insert_rows

_KNOWN = "_arctic_known_"
_LATEST = quote("_arctic_latest")


def completed(batch: Batch) -> Batch:
    """The batch of a new table: values that a row lacks are those of an earlier row of the batch.

    The statement fails if the latest row of a key lacks a value that no earlier row has.
    """
    sequence = quote(str(batch.sequence_by))
    latest = f"max({sequence}) OVER (PARTITION BY {quote_all(batch.key)})"
    selected = [quote(name) for name in batch.model_columns if name.lower() not in _own(batch)]
    for place, name in enumerate(_values(batch)):
        known = quote(f"{_KNOWN}{place}")
        selected.append(
            f"CASE WHEN {known} IS NOT NULL THEN {known}.`v` "
            f"WHEN {sequence} = {_LATEST} THEN {_unknown(batch, name)} END AS {quote(name)}"
        )
    rows = f"SELECT *, {latest} AS {_LATEST}\nFROM (\n{_known(batch)}\n)"
    sql = f"SELECT {', '.join(selected)}\nFROM (\n{rows}\n)"
    return replace(batch, sql=sql, model_columns=_without_names(batch), unavailable=False)


def fill_unavailable_values(
    table: KeyedTable,
    batch: Batch,
    version: Version,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL of an append to a branch of the change table: the rows of the batch, completed from earlier rows.

    Rows that lose against a newer delete are left out. The statement fails if neither the batch nor the table
    has a value that a row lacks.
    """
    values = _values(batch)
    listed = tuple(f"{_KNOWN}{place}" for place in range(len(values)))
    wide = replace(
        batch,
        sql=_known(batch),
        columns=(*batch.columns, *listed),
        model_columns=(*_without_names(batch), *listed),
        checks=(),
    )
    found = f"m.{quote(table.key[0])} IS NOT NULL"
    sequence = quote(str(table.sequence_by))
    made = {}
    for name, column in zip(values, listed, strict=True):
        latest = f"n.{quote(column)}"
        newer = f"{latest} IS NOT NULL AND (NOT ({found}) OR {latest}.`s` >= m.{sequence})"
        made[name] = (
            f"CASE WHEN {newer} THEN {batch.in_stored_type(name, f'{latest}.`v`')} "
            f"WHEN {found} THEN m.{quote(name)} "
            f"ELSE {_unknown(batch, name, 'n.')} END"
        )
    columns = ",\n    ".join(
        f"{made[name]} AS {quote(name)}" if name in made else f"n.{quote(name)}"
        for name in table.column_names
    )
    broken = " ".join(when_broken(batch.checks, batch.key, batch.model, f"{quote(ACTION)} = 'U'"))
    checked = f"CASE {broken} ELSE {quote(OFFSET)} END" if broken else quote(OFFSET)
    select = f"""\
SELECT {quote_all(table.column_names)}, {quote(ACTION)},
  {checked} AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS `_txn`
FROM (
  SELECT {columns},
    n.{quote(ACTION)}, n.{quote(OFFSET)}
  FROM (
{wide.one_row_per_key(txn)}
  ) AS n
  LEFT JOIN (
{merge_on_read(table, version, known)}
  ) AS m
    ON {key_equality("n", "m", table.key)}{without_losers(table, version)}
)"""
    return insert_rows(table, txn, properties, select, branch)


def _known(batch: Batch) -> str:
    """SQL of the rows of the batch, and for each column the latest value up to the row, with its sequence."""
    order = ", ".join([quote(str(batch.sequence_by)), *(f"({one})" for one in batch.deduplicate_by)])
    window = (
        f"OVER (PARTITION BY {quote_all(batch.key)} ORDER BY {order} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    columns = ",\n  ".join(
        f"last_value(CASE WHEN NOT coalesce(array_contains({quote(UNAVAILABLE)}, {literal(name)}), false) "
        f"THEN named_struct('s', {quote(str(batch.sequence_by))}, 'v', {quote(name)}) END) IGNORE NULLS "
        f"{window} AS {quote(f'{_KNOWN}{place}')}"
        for place, name in enumerate(_values(batch))
    )
    return f"SELECT *,\n  {columns}\nFROM (\n{batch.sql}\n)"


def _values(batch: Batch) -> tuple[str, ...]:
    """The columns that a row may lack."""
    produced = {name.lower() for name in batch.model_columns}
    always = {*batch.key, batch.sequence_by}
    return tuple(name for name in batch.columns if name not in always and name.lower() in produced)


def _own(batch: Batch) -> set[str]:
    return {UNAVAILABLE, *(name.lower() for name in _values(batch))}


def _without_names(batch: Batch) -> tuple[str, ...]:
    return tuple(name for name in batch.model_columns if name.lower() != UNAVAILABLE)


def _unknown(batch: Batch, name: str, alias: str = "") -> str:
    key = ", ', ', ".join(f"coalesce(CAST({alias}{quote(column)} AS STRING), 'NULL')" for column in batch.key)
    return raise_error_sql(
        "AR-313",
        f"a row lacks the value of {name}, and no earlier row of its key has it: ",
        f"concat({key})",
        batch.model,
        "the source sent only what has changed, and the row itself was never read",
        "let the source send complete rows, for instance with a snapshot of its tables; nothing was written",
    )


__all__ = ["completed", "fill_unavailable_values"]
