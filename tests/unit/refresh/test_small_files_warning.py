"""A commit of very many small files is reported with the number of partitions, if it is one of this run."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.refresh.small_files_warning import MANY_FILES, many_small_files

KIB = 1024


def commit(files: int, kib_each: int, *, at_ms: int = 1000, partitions: int | None = None) -> Snapshot:
    summary = {"added-data-files": str(files), "added-files-size": str(files * kib_each * KIB)}
    if partitions is not None:
        summary["changed-partition-count"] = str(partitions)
    return Snapshot(1, None, 1, at_ms, "append", summary)


def test_the_warning_counts_files_and_partitions() -> None:
    found = many_small_files("orders", ["p"], [commit(1, 1), commit(4000, 4, partitions=3900)], 1000)
    assert found is not None
    assert found.what == "a commit wrote 4,000 files of 4.0 kB on average"
    assert found.where == "orders"
    assert "partition_by=p divides its rows into 3,900 partitions" in found.why
    assert "--full-refresh --select orders" in found.fix


@pytest.mark.parametrize(
    "commits",
    [
        [],
        [Snapshot(1, None, 1, 1000, "delete", {})],
        [commit(MANY_FILES - 1, 4)],
        [commit(MANY_FILES, 1024)],
        [commit(MANY_FILES, 4, at_ms=999)],
    ],
    ids=["nothing", "no files", "few files", "large files", "an earlier run"],
)
def test_other_commits_are_not_reported(commits: list[Any]) -> None:
    assert many_small_files("orders", ["p"], commits, 1000) is None
    assert many_small_files("orders", ["p"], [commit(MANY_FILES, 1023)], 1000) is not None
