"""Whether a change table has lost its markers: the log says where that may be, the files whether it is."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.compaction.markers import may_be_lost
from dbt_arctic.compaction.plan import plan_table, requested_operation
from dbt_arctic.compaction.settings import CompactionSettings
from tests.unit.compaction.conftest import MB, Log, Orders

CHANGES = PlacedFile(True, 10, MB, ("0",), (5, 5))
DELETES = PlacedFile(False, 1, MB, ("0",))
MARKERS = PlacedFile(True, 1, 900, ("0",), None)
MARKERS_BY_NUMBER = PlacedFile(True, 1, 900, ("0",), (0, 0))


def remove_rows(log: Log, rows: int, **summary: str) -> None:
    """By a commit that says nothing of ours."""
    log.commit(1, "delete", rows=-rows, files=-rows, size=-1000 * rows)
    log.snapshots[-1].summary.update({"deleted-records": str(rows), **summary})  # type: ignore[attr-defined]


def test_no_manifest_is_read_where_nothing_may_have_taken_them(orders: Orders) -> None:
    orders.upsert(5)
    remove_rows(orders.change, 10)
    assert not orders.status.markers_lost  # whatever reads ``orders.files`` would fail


@pytest.mark.parametrize(
    ("files", "markers_lost"),
    [
        ([CHANGES, DELETES], True),
        ([], True),
        ([CHANGES, MARKERS], False),
        ([CHANGES, MARKERS_BY_NUMBER], False),
    ],
    ids=["taken", "all taken", "a trim of as many rows", "a trim, and markers by number"],
)
def test_the_files_show_which_runs_were_cancelled(
    orders: Orders, files: list[PlacedFile], markers_lost: bool
) -> None:
    orders.upsert(5)
    remove_rows(orders.change, 2)
    orders.files["orders__change_1"] = files
    status = orders.status
    assert status.markers_lost == markers_lost
    assert status.change.rows == (10 if markers_lost else 8), "of what is gone nothing is taken off"
    due = [one for one in plan_table(status, None, CompactionSettings(buckets=2)) if one.kind == "full"]
    assert [one.to_buckets for one in due] == [2] * markers_lost
    asked = requested_operation("full", status, CompactionSettings(buckets=2))
    assert asked.to_buckets == (2 if markers_lost else None)
    assert (asked.cost_s < 2) == markers_lost, "the base stays as it is"


def test_what_was_taken_before_others_were_made_is_no_loss(orders: Orders) -> None:
    orders.upsert(5)
    remove_rows(orders.change, 2)
    orders.change.commit(1, rows=4, files=4, size=4000, markers="4")
    assert not may_be_lost(orders.table, orders.change.state)
    remove_rows(orders.change, 2)
    assert not may_be_lost(orders.table, orders.change.state), "there are four now"
    remove_rows(orders.change, 4)
    assert may_be_lost(orders.table, orders.change.state)


def test_rows_hidden_in_files_that_another_program_merged_count_too(orders: Orders) -> None:
    orders.change.commit(1, "delete", hidden=2, vectors=1)
    orders.change.snapshots[-1].summary.update({"added-position-deletes": "2"})  # type: ignore[attr-defined]
    assert may_be_lost(orders.table, orders.change.state)


def test_without_the_commit_that_created_them_an_empty_table_decides(orders: Orders) -> None:
    orders.upsert(5, rows=10)
    orders.change.expire(1)
    assert not may_be_lost(orders.table, orders.change.state)
    orders.change.commit(1, "delete", rows=-12, files=-4)
    assert may_be_lost(orders.table, orders.change.state)
    orders.table = orders.table.__class__(**{**vars(orders.table), "layout": orders.table.layout.having(0)})
    assert not may_be_lost(orders.table, orders.change.state), "it never had any"
