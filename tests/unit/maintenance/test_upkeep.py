"""A table of operations that is damaged or locked does not stop compaction. Both are reported."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import OperationResult
from dbt_arctic.errors import CommitConflict
from dbt_arctic.maintenance.upkeep import durations_of, record_and_keep
from dbt_arctic.store.context import Context
from tests.unit.compaction.conftest import NOW, Orders
from tests.unit.maintenance.test_report import ORDERS, Catalog, record


@pytest.fixture
def orders() -> Orders:
    made = Orders()
    made.build()
    return made


def test_without_its_history_compaction_goes_on_and_says_so(orders: Orders) -> None:
    told: list[str] = []
    found = durations_of(Catalog(orders, damaged=True), ORDERS, told.append)  # type: ignore[arg-type]
    assert found == MeasuredDurations()
    assert "times are rough" in told[0]
    assert "a file of it is gone" in told[0]


def test_its_history_is_read(orders: Orders) -> None:
    told: list[str] = []
    catalog = Catalog(orders, [record(5), record(50)])
    assert len(durations_of(catalog, ORDERS, told.append).records) == 2  # type: ignore[arg-type]
    assert told == []


def test_what_cannot_be_written_down_was_done_all_the_same(orders: Orders) -> None:
    told: list[str] = []

    def run(step: str, sql: str, table: Any = None) -> int:
        raise CommitConflict("no right to write")

    catalog = Catalog(orders)
    context = Context(catalog=catalog, run=run, query_schema=lambda sql: [], query=lambda sql: [])  # type: ignore[arg-type]
    done = [
        OperationResult(Operation("major", ORDERS, "due", 2.0, 1.0), "compacted", began_ms=NOW, seconds=3.0)
    ]
    record_and_keep(context, ORDERS, done, MeasuredDurations(), 60, told.append)
    assert len(told) == 1
    assert "could not be recorded" in told[0]


def test_what_was_done_is_written_down_even_where_nothing_can_be_put_in_order(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    told: list[str] = []

    def run(step: str, sql: str, table: Any = None) -> int:
        ran.append(step)
        if step == "forget_operations":
            raise CommitConflict("others were faster")
        return 1

    catalog = Catalog(orders)
    context = Context(catalog=catalog, run=run, query_schema=lambda sql: [], query=lambda sql: [])  # type: ignore[arg-type]
    monkeypatch.setattr("dbt_arctic.maintenance.upkeep.MOST_FILES", 1)
    operation = Operation("major", ORDERS, "due", 2.0, 1.0)
    done = [OperationResult(operation, "compacted", began_ms=NOW, seconds=3.0)]
    record_and_keep(context, ORDERS, done, MeasuredDurations(), 60, told.append)
    assert ran == ["record_operations", "forget_operations"]
    assert "upkeep of the operations table failed" in told[0]
