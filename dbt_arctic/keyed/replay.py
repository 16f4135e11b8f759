"""Replays of commits from a retired generation to the current one: which commits, and their SQL.

The decision is based on the two logs, which the caller provides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.assignment import stored_value
from dbt_arctic.keyed.checks import Check, raise_error_sql, shown_row, when_broken
from dbt_arctic.keyed.columns_at import ColumnsAt, select_columns
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK, PROPERTY_TXN, LogRange, SnapshotLike, consumed_versions
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.read import newest_first
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, OFFSET, TXN, Column, KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, decode_consumed

PROPERTY_BLIND = "arctic.blind"
"""On a commit that did not read the table, so that its rows are valid in any generation."""
PROPERTY_REPLAYS = "arctic.replays"
"""On a replay: JSON list of the transactions of another generation that it contains."""
PROPERTY_SETTLED = "arctic.settled"
"""On a commit: the last switch of generations, if nothing was left to replay when the commit was made."""

_RANK = quote("_arctic_rank")
_SEQUENCE = quote("_last_updated_sequence_number")


@dataclass(frozen=True)
class MissingCommits:
    """The commits of a retired generation that are missing in its successor.

    :param replay: transactions to replay, oldest first.
    :param computed: commits whose rows were computed from the retired generation and are not valid in another
        one.
    """

    replay: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()


def find_late(log: Sequence[SnapshotLike], target: Sequence[SnapshotLike]) -> MissingCommits:
    """Find the commits to replay and the computed ones.

    :param log: the commits to the retired generation since the new one was started, newest first.
    :param target: the history of the new generation, newest first.

    A commit that consumed upstream versions is skipped if the new generation consumes the same upstreams. If
    its version is older, the next pull delivers the changes again; if it is newer, it contains them, and the
    rows of the commit are out of date.
    """
    done = replayed(target) | _transactions(target)
    covered = set(consumed_versions(target))
    replay, computed = [], []
    for snapshot in reversed(log):
        text = snapshot.summary.get(PROPERTY_TXN)
        if text is None or int(text) in done:
            continue
        brought = _replays(snapshot)
        if brought and brought <= done:
            continue  # copied from the new generation
        consumed = snapshot.summary.get(PROPERTY_CONSUMED)
        if brought or PROPERTY_BLIND in snapshot.summary:
            replay.append(int(text))
        elif (
            PROPERTY_ROLLBACK in snapshot.summary
            or consumed is None
            or not set(decode_consumed(consumed)) <= covered
        ):
            computed.append(int(text))
    return MissingCommits(tuple(replay), tuple(computed))


def replayed(history: Sequence[SnapshotLike]) -> frozenset[int]:
    """The transactions of other generations that were replayed to a generation."""
    return frozenset(txn for snapshot in history for txn in _replays(snapshot))


def written_directly(history: Sequence[SnapshotLike]) -> frozenset[int]:
    """The transactions that were written to a generation itself, after it was built."""
    found = [snapshot for snapshot in history if PROPERTY_TXN in snapshot.summary]
    return frozenset(int(snapshot.summary[PROPERTY_TXN]) for snapshot in found if not _replays(snapshot))


def _transactions(history: Sequence[SnapshotLike]) -> frozenset[int]:
    return frozenset(
        int(snapshot.summary[PROPERTY_TXN]) for snapshot in history if PROPERTY_TXN in snapshot.summary
    )


def _replays(snapshot: SnapshotLike) -> frozenset[int]:
    return frozenset(int(txn) for txn in json.loads(snapshot.summary.get(PROPERTY_REPLAYS, "[]")))


def insert_replay(
    source: KeyedTable,
    transactions: Sequence[int],
    readable: LogRange,
    known: ColumnsAt,
    table: KeyedTable,
    newer: LogRange,
    newer_known: ColumnsAt,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
) -> str:
    """SQL of an append to a branch: for each key the last change in the given transactions.

    :param source: the retired generation, with its own columns and order.
    :param readable: where the rows of its log can be read.
    :param known: the columns there.
    :param newer: the commits to ``table`` itself. They are newer, so their keys are excluded. With a
        sequence, the sequence decides instead.
    :param txn: the transaction of the new commit.
    """
    listed = ", ".join(map(str, transactions))
    scans = "\n    UNION ALL\n".join(
        f"""\
    SELECT {select_columns(source, at, known)}, {quote(ACTION)}, {quote(OFFSET)}, {_SEQUENCE}
    FROM {source.change.at(at)}
    WHERE {quote(TXN)} IN ({listed}) AND {quote(ACTION)} <> '-U'"""
        for at in readable.readable_at
    )
    there = {column.name.lower(): column for column in source.columns}
    columns = ",\n  ".join(
        f"{_carried(there.get(column.name.lower()), column)} AS {quote(column.name)}"
        for column in table.columns
    )
    summary = ", ".join(
        f"{quote('snapshot-property.' + name)}={literal(value)}"
        for name, value in {
            PROPERTY_TXN: str(txn),
            PROPERTY_REPLAYS: json.dumps(sorted(transactions)),
            **properties,
        }.items()
    )
    overridden = ""
    if newer.transactions and not table.sequence_by:
        overridden = (
            f"\nLEFT ANTI JOIN (\n{_keys_of(table, newer, newer_known)}\n) AS d\n  ON "
            + " AND ".join(f"{_as_key(there, table, name)} = d.{quote(name)}" for name in table.key)
        )
    return f"""\
