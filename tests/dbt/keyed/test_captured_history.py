"""Histories of captured tables: each state of a row once, however the table was loaded.

The oracle is plain Python. It goes through the changes in the order of their commits, and knows which of them
the database had made when the run read the table.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dbt_arctic.databases.mariadb import MariaTable
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.sources import capture_changes
from dbt_arctic.sources.capture_changes import Capture
from dbt_arctic.sources.capture_snapshot import TableSnapshot
from tests.extent import extent

from . import test_capture_mariadb
from .conftest import Shop
from .database_servers import Server
from .test_capture import declare, server

__all__ = ["server"]
MODEL = (
    "{{ config(materialized='incremental', incremental_strategy='history', unique_key='id', buckets=1, "
    "sequence_by='_source_sequence', updated_at='_source_changed_at') }}\n"
    "select id, name, _source_sequence, _source_operation, _source_changed_at, _action "
    "from {{ incremental_pull(source('crm', 'customers')) }}"
)
_CONVERTED = 7
"""A key that is not among the random ones."""
Row = tuple[int, "str | None", bool]
"""A key, a name, and whether the interval is open."""


@dataclass
class Customers:
    """The customers, and the intervals of each since the history began."""

    server: Server
    chance: random.Random
    names: dict[int, str | None] = field(default_factory=dict)
    intervals: dict[int, list[tuple[str | None, bool]]] = field(default_factory=dict)

    def begin(self) -> None:
        """The history begins with the rows that the table has now."""
        self.intervals = {key: [(name, True)] for key, name in self.names.items()}

    def change(self, times: int, before: str = "SELECT 1") -> None:
        """Random transactions, in which a key may change several times."""
        for _ in range(times):
            self.server.sql(
                before, "BEGIN", *(self.one() for _ in range(self.chance.randrange(1, 6))), "COMMIT"
            )

    def one(self) -> str:
        key, what = self.chance.randrange(6), self.chance.random()
        if key in self.names and what < 0.25:
            self._close(key)
            del self.names[key]
            return f"DELETE FROM customers WHERE id = {key}"
        other = self.chance.randrange(6)
        if key in self.names and other not in self.names and what < 0.5:
            name = self.names.pop(key)
            self._close(key)
            self._put(other, name)
            return f"UPDATE customers SET id = {other} WHERE id = {key}"
        return self.put(key, self.chance.choice([None, "a", "b", "c"]))

    def put(self, key: int, name: str | None) -> str:
        """SQL that inserts or updates a row."""
        self._put(key, name)
        text = "NULL" if name is None else f"'{name}'"
        is_postgres = self.server.kind == "postgresql"
        conflict = "ON CONFLICT (id) DO UPDATE SET" if is_postgres else "ON DUPLICATE KEY UPDATE"
        return f"INSERT INTO customers VALUES ({key}, {text}, 1) {conflict} name = {text}"

    def convert(self) -> None:
        """Change values by a statement that the log does not have, and columns around them."""
        self.server.sql(
            "BEGIN",
            "ALTER TABLE customers ALTER name TYPE varchar(40) USING name || '!'",
            "ALTER TABLE customers RENAME score TO points",
            "ALTER TABLE customers ADD COLUMN vip boolean DEFAULT true",
            "COMMIT",
        )
        self.names = {key: name and f"{name}!" for key, name in self.names.items()}

    def truncate(self) -> None:
        self.server.sql("TRUNCATE customers")
        for key in self.names:
            self._close(key)
        self.names.clear()

    def read_again(self) -> None:
        """A run has read all rows."""
        for key, name in self.names.items():
            self._put(key, name)

    def _put(self, key: int, name: str | None) -> None:
        self.names[key] = name
        found = self.intervals.setdefault(key, [])
        if found and found[-1] == (name, True):
            return
        self._close(key)
        found.append((name, True))

    def _close(self, key: int) -> None:
        found = self.intervals.setdefault(key, [])
        if found:
            found[-1] = (found[-1][0], False)

    def rows(self) -> list[Row]:
        return [(key, *one) for key in sorted(self.intervals) for one in self.intervals[key]]


def stored(shop: Shop) -> list[Row]:
    columns = "id, name, dbt_valid_to IS NULL, dbt_valid_from, dbt_valid_to, _source_sequence"
    found = sorted(shop.rows("customers", columns), key=lambda row: (row[0], row[5]))
    for _, _, _, valid_from, valid_to, _ in found:
        assert valid_from is not None
        assert valid_to is None or valid_from <= valid_to
    return [(key, name, is_open) for key, name, is_open, *_ in found]


def around_begin(
    patched: pytest.MonkeyPatch,
    before: Callable[[], None],
    after: Callable[[], None] = lambda: None,
    kind: Any = PostgresTable,
) -> None:
    """Let something happen right before and right after a run reads the state of the table."""
    begin = kind.begin

    def begun(table: Any) -> Any:
        before()
        transaction = begin(table)
        after()
        return transaction

    patched.setattr(kind, "begin", begun)


def after_capture(patched: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Let something happen after a run has captured what its transaction sees."""
    take = Capture.take_visible

    def taken(*given: Any) -> Any:
        read = take(*given)
        then()
        return read

    patched.setattr(Capture, "take_visible", taken)


