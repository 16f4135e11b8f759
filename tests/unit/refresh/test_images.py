"""How many rows of commits are before-images, by the statistics of files."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import DataFile, Snapshot
from dbt_arctic.refresh.images import count_images
from tests.unit.refresh.test_logged import TABLE


class Files:
    """Each file: the transaction of its rows, and how many of them are images."""

    def __init__(self, *files: tuple[int, int | None], needs_spark: bool = False) -> None:
        self.files, self.needs_spark = files, needs_spark

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        assert (schema, name, snapshot_id) == ("shop", "orders__change_1", 9)
        found = []
        for at, (txn, nulls) in enumerate(self.files):
            bound = txn if column == "_txn" else None
            found.append(DataFile(f"f{at}", 50, 1, bound, bound, 0 if column == "_txn" else nulls))
        return found


def commit(txn: int, **summary: str) -> Snapshot:
    told = {f"arctic.{name}": value for name, value in summary.items()}
    return Snapshot(txn, None, txn, 0, "append", {"arctic.txn": str(txn), **told})


WITH, WITHOUT = commit(7, images="true"), commit(8)


@pytest.mark.parametrize(
    ("commits", "files", "found"),
    [
        ([WITH, WITHOUT], [(0, 0), (7, 3), (7, 4), (8, 9)], 7),
        ([WITHOUT], [(8, None)], 0),
        ([WITH], [(7, 3), (7, None)], None),
        ([WITH], [(0, 0)], 0),
    ],
    ids=["those of the commits", "none keeps any", "nobody counted", "trimmed"],
)
def test_nulls_tell(commits: list[Snapshot], files: list[tuple[int, int | None]], found: int | None) -> None:
    assert count_images(Files(*files), TABLE, commits, 9) == found  # type: ignore[arg-type]


def test_it_is_not_worth_a_spark_job() -> None:
    assert count_images(Files((7, 3), needs_spark=True), TABLE, [WITH], 9) is None  # type: ignore[arg-type]