INSERT INTO {table.change.branch(branch)} WITH ({summary}) \
({quote_all([*table.column_names, ACTION, OFFSET, TXN])})
SELECT {quote_all([*table.column_names, ACTION])}, {_checked_offset(table)}, CAST({txn} AS BIGINT)
FROM (
SELECT {columns}, l.{quote(ACTION)}
FROM (
  SELECT *,
    row_number() OVER (PARTITION BY {quote_all(source.key)} ORDER BY {newest_first(source)}) AS {_RANK}
  FROM (
{scans}
  )
) AS l{overridden}
WHERE l.{_RANK} = 1
)"""


def _carried(source: Column | None, column: Column) -> str:
    """SQL of a column value in a row of the retired generation, which may lack it or have other fields."""
    if source is None:
        return f"CAST(NULL AS {column.type})"
    return stored_value(f"l.{quote(source.name)}", source.type, column.type)


def _as_key(there: Mapping[str, Column], table: KeyedTable, name: str) -> str:
    """SQL of a key column in a row of the retired generation, in its type in the new one.

    Spark would convert the new one: as numbers, ``'007'`` and ``7`` are equal.
    """
    source, type_ = there[name.lower()], table.types[name]
    carried = _carried(source, Column(name, type_))
    return carried if source.type == type_ else f"TRY_CAST({carried} AS {type_})"


def _keys_of(table: KeyedTable, log: LogRange, known: ColumnsAt) -> str:
    listed = ", ".join(str(txn) for txn in log.transactions if txn != MARKER_TXN)
    return "\n  UNION ALL\n".join(
        f"  SELECT {quote_all(table.key)}\n  FROM {table.change.at(at)}\n"
        f"  WHERE {quote(TXN)} IN ({listed}) AND {quote(ACTION)} <> '-U'"
        for at in log.readable_at
    )


def _checked_offset(table: KeyedTable) -> str:
    """SQL of the offset with checks.

    The rows were checked when they were written, but the new generation may have stricter constraints.
    """
    checks = [Check(f"not_null on {name}", "NOT NULL", f"{quote(name)} IS NULL") for name in table.required]
    branches = when_broken(checks, table.key, table.name.identifier, f"{quote(ACTION)} = 'U'")
    if table.sequence_by:
        no_place = raise_error_sql(
            "AR-309",
            f"a row committed during a full refresh has NULL in {table.sequence_by}: ",
            shown_row(table.key),
            table.name.identifier,
            "sequence_by orders the changes of a key, and NULL cannot be ordered",
            "give these rows a value, or run the full refresh when no run with the old config is active",
        )
        branches.insert(0, f"WHEN {quote(table.sequence_by)} IS NULL THEN {no_place}")
    return f"CASE {' '.join(branches)} ELSE 0L END" if branches else "0L"