@pytest.mark.parametrize("seed", range(extent(1, 8)))
def test_a_history_has_each_state_of_a_row_once(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    declare(shop, server, customers={"truncate": "apply"})
    shop.model("customers", MODEL)
    customers = Customers(server, random.Random(seed))
    customers.change(6)

    def last_before() -> None:
        """Changes that were not captured yet, and that the rows have. They may not be on the disk."""
        customers.change(8, "SET synchronous_commit = off")
        customers.begin()

    with monkeypatch.context() as patched:
        around_begin(patched, last_before, lambda: customers.change(3))
        shop.dbt("run", "--select", "customers")
    shop.dbt("run", "--select", "customers")
    assert stored(shop) == customers.rows()
    for _ in range(extent(1, 4)):
        customers.change(4)
        shop.dbt("run", "--select", "customers")
        assert stored(shop) == customers.rows()
    # What the log does not have shows when the run reads the rows. The changes around it are there, too.
    server.sql(customers.put(_CONVERTED, "early"))
    customers.change(4)
    customers.convert()
    customers.change(4)
    customers.read_again()
    with monkeypatch.context() as patched:
        after_capture(patched, lambda: server.sql(customers.put(_CONVERTED, "late")))
        shop.dbt("run", "--select", "customers")
    shop.dbt("run", "--select", "customers")
    assert stored(shop) == customers.rows()
    assert "read" in {one for (one,) in shop.rows("customers", "_source_operation")}
    # A truncation ends the intervals that the model has, and those that began since.
    customers.change(4)
    customers.truncate()
    customers.change(4)
    customers.truncate()
    customers.change(2)
    shop.dbt("run", "--select", "customers")
    assert stored(shop) == customers.rows()


def test_a_history_of_mariadb_begins_with_the_rows_of_one_position(
    shop: Shop, mariadb_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other connections see of later changes is a warning."""
    mariadb_server.sql(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(40), score decimal(10,2)) "
        "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    )
    try:
        test_capture_mariadb.declare(shop, mariadb_server, "customers")
        shop.model("customers", MODEL)
        customers = Customers(mariadb_server, random.Random(1))
        customers.change(4)

        def last_before() -> None:
            customers.change(8)
            customers.begin()

        def seen_by_others() -> None:
            """This shows twice: in the rows, and with the next run."""
            mariadb_server.sql(customers.put(9, "y"))
            customers.intervals[9] = [("y", False), ("x", False), ("y", True)]

        planned, warned = TableSnapshot.plan, list[str]()

        def noted(*given: Any) -> Any:
            made = planned(*given)
            warned.extend(made.warnings)
            return made

        with monkeypatch.context() as patched:
            patched.setattr(TableSnapshot, "plan", noted)
            # The first capture of a log begins at its end, so it has to come before the transaction.
            around_begin(
                patched, last_before, lambda: mariadb_server.sql(customers.put(9, "x")), kind=MariaTable
            )
            after_capture(patched, seen_by_others)
            shop.dbt("run")
        assert "These changes show twice" in warned[-1]
        # The log has when a statement began, which may be before what it has waited for.
        for _ in range(2):
            customers.change(4, "SET timestamp = UNIX_TIMESTAMP() - FLOOR(100 * RAND())")
            shop.dbt("run")
            assert stored(shop) == customers.rows()
    finally:
        mariadb_server.sql("DROP TABLE customers")


@pytest.mark.long
def test_a_history_with_the_times_of_the_log_is_found(
    shop: Shop, mariadb_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant that takes the times of the log as they are."""
    monkeypatch.setattr(capture_changes, "in_order_of_time", lambda changes, *_: changes)
    with pytest.raises(AssertionError):
        test_a_history_of_mariadb_begins_with_the_rows_of_one_position(shop, mariadb_server, monkeypatch)
