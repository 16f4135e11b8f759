"""How many rows of commits are before-images, by the statistics of files."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import DataFile, Snapshot
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.store.before_images import count_images
from tests.unit.store.test_change_log import TABLE


class Files(OneCatalog):
    """Each file: the transaction of its rows (or the first and the last), and how many of them are images."""

    def __init__(self, *files: tuple[int | tuple[int, int], int | None], needs_spark: bool = False) -> None:
        self.files, self.needs_spark = files, needs_spark

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        assert (schema, name, snapshot_id) == ("shop", "orders__change_1", 9)
        found = []
        for at, (txn, nulls) in enumerate(self.files):
            low, high = txn if isinstance(txn, tuple) else (txn, txn)
            if column == "_txn":
                found.append(DataFile(f"f{at}", 50, 1, low, high, 0))
            else:
                found.append(DataFile(f"f{at}", 50, 1, None, None, nulls))
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
        ([WITH], [((5, 7), 3)], None),
        ([WITH], [((8, 9), 3), (7, 2)], 2),
    ],
    ids=["those of the commits", "none keeps any", "nobody counted", "trimmed", "merged", "merged apart"],
)
def test_nulls_distinguish_the_states(
    commits: list[Snapshot], files: list[tuple[int | tuple[int, int], int | None]], found: int | None
) -> None:
    assert count_images(Files(*files), TABLE, commits, 9) == found  # type: ignore[arg-type]


def test_it_is_not_worth_a_spark_job() -> None:
    assert count_images(Files((7, 3), needs_spark=True), TABLE, [WITH], 9) is None  # type: ignore[arg-type]
