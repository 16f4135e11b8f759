"""SQL for reads of a keyed table: merged rows, base only, and changes.

All reads use named snapshots or the live tables, and never read options (``WITH (...)``). If a statement
refers to one table both with and without options, Spark silently reads one of the two twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dbt_arctic.keyed.columns_at import ColumnsAt, select_columns
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.one_task import JOIN_IN_PLACE
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.version import Version

Images = Literal["after", "both"]

Logged = Literal["nothing", "one", "several"]
"""The contents of a change table at a snapshot: only bucket markers, changes of one commit, or of several."""

_SEQUENCE = quote("_last_updated_sequence_number")
NEWEST_FIRST = f"{_SEQUENCE} DESC, {quote(OFFSET)} DESC"
"""The order in which changes arrived: commit order, then the position inside the commit."""

_RANK = quote("_arctic_rank")
_LATEST = quote("_arctic_latest")


def newest_first(table: KeyedTable) -> str:
    """The total order of a key's changes: its sequence, if it has one; then the order of arrival.

    For equal sequence values, a delete comes after an upsert, regardless of arrival. Tombstones outlive the
    upserts that were merged with them, so the order of arrival is not always known.
    """
    if not table.sequence_by:
        return NEWEST_FIRST
    return f"{quote(table.sequence_by)} DESC, {quote(ACTION)} = 'D' DESC, {NEWEST_FIRST}"


def key_equality(left: str, right: str, key: Sequence[str]) -> str:
    """SQL condition that two rows have the same key."""
    return " AND ".join(f"{left}.{quote(column)} = {right}.{quote(column)}" for column in key)


def merge_on_read(
    table: KeyedTable,
    version: Version | None = None,
    known: ColumnsAt | None = None,
    logged: Logged = "several",
    keys: str | None = None,
    by: Sequence[str] = (),
    in_place: bool = False,
) -> str:
    """SQL of the merged rows.

    They are the base rows that no change overrides, and the latest change of each key unless it is a delete.

    Without a version, the SQL is the body of the public view. A before-image is never the only row of its key
    in a commit, so both sides can exclude it. This filter stays above the scan, without which adaptive
    execution can crash on a join of two such views (Spark 4.1).

    :param logged: the known contents of the change table at the version. An empty one is not read, and one
        commit has a single change per key.
    :param keys: SQL of the only keys whose rows are needed, with the key columns, or those of ``by``. Other
        rows are filtered before the merge.
    :param in_place: whether both tables have one bucket with few rows, which are joined there.
    """
    key = quote_all(table.key)
    base_at = version.base_snapshot if version else None
    change_at = version.change_snapshot if version else None
    base = table.base.at(base_at)
    change = table.change.at(change_at)
    by = by or table.key
    only = _only("b", keys, by)
    if logged == "nothing":
        return f"SELECT {select_columns(table, base_at, known or {}, 'b')}\nFROM {base} AS b{only}"
    overridden, read_of_change = "", key
    if table.sequence_by:
        # The base may have a newer row than a late change.
        sequence = quote(table.sequence_by)
        overridden = f" AND c.{sequence} >= b.{sequence}"
        read_of_change = f"{key}, {sequence}"
    return f"""\
SELECT {JOIN_IN_PLACE * in_place}{select_columns(table, base_at, known or {}, "b")}
FROM {base} AS b{only}
LEFT ANTI JOIN (
  SELECT {read_of_change}
  FROM {change}
  WHERE {quote(ACTION)} <> '-U'
) AS c
  ON {key_equality("b", "c", table.key)}{overridden}
UNION ALL
{_shown_changes(table, version, known or {}, logged, keys, by)}"""


def _only(alias: str, keys: str | None, key: Sequence[str]) -> str:
    if keys is None:
        return ""
    return f"\nLEFT SEMI JOIN (\n{keys}\n) AS k\n  ON {key_equality(alias, 'k', key)}"


def _shown_changes(
    table: KeyedTable,
    version: Version | None,
    known: ColumnsAt,
    logged: Logged,
    keys: str | None,
    by: Sequence[str],
) -> str:
    if logged == "one" and version is not None and not table.sequence_by:
        at = version.change_snapshot
        return (
            f"SELECT {select_columns(table, at, known, 'c')}\n"
            f"FROM {table.change.at(at)} AS c{_only('c', keys, by)}\n"
            f"WHERE c.{quote(ACTION)} = 'U'"
        )
    return f"""\
