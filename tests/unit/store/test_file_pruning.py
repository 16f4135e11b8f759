"""Whether a table has rows in an interval, by the bounds of its files."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import DataFile
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.version import Version
from dbt_arctic.store.file_pruning import may_hold
from tests.unit.store.test_change_log import TABLE

Bounds = tuple[int | None, int | None, int | None]
"""The least and the greatest value of a file of three rows, and its number of NULLs."""
UNKNOWN, NULLS = (None, None, None), (None, None, 3)


class Files(OneCatalog):
    """The files of the base table, and those of the change table: a marker, and commits after it."""

    def __init__(self, base: list[Bounds], changes: list[Bounds], *, needs_spark: bool = False) -> None:
        self.sides = {"orders__base_1": base, "orders__change_1": [UNKNOWN, *changes]}
        self.needs_spark = needs_spark

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        assert (name, snapshot_id) in {("orders__base_1", 8), ("orders__change_1", 9)}
        files = enumerate(self.sides[name])
        if column == "_txn":
            return [DataFile(f"{at}", 3, 1, at, at, 0) for at, _ in files]
        return [DataFile(f"{at}", 3, 1, *bounds) for at, bounds in files]


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        ([], [], False),
        ([(1, 9, 0), (21, 30, 1)], [(0, 9, 0)], False),
        ([(1, 10, 0)], [], True),
        ([(20, 20, 2)], [], True),
        ([(1, 30, 0)], [], True),
        ([], [(1, 9, 0), (12, 13, 0)], True),
        ([NULLS], [NULLS], False),
        ([UNKNOWN], [], True),
        ([], [UNKNOWN], True),
        ([(None, None, 2)], [], True),
    ],
)
def test_a_file_counts_if_a_row_of_it_may_be_in_the_interval(
    base: list[Bounds], changes: list[Bounds], expected: bool
) -> None:
    files = Files(base, changes)
    assert may_hold(files, TABLE, Version(1, 9, 8), "at", 10, 20) is expected  # type: ignore[arg-type]


def test_it_is_not_worth_a_spark_job_and_an_empty_base_table_has_no_snapshot() -> None:
    asked = Files([], [], needs_spark=True)
    assert may_hold(asked, TABLE, Version(1, 9, 8), "at", 10, 20)  # type: ignore[arg-type]
    assert not may_hold(Files([], []), TABLE, Version(1, 9, 0), "at", 10, 20)  # type: ignore[arg-type]
