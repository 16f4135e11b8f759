"""Which commits show by the numbers of rows what was added: those whose writers keep the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.auto.row_lineage import shows_added_rows
from dbt_arctic.catalog.api import Snapshot, TableState

APPENDED = {"spark.app.id": "a", "added-data-files": "1"}
BY_SPARK = {
    "engine-name": "spark",
    "iceberg-version": "Apache Iceberg 1.12.0 (commit 2)",
    "added-data-files": "1",
}


def state(*commits: tuple[str, dict[str, str]]) -> TableState:
    snapshots = tuple(
        Snapshot(number, number - 1 or None, number, number, operation, summary, has_row_ids=True)
        for number, (operation, summary) in enumerate((("append", APPENDED), *commits), start=1)
    )
    last = len(snapshots)
    columns: Any = ()
    return TableState("s", "t", "/t", {"format-version": "3"}, columns, snapshots, last, {"main": last})


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (BY_SPARK, True),
        ({**BY_SPARK, "iceberg-version": "Apache Iceberg 1.10.1 (commit 1)"}, True),
        ({**BY_SPARK, "iceberg-version": "Apache Iceberg 1.9.2 (commit 0)"}, False),
        ({**BY_SPARK, "iceberg-version": ""}, False),
        ({**BY_SPARK, "engine-name": "flink"}, False),
        ({"trino_query_id": "q", "added-data-files": "1"}, False),
        # Only manifests
        ({"engine-name": "flink"}, True),
    ],
)
def test_a_rewrite_of_files_keeps_the_numbers_of_rows_only_with_some_writers(
    summary: dict[str, str], expected: bool
) -> None:
    """A row that gets the number of the rewrite would be added a second time."""
    commits = ("replace", summary), ("append", APPENDED)
    assert shows_added_rows(state(*commits), 1, 3) is expected
    assert shows_added_rows(state(commits[1]), 1, 2)
