"""The rows of a small table without Spark: all of them, with the requested columns; or an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyiceberg.catalog import sql

from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.errors import CatalogUnavailable, UnknownRelation


def no_spark(sql: str) -> list[tuple[Any, ...]]:
    raise AssertionError(f"Spark was asked: {sql}")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[RemoteCatalog]:
    where = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/files"}
    made = sql.SqlCatalog("lake", **where)
    made.create_namespace("shop")
    rows = pyarrow.table({"name": ["a", None, "c"], "files": pyarrow.array([1, 2, 3], pyarrow.int64())})
    table = made.create_table("shop.small", rows.schema)
    table.append(rows)
    table.append(rows.slice(0, 1))
    made.engine.dispose()
    reader = RemoteCatalog(
        "lake", {"type": "sql", **where}, SparkSqlCatalog("lake", no_spark), views_by_sql=True
    )
    yield reader
    reader._open().engine.dispose()  # type: ignore[attr-defined]


def test_every_commit_counts_and_columns_have_the_requested_order(lake: RemoteCatalog) -> None:
    rows = lake.read_rows("shop", "small", ["files", "name"])
    assert sorted(rows) == [(1, "a"), (1, "a"), (2, None), (3, "c")]


def test_a_file_that_is_gone_is_an_error_that_names_the_table(lake: RemoteCatalog, tmp_path: Path) -> None:
    next(tmp_path.rglob("*.parquet")).unlink()
    with pytest.raises(CatalogUnavailable, match=r"The rows of `lake\.shop\.small` cannot be read"):
        lake.read_rows("shop", "small", ["name"])


def test_a_table_that_is_not_there_is_unknown(lake: RemoteCatalog) -> None:
    with pytest.raises(UnknownRelation):
        lake.read_rows("shop", "nothing", ["name"])