SELECT {", ".join("c." + quote(column) for column in table.column_names)}
{_winning_changes(table, version, known, keys, by)}
WHERE c.{_RANK} = 1 AND c.{quote(ACTION)} <> 'D'"""


def tombstones_of(
    table: KeyedTable,
    version: Version,
    known: ColumnsAt | None = None,
    keys: str | None = None,
    by: Sequence[str] = (),
) -> str:
    """For a table with ``sequence_by``: the tombstones that still override older rows, with ``_action``.

    No merged row has one of these keys. Merged rows and tombstones together are the full state of a version.

    :param keys: as in ``merge_on_read``, and :param by:.
    """
    columns = ", ".join("c." + quote(column) for column in (*table.column_names, ACTION))
    return f"""\
SELECT {columns}
{_winning_changes(table, version, known, keys, by or table.key)}
WHERE c.{_RANK} = 1 AND c.{quote(ACTION)} = 'D'"""


def _winning_changes(
    table: KeyedTable,
    version: Version | None,
    known: ColumnsAt | None,
    keys: str | None = None,
    by: Sequence[str] = (),
) -> str:
    """A ``FROM`` clause with the alias ``c`` for changes.

    It has those that no base row overrides, numbered within their key.
    """
    key = quote_all(table.key)
    base_at = version.base_snapshot if version else None
    change_at = version.change_snapshot if version else None
    overriding = ""
    if table.sequence_by:
        sequence = quote(table.sequence_by)
        overriding = f"""
LEFT ANTI JOIN (
  SELECT {key}, {sequence}
  FROM {table.base.at(base_at)}
) AS b
  ON {key_equality("b", "c", table.key)} AND b.{sequence} > c.{sequence}"""
    # Without keys, this must remain the text of the view, which `verify` compares.
    only = "" if keys is None else f" AS c{_only('c', keys, by)}"
    return f"""\
FROM (
  SELECT {select_columns(table, change_at, known or {})}{_hidden_sequence(table)}, {quote(ACTION)},
    row_number() OVER (PARTITION BY {key} ORDER BY {newest_first(table)}) AS {_RANK}
  FROM {table.change.at(change_at)}{only}
  WHERE {quote(ACTION)} <> '-U'
) AS c{overriding}"""


def _hidden_sequence(table: KeyedTable) -> str:
    """The sequence after other selected columns, if it is not one of the visible columns that are read."""
    is_hidden = table.sequence_by is not None and table.sequence_by not in table.column_names
    return f", {quote(str(table.sequence_by))}" if is_hidden else ""


def read_optimized(table: KeyedTable) -> str:
    """The base table only: merged as of the last compaction, and as fast as any Iceberg table."""
    return f"SELECT {quote_all(table.column_names)}\nFROM {table.base.sql}"


def latest_changes(
    table: KeyedTable,
    log: LogRange,
    at: Version,
    known: ColumnsAt | None = None,
    *,
    single: bool = False,
) -> str:
    """For each key in the log range, its merged state at the end of the range, with ``_action``.

    With changes in commit order, this is the latest change of the key, so neither base nor older changes are
    read. With a sequence, the change may be a late one that has lost, so the merged state is read. File
    statistics of ``_txn`` (one transaction per file) reduce the scan to the files of the range.

    Columns: those of the table, and ``_action`` ('U' or 'D').

    :param single: whether the range is known to have one change per key.
    """
    columns = quote_all(table.column_names)
    snapshot_id = at.change_snapshot
    if not log.transactions:
        selected = select_columns(table, snapshot_id, known or {})
        return f"SELECT {selected}, {quote(ACTION)}\nFROM {table.change.at(snapshot_id)}\nWHERE false"
    if single and not table.sequence_by:
        (readable,), (txn,) = log.readable_at, log.transactions
        return f"""\
SELECT {select_columns(table, readable, known or {})}, {quote(ACTION)}
FROM {table.change.at(readable)}
WHERE {quote(TXN)} = {txn} AND {quote(ACTION)} <> '-U'"""
    transactions = ", ".join(str(txn) for txn in log.transactions)
    scans = "\n  UNION ALL\n".join(
        f"""\
    SELECT {select_columns(table, readable, known or {})}{_hidden_sequence(table)}, {quote(ACTION)},
      {quote(OFFSET)}, {_SEQUENCE}
    FROM {table.change.at(readable)}
    WHERE {quote(TXN)} IN ({transactions}) AND {quote(ACTION)} <> '-U'"""
        for readable in log.readable_at
    )
    if table.sequence_by:
        return _merged_state_of_keys(table, scans, at, known)
    return f"""\
