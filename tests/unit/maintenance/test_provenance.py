"""What ``dbt-arctic why`` concludes from logs alone: the order of writes, and their readers."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import PROPERTY_LOG, PROPERTY_TXN, encode_log
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.consumers import Consumer
from dbt_arctic.maintenance.provenance import Step, _feed
from dbt_arctic.maintenance.row_change import MANUAL, RowChange, StoredRow, change_of, is_same
from dbt_arctic.maintenance.row_history import GenerationLog, current_row, explain

TABLE = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(1, "base", "change"),
    key=("id",),
    layout=Layout(2, "id", (), ("id",)),
    columns=(Column("id", "bigint"),),
)
BERLIN = ZoneInfo("Europe/Berlin")


def commit(number: int, txn: int | None = None, **summary: str) -> Snapshot:
    written = {} if txn is None else {PROPERTY_TXN: str(txn), "added-records": "1"}
    parent = number - 1 if number > 1 else None
    return Snapshot(number, parent, number, number, "append", {**written, **summary})


def last_write(**fields: Any) -> Step:
    change = change_of("upsert", None, {"id": 1})
    return Step(RowChange(**{**vars(change), **fields}), 1, None, ())


def has_read(history: list[Snapshot], at: int, last: Step) -> tuple[bool | None, str]:
    consumer = Consumer("lake.shop.totals", Consumed("change", f"1.{at}.1"))
    found = _feed(TABLE, history, last, consumer)
    return found.has_read, found.why


@pytest.mark.parametrize("at", [11, 12, 13])
def test_a_reader_has_read_a_commit_that_an_erasure_let_expire_if_its_version_is_not_older(at: int) -> None:
    # Snapshots 11 to 13 have expired. The oldest commit that is left records their transactions.
    carried = encode_log([(13, 130), (12, 120), (11, 110)])
    after_erasure = [commit(15, 150), commit(14, **{PROPERTY_LOG: carried})]
    assert has_read(after_erasure, at, last_write(txn=120)) == (at >= 12, "")
    assert has_read(after_erasure, at, last_write(txn=90)) == (True, ""), "older than the log"
    assert has_read(after_erasure, at, last_write(is_base=True, commit=commit(3))) == (True, "")
    is_known, why = has_read(after_erasure, at, last_write(kind=MANUAL))
    assert (is_known, "another program" in why) == (None, True)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_reader_has_read_a_commit_of_the_log_if_its_version_is_not_older(at: int) -> None:
    history = [commit(3, 30), commit(2, 20), commit(1)]
    assert has_read(history, at, last_write(txn=20, commit=history[1])) == (at >= 2, "")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"day": 1, "place": 9}, {"day": 2, "place": None}),
        ({"day": 1, "place": None}, {"day": 1, "place": 0}),
        ([1, 9], [2]),
        (1.0, float("nan")),
        # In this night, the hour from 2 to 3 occurs twice.
        (datetime(2026, 10, 25, 2, 50, tzinfo=BERLIN), datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=1)),
    ],
)
def test_the_greatest_value_of_a_sequence_wins_in_the_order_of_spark(older: Any, newer: Any) -> None:
    def row(at: Any, txn: int) -> StoredRow:
        return StoredRow(True, 3, txn, 0, "U", txn, {"id": 1, "at": at})

    bases = [Snapshot(9, None, 1, 0, "append", {})]
    changes = [commit(3, 30), commit(2, 20), commit(1)]
    for first, last, effects in ((older, newer, ["new", "changed"]), (newer, older, ["new", "late"])):
        log = GenerationLog(bases, changes, [row(first, 20), row(last, 30)], "at")
        assert [one.effect for one in explain(log)] == effects
        assert current_row(log) == {"id": 1, "at": newer}


def test_values_that_only_python_finds_equal_differ() -> None:
    night = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)
    assert night == night.replace(fold=1)
    assert not is_same(night, night.replace(fold=1))
    assert not is_same({"a": [0.0]}, {"a": [-0.0]})
    assert is_same({"a": [float("nan")]}, {"a": [float("nan")]})
    assert change_of("upsert", {"id": 1, "d": 0.0}, {"id": 1, "d": -0.0}).changed == ("d",)
