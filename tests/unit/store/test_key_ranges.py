"""The range of the keys of changes, according to the bounds of files."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dbt_arctic.catalog.api import DataFile
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import TXN, Column, Generation, KeyedTable
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.store.key_ranges import between, key_ranges

LOG = LogRange((7, 8), (100,))


class Files(OneCatalog):
    """A catalog that knows files only: per file the bounds of each column."""

    def __init__(self, *files: dict[str, tuple[int, int] | None]) -> None:
        self.files = files

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        assert (schema, name, snapshot_id) == ("shop", "orders__change_1", 100)
        found = []
        for number, file in enumerate(self.files):
            low, high = file.get(column) or (None, None)
            found.append(DataFile(f"f{number}", 1, 1, low, high))
        return found


def table(**types: str) -> KeyedTable:
    return KeyedTable(
        name=Name("lake", "shop", "orders"),
        generation=Generation(1, "b", "c"),
        key=tuple(types),
        layout=Layout(8, next(iter(types))),
        columns=tuple(Column(name, type_) for name, type_ in types.items()),
        owner="test",
    )


def ranges(keyed: KeyedTable, *files: dict[str, tuple[int, int] | None]) -> Any:
    return key_ranges(Files(*files), keyed, LOG)  # type: ignore[arg-type]


def test_the_range_spans_the_files_of_these_commits_and_no_others() -> None:
    files = (
        {TXN: (7, 7), "id": (10, 20)},
        {TXN: (8, 8), "id": (15, 40)},
        {TXN: (9, 9), "id": (1, 99)},  # another commit's
    )
    assert ranges(table(id="bigint"), *files) == {"id": ("10", "40")}


@pytest.mark.parametrize("txn", [None, (6, 9)], ids=["unknown", "several commits"])
def test_a_file_that_may_hold_rows_of_these_commits_counts(txn: tuple[int, int] | None) -> None:
    files = ({TXN: (7, 7), "id": (10, 20)}, {TXN: txn, "id": (1, 99)})
    assert ranges(table(id="bigint"), *files) == {"id": ("1", "99")}


def test_a_file_without_bounds_makes_the_result_unknown() -> None:
    files = ({TXN: (7, 7), "id": (10, 20)}, {TXN: (8, 8), "id": None})
    assert ranges(table(id="bigint"), *files) == {}


def test_each_column_of_a_key_by_itself_and_dates_as_dates() -> None:
    files = ({TXN: (7, 7), "id": None, "day": (-1, 31)},)
    assert ranges(table(id="bigint", day="date"), *files) == {
        "day": ("DATE '1969-12-31'", "DATE '1970-02-01'")
    }


def test_bounds_of_other_types_are_no_literals() -> None:
    assert ranges(table(name="string"), {TXN: (7, 7), "name": (1, 2)}) == {}


def test_a_range_is_a_condition() -> None:
    days = ValueRange("DATE '2020-01-01'", "DATE '2020-01-02'")
    assert between({"id": ValueRange("1", "9"), "day": days}, "m") == (
        "m.`id` BETWEEN 1 AND 9 AND m.`day` BETWEEN DATE '2020-01-01' AND DATE '2020-01-02'"
    )


def test_days_that_no_literal_names_leave_nothing_known_of_their_column() -> None:
    beyond = (dt.date.max - dt.date(1970, 1, 1)).days + 1
    files = ({TXN: (7, 7), "id": (10, 20), "day": (0, beyond)},)
    assert ranges(table(id="bigint", day="date"), *files) == {"id": ("10", "20")}
    files = ({TXN: (7, 7), "day": (0, beyond - 1)},)
    assert ranges(table(day="date"), *files) == {"day": ("DATE '1970-01-01'", "DATE '9999-12-31'")}