SELECT {columns}, {quote(ACTION)}
FROM (
  SELECT *, row_number() OVER (PARTITION BY {quote_all(table.key)} ORDER BY {NEWEST_FIRST}) AS {_RANK}
  FROM (
{scans}
  )
)
WHERE {_RANK} = 1"""


def _merged_state_of_keys(table: KeyedTable, changes: str, at: Version, known: ColumnsAt | None) -> str:
    assert table.sequence_by is not None
    # A delete gets the sequence of the change that deletes it, because a downstream model may use the same
    # order.
    columns = ", ".join(
        f"k.{quote(column)}"
        if column in table.key
        else f"coalesce(m.{quote(column)}, k.{_LATEST}) AS {quote(column)}"
        if column == table.sequence_by
        else f"m.{quote(column)}"
        for column in table.column_names
    )
    return f"""\
SELECT {columns}, CASE WHEN m.{quote(table.key[0])} IS NULL THEN 'D' ELSE 'U' END AS {quote(ACTION)}
FROM (
  SELECT {quote_all(table.key)}, max({quote(table.sequence_by)}) AS {_LATEST}
  FROM (
{changes}
  )
  GROUP BY {quote_all(table.key)}
) AS k
LEFT JOIN (
{merge_on_read(table, at, known)}
) AS m
  ON {key_equality("k", "m", table.key)}"""


def before_images(
    table: KeyedTable, log: LogRange, known: ColumnsAt | None = None, *, single: bool = False
) -> str:
    """For each key in the log range that existed before, its row at the start of the range.

    Requires that all commits of the range have before-images: the result is that of the key's first commit.
    Columns: those of the table.
    """
    if single:
        (readable,), (txn,) = log.readable_at, log.transactions
        return (
            f"SELECT {select_columns(table, readable, known or {})}\nFROM {table.change.at(readable)}\n"
            f"WHERE {quote(TXN)} = {txn} AND {quote(ACTION)} = '-U'"
        )
    transactions = ", ".join(str(txn) for txn in log.transactions)
    scans = "\n  UNION ALL\n".join(
        f"""\
    SELECT {select_columns(table, readable, known or {})}, {quote(ACTION)}, {_SEQUENCE}
    FROM {table.change.at(readable)}
    WHERE {quote(TXN)} IN ({transactions})"""
        for readable in log.readable_at
    )
    return f"""\
SELECT {quote_all(table.column_names)}
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY {quote_all(table.key)} ORDER BY {_SEQUENCE}, {quote(ACTION)} = '-U' DESC) AS {_RANK}
  FROM (
{scans}
  )
)
WHERE {_RANK} = 1 AND {quote(ACTION)} = '-U'"""


def weighted_changes(table: KeyedTable, log: LogRange, sign: str, known: ColumnsAt | None = None) -> str:
    """The before-images and the upserts of a range with before-images and one change per key, in one read.

    Columns: those of the table, and ``sign``, -1 for a before-image and 1 for an upsert.
    """
    (readable,), (txn,) = log.readable_at, log.transactions
    return (
        f"SELECT {select_columns(table, readable, known or {})}, "
        f"CASE {quote(ACTION)} WHEN 'U' THEN 1 ELSE -1 END AS {quote(sign)}\n"
        f"FROM {table.change.at(readable)}\n"
        f"WHERE {quote(TXN)} = {txn} AND {quote(ACTION)} <> 'D'"
    )


def latest_changes_and_before_images(
    table: KeyedTable, before: Version, after: Version, log: LogRange, known: ColumnsAt | None = None
) -> str:
    """``latest_changes``, and as ``-U`` the row that each of these keys had at the version ``before``.

    This is cheaper than ``changes``: it reads one merged state and compares nothing.
    """
    latest = latest_changes(table, log, after, known)
    if not log.transactions:
        return latest
    keys = f"SELECT {quote_all(table.key)} FROM (\n{latest}\n)"
    return (
        f"{latest}\nUNION ALL\nSELECT {quote_all(table.column_names)}, '-U' AS {quote(ACTION)}\n"
        f"FROM (\n{merge_on_read(table, before, known, keys=keys)}\n)"
    )


def everything(select: str, columns: Sequence[str]) -> str:
    """SQL for a first pull, which returns every row as an upsert."""
    return f"SELECT {quote_all(columns)}, 'U' AS {quote(ACTION)}\nFROM (\n{select}\n)"


def appended_rows(table: Name, after: int, to: int, view: str) -> str:
    """A temporary view of the rows appended to a plain Iceberg table in a snapshot range.

    Requires that the range contains only appends, and that the view keeps its analysed plan: if one statement
    reads a table by name both with and without options, Spark uses the same options for both.
    """
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {quote(view)} AS\nSELECT *\nFROM {table.sql}\n"
        f"WITH (`start-snapshot-id`='{after}', `end-snapshot-id`='{to}')"
    )
