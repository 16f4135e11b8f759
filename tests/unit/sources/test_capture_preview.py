"""What a model has not read of a captured table, without a database and without Spark."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.databases.api import Column, Table, TableName, shape_of
from dbt_arctic.databases.change_log import ChangeBatch, LoggedChange, LogState
from dbt_arctic.errors import ServerUnreachable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, encode_consumed
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_preview import CapturedTable
from dbt_arctic.sources.capture_settings import parse_capture
from dbt_arctic.sources.capture_table import PROPERTY_CAPTURES, PROPERTY_TABLES, CapturedRange, entry
from dbt_arctic.sources.database_plan import Writes
from dbt_arctic.sources.unread import RefreshSize, Unread

TABLE = TableName("public", "orders")


class Database:
    """A database whose log has two changes of a table of 7 rows, and nothing of it was captured yet."""

    def __init__(self, shape: str = "") -> None:
        self.described = 0
        self.problem = ""
        changes = [
            LoggedChange(at, at, "", TABLE.dotted, "update", 1000, shape=shape, table_id="1") for at in (5, 6)
        ]
        self.log = SimpleNamespace(
            state=lambda: LogState("1", 0, 9, 0),
            try_lock=lambda: True,
            followed=lambda: frozenset([TABLE]),
            changes=lambda *_: ChangeBatch(changes, 9, True),
            shown=str,
            mark=lambda _: "",
        )
        self.logs: dict[Name, Any] = {}
        self.captured: TableState | None = None

    def describe(self) -> Table:
        self.described += 1
        if self.problem:
            raise ServerUnreachable(self.problem, where="here")
        columns = tuple(Column(name, "bigint", "integer", "bigint", False) for name in ("id", "n"))
        return Table("1", columns, ("id",), rows=7, identity=("id", "n"))

    def table(self, **settings: Any) -> CapturedTable:
        catalog = SimpleNamespace(of=lambda _: SimpleNamespace(load_table=lambda *_: self.captured))
        source, name = parse_capture("crm.orders", {"slot": "s", **settings}), Name("lake", "s", "capture")
        opened = cast(Any, lambda: nullcontext(self.log))
        return CapturedTable(cast(Any, catalog), source, name, TABLE, opened, self.describe, self.logs)

    def unread(self, with_full_refresh: bool) -> Unread:
        return self.table().unread("orders", None, None, with_full_refresh)


def test_the_rows_of_a_table_are_counted_once_and_only_where_they_are_shown() -> None:
    """Each count is a connection and a lock, and ``keep`` looks every few seconds."""
    database = Database()
    assert (database.unread(False).count, database.unread(False).full_refresh, database.described) == (
        2,
        None,
        0,
    )
    assert [database.unread(True).full_refresh for _ in range(2)] == [RefreshSize("row", 7)] * 2
    assert database.described == 1


def test_a_lag_is_known_if_the_rows_cannot_be_counted() -> None:
    database = Database()
    database.problem = "a statement of the owner has locked the table"
    found = database.unread(True)
    assert (found.count, found.since_ms, found.problem, found.full_refresh) == (
        2,
        1000,
        "",
        RefreshSize("row"),
    )


@pytest.mark.parametrize(("expired", "number"), [(0, 3 + 4 + 2), (2, None)])
def test_a_full_refresh_without_the_rows_of_the_table_reads_all_changes(
    expired: int, number: int | None
) -> None:
    """Those of the capture table, and those that the next run takes."""
    database, snapshots = Database(), list[Snapshot]()
    for at, tables in enumerate(({}, {TABLE.dotted: TableChanges(3)}, {TABLE.dotted: TableChanges(4)}), 1):
        range_ = CapturedRange("1", 0, at - 1, date(2026, 1, 1), tables=frozenset([TABLE.dotted]))
        summary = {PROPERTY_CONSUMED: encode_consumed(entry(range_)), PROPERTY_TABLES: json.dumps(tables)}
        snapshots.append(Snapshot(at, at - 1 or None, at, at, "append", summary))
    table = database.table(initial_load=False)
    assert table.unread("orders", None, None, True).full_refresh == RefreshSize("change", 2)
    database.logs.clear()
    kept, owner = tuple(snapshots[expired:]), {PROPERTY_CAPTURES: "crm"}
    database.captured = TableState("s", "capture", "", owner, (), kept, len(snapshots), {})
    found = table.unread("orders", None, None, True)
    assert (found.problem, found.full_refresh) == ("", RefreshSize("change", number))
    assert database.described == 0


@pytest.mark.parametrize(("identity", "problem"), [(("id",), ""), (("n",), "old values of id")])
def test_a_first_run_without_the_rows_of_the_table_needs_old_values_of_the_key(
    identity: tuple[str, ...], problem: str
) -> None:
    """What the table's replica identity is now says nothing of the changes from before it was set."""
    table = Database(shape_of(("id", "n"), identity)).table(initial_load=False)
    found = table.preview("orders", {}, Writes(("id",))).problem
    assert (problem in found, bool(found)) == (True, bool(problem))
