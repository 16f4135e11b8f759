"""What a change table has at a version, by the bounds of its files, and how a read makes use of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import DataFile, Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.store.change_log import logged_at

MARKERS = DataFile("markers", 8, 1, 0, 0)
TABLE = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(1, "b", "c"),
    key=("id",),
    layout=Layout(8, "id"),
    columns=(Column("id", "bigint"), Column("price", "int")),
    owner="test",
)
AT = Version(1, 2, 5)


class Files(OneCatalog):
    def __init__(self, *files: DataFile, needs_spark: bool = False) -> None:
        self.files, self.needs_spark = files, needs_spark

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        assert (schema, name, snapshot_id, column) == ("shop", "orders__change_1", 2, "_txn")
        return list(self.files)


def logged(*files: DataFile, commits: tuple[tuple[int, int], ...] = ((7, 30),), **how: Any) -> str:
    """:param commits: transactions and how many rows they said to have, from the second snapshot on."""
    first = Snapshot(1, None, 1, 0, "append", {"added-records": "8"})
    others = [
        Snapshot(2 + at, 1 + at, 2 + at, 0, "append", {"arctic.txn": str(txn), "added-records": str(rows)})
        for at, (txn, rows) in enumerate(commits)
    ]
    last = len(commits) + 1
    state = TableState("shop", "orders__change_1", "/", {}, (), (first, *others), last, {"main": last})
    return logged_at(Files(*files, **how), TABLE, state, 2)  # type: ignore[arg-type]


def file(rows: int, *bounds: int | None) -> DataFile:
    low, high = bounds if len(bounds) == 2 else bounds * 2
    return DataFile("f", rows, 1, low, high)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ((MARKERS,), "nothing"),
        ((), "nothing"),
        ((MARKERS, file(10, 7), file(20, 7)), "one"),
        ((MARKERS, file(10, 7), file(20, 8)), "several"),
        ((MARKERS, file(30, 7, 8)), "several"),
        # Markers and changes in one file; and a file without bounds.
        ((file(38, 0, 7),), "several"),
        ((MARKERS, file(30, None)), "several"),
        # A statement that arrived twice.
        ((MARKERS, file(30, 7), file(30, 7)), "several"),
    ],
    ids=["markers", "empty", "one", "two", "mixed", "with markers", "unknown", "twice"],
)
def test_the_bounds_of_transactions_decide(files: tuple[DataFile, ...], found: str) -> None:
    assert logged(*files) == found


def test_a_commit_that_the_log_has_forgotten_may_have_come_twice() -> None:
    assert logged(MARKERS, file(30, 7), commits=((8, 30),)) == "several"


def test_it_is_not_worth_a_spark_job() -> None:
    assert logged(MARKERS, needs_spark=True) == "several"


def test_a_version_of_which_nothing_is_known() -> None:
    state = TableState("shop", "orders__change_1", "/", {}, (), (), None, {})
    assert logged_at(Files(MARKERS), TABLE, state, 2) == "several"  # type: ignore[arg-type]


def test_what_is_not_there_is_not_read() -> None:
    assert "__change_1" not in merge_on_read(TABLE, AT, logged="nothing")
    assert "row_number" not in merge_on_read(TABLE, AT, logged="one")
    assert "row_number" in merge_on_read(TABLE, AT)


def test_rows_of_other_keys_are_dropped_before_anything_is_merged() -> None:
    of_keys = merge_on_read(TABLE, AT, keys="SELECT id FROM wanted")
    base, changes = of_keys.split("UNION ALL")
    assert base.index("LEFT SEMI JOIN") < base.index("LEFT ANTI JOIN")
    assert changes.index("row_number") < changes.index("LEFT SEMI JOIN") < changes.index("WHERE"), "inside"


def test_with_a_sequence_one_commit_may_have_lost_against_the_base() -> None:
    late = replace(TABLE, generation=Generation(1, "b", "c", "price"))
    assert "row_number" in merge_on_read(late, AT, logged="one")
    assert "__change_1" not in merge_on_read(late, AT, logged="nothing")
