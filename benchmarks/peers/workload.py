"""What the peers work on: rows, rounds of changes, reads, and what all must agree on. Pure text.

The SQL that makes rows runs on DuckDB, once; every peer reads the same Parquet files. What is read and
compared runs on DuckDB and on every Spark alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

COLUMNS = ("id", "customer", "status", "price", "quantity", "ordered_on", "comment", "version")
DELETED = "deleted"
"""The column of changes that says that a key goes. Each peer turns it into its own kind of delete."""
CUSTOMERS = 99_991
KEYS = ("uniform", "recent", "hot")


@dataclass(frozen=True)
class Round:
    """Changes of some keys of a table. Of ten, eight update, one deletes and one inserts.

    :param number: of the table, from 1; what the round writes has it as ``version``.
    :param keys: ``uniform``: spread over all. ``recent``: four of five among the newest, the others anywhere.
        ``hot``: the same in every round; what one deletes comes back with the next.
    :param newest: keys below this one exist or have existed.
    """

    number: int
    count: int
    keys: str
    rows: int
    newest: int

    @property
    def inserts(self) -> int:
        return 0 if self.keys == "hot" else self.count // 10

    @property
    def file(self) -> str:
        return f"changes-{self.number}-{self.count}-{self.keys}-{self.newest}.parquet"


def initial_rows(rows: int) -> str:
    return f"""SELECT {_columns("id", "0")}
FROM range(0, {rows}) AS ids(id)"""


def changed_rows(of: Round) -> str:
    """The columns and ``deleted``; each key once."""
    is_delete, is_insert = "n % 10 = 8", "n % 10 = 9"
    step = max(1, of.rows // of.count)
    anywhere = f"n * {step} + {of.number * 7919 % step}"
    if of.keys == "uniform":
        key = anywhere
    elif of.keys == "recent":
        newest = of.count * 4 // 5
        # The older ones below those that the newest may be, so that no key comes twice.
        below = max(1, of.newest - 2 * of.count)
        key = f"""CASE WHEN n < {newest} THEN {of.newest - 1} - 2 * n
    ELSE (n - {newest}) * {max(1, below // max(1, of.count - newest))} + {of.number * 31 % 5} END"""
    elif of.keys == "hot":
        key, is_delete, is_insert = f"n * {step}", f"n % 10 = {of.number % 10}", "false"
    else:
        raise ValueError(f"no such choice of keys: {of.keys!r}; there are {', '.join(KEYS)}")
    return f"""SELECT {_columns("id", str(of.number))}, {is_delete} AS {DELETED}
FROM (SELECT n, CASE WHEN {is_insert} THEN {of.newest} + n // 10 ELSE {key} END AS id
  FROM range(0, {of.count}) AS numbers(n)) AS changed"""


def _columns(key: str, version: str) -> str:
    mixed = f"({key} * 7919 + {version} * 104729)"
    return f"""{key} AS id, {mixed} % {CUSTOMERS} AS customer,
  CASE WHEN {mixed} % 3 = 0 THEN 'O' ELSE 'F' END AS status,
  CAST({mixed} % 1000000 * 0.01 AS DECIMAL(12,2)) AS price, CAST({mixed} % 50 AS INTEGER) AS quantity,
  CAST(DATE '2020-01-01' + CAST({key} % 2000 AS INTEGER) AS DATE) AS ordered_on,
  concat('comment on order ', CAST({key} AS VARCHAR), ' ', md5(CAST({mixed} AS VARCHAR))) AS comment,
  CAST({version} AS INTEGER) AS version"""


def plan_rounds(rows: int, wanted: Sequence[tuple[int, str]]) -> list[Round]:
    """One round after another on one table of ``rows``: of each, how many keys, and which."""
    rounds, newest = [], rows
    for number, (count, keys) in enumerate(wanted, 1):
        rounds.append(Round(number, count, keys, rows, newest))
        newest += rounds[-1].inserts
    return rounds


def state_sql(initial: str, changes: Sequence[str], columns: Sequence[str], key: Sequence[str]) -> str:
    """The rows of a table after some rounds, computed from the initial rows and the changes since.

    :param initial: a relation, as each of ``changes`` is, the oldest first.
    """
    if not changes:
        return f"SELECT {', '.join(columns)} FROM {initial}"
    listed, keys = ", ".join(columns), ", ".join(key)
    logged = "\nUNION ALL ".join(
        f"SELECT {listed}, {DELETED}, {at} AS round_number FROM {changed}"
        for at, changed in enumerate(changes)
    )
    latest = f"""SELECT {listed}, {DELETED} FROM (
  SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY round_number DESC) AS place FROM ({logged}) AS log
) AS ranked WHERE place = 1"""
    same = " AND ".join(f"old.{column} = new.{column}" for column in key)
    return f"""WITH latest AS ({latest})
SELECT {", ".join(f"old.{column}" for column in columns)} FROM {initial} AS old
WHERE NOT EXISTS (SELECT 1 FROM latest AS new WHERE {same})
UNION ALL SELECT {listed} FROM latest WHERE NOT {DELETED}"""


def check_sql(relation: str) -> str:
    """Seven numbers that all peers must agree on after each round."""
    return f"""SELECT count(*), sum(id), sum(price), sum(quantity * (id % 97)), sum(customer * (version + 1)),
  sum(length(comment)), count(CASE WHEN status = 'O' THEN 1 END) FROM {relation}"""


def digest_sql(relation: str, columns: Sequence[str], dialect: str) -> str:
    """One number of all rows and columns: an MD5 of each row as text, added up."""
    row = f"md5(concat_ws('|', {', '.join(f'CAST({column} AS STRING)' for column in columns)}))"
    start = f"substr({row}, 1, 8)"
    number = f"conv({start}, 16, 10)" if dialect == "spark" else f"concat('0x', {start})"
    return f"SELECT count(*), sum(CAST({number} AS BIGINT)) FROM {relation}"


def reads(relation: str, rows: int) -> dict[str, str]:
    """What is read after rounds: everything, some rows by what is in them, and one by its key."""
    return {
        "aggregate": f"SELECT count(*), sum(price), max(comment), max(id) FROM {relation}",
        "filtered": f"SELECT count(*), sum(price), max(id) FROM {relation} "
        "WHERE ordered_on >= DATE '2024-12-01' AND status = 'O'",
        "lookup": f"SELECT {', '.join(COLUMNS)} FROM {relation} WHERE id = {rows * 2 // 3}",
    }


READS = ("aggregate", "filtered", "lookup")


def feed_sql(relation: str) -> str:
    """The rows that an incremental read must return. Deletes are counted, but not compared: some feeds
    contain deletes of keys that did not exist.
    """
    return f"""SELECT count(CASE WHEN NOT {DELETED} THEN 1 END), sum(CASE WHEN NOT {DELETED} THEN id END),
  sum(CASE WHEN NOT {DELETED} THEN price END), count(CASE WHEN {DELETED} THEN 1 END) FROM {relation}"""


def as_text(rows: Sequence[Sequence[object]]) -> list[str]:
    """Values as text that is the same from every engine; absent sums are those of no rows."""
    return [_text(value) for row in rows for value in row]


def _text(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return "0" if value is None else str(value)
