"""A lookup of a key reads the files of its bucket that may contain it, and no others. The metrics of the
scans are compared with the bounds of each file in the manifests.
"""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.store.state import head, load_base, load_change
from tests.extent import first
from tests.spark.keyed.test_costs import executions

BUCKETS = 4
N = 400
TYPES = {"id": "bigint", "line": "int", "amount": "int"}


def rows_of_range(first: int, last: int, amount: str = "0") -> str:
    columns = f"id, CAST(id % 3 AS INT) AS line, CAST({amount} AS INT) AS amount"
    return f"SELECT {columns} FROM range({first}, {last})"


def files_read(shop: Any, query: str) -> list[int]:
    """How many files each scan of a query opens, in order of size."""
    shop.main.query(query)
    store, ran = executions(shop)
    execution = ran.apply(ran.size() - 1)
    metrics, values = execution.metrics(), store.executionMetrics(execution.executionId())
    listed = [metrics.apply(at) for at in range(metrics.size())]
    # By its number: adaptive execution reports a scan twice, or one that never ran.
    scans = {one.accumulatorId() for one in listed if one.name() == "number of result data files"}
    told = [values.get(scan) for scan in scans]
    return sorted(int(value.get()) for value in told if value.isDefined())


def expected(orders: Any, first: int, last: int, with_base: int) -> list[int]:
    """As many files of each side as may have a key of a range; of one key, in its bucket.

    :param with_base: how often the view reads the base. It reads the changes twice.
    """
    catalog, table = orders.session.catalog, orders.table
    bucket = None
    if first == last:
        ((bucket,),) = orders.session.query(f"SELECT lake.system.bucket({BUCKETS}, {first}L)")

    def may_match(file: PlacedFile) -> bool:
        here = bucket is None or file.partition == (str(bucket),)
        return here and (file.bounds is None or (file.bounds[0] <= last and first <= file.bounds[1]))

    counts = []
    for side in (load_base(catalog, table), load_change(catalog, table)):
        files = catalog.placed_files(side.schema, side.name, head(side), "id")
        counts.append(sum(may_match(file) for file in files if file.is_data))
    return sorted([counts[0]] * with_base + [counts[1]] * 2)


@pytest.mark.parametrize(
    ("config", "with_base"),
    first(
        1,
        [
            ({"unique_key": "id", "sequence_by": "amount"}, 2),
            ({"unique_key": ["line", "id"], "bucket_by": "id"}, 1),
            ({"unique_key": "id"}, 1),
        ],
    ),
    ids=["with a sequence", "composite", "single"],
)
def test_a_key_costs_its_buckets_matching_files(shop: Any, config: dict[str, Any], with_base: int) -> None:
    orders = shop.table("orders", TYPES, buckets=BUCKETS, **config)
    orders.build_sql(rows_of_range(0, N))
    # Two commits that share no key: statistics distinguish them, the bucket does not.
    orders.upsert_sql(rows_of_range(0, N // 2, "id"))
    orders.upsert_sql(rows_of_range(N // 2, N, "id"))
    for state in ("pending", "merged, not trimmed", "compacted"):
        if state != "pending":
            orders.compact(grace=0 if state == "compacted" else 3600)
        for low, high in ((35, 35), (N - 35, N - 35), (10, 40)):
            condition = f"id = {low}" if low == high else f"id BETWEEN {low} AND {high}"
            if low == high and "line" in config["unique_key"]:
                condition += f" AND line = {low % 3}"
            query = f"SELECT amount FROM {orders.name.sql} WHERE {condition}"
            assert sorted(shop.main.query(query)) == [(number,) for number in range(low, high + 1)]
            wanted = expected(orders, low, high, with_base)
            assert files_read(shop, query) == wanted, (state, condition)
            if low == high and state == "pending":
                # A base file; a marker and the file of one commit.
                assert wanted == [1] * with_base + [2, 2]


def test_a_filter_finds_nan_as_the_greatest_number(shop: Any) -> None:
    """Iceberg's bounds leave out NaN, so they must not skip a file for Spark."""
    columns = {"id": "bigint", "it's x": "double", "Y": "float", "n": "int"}
    orders = shop.table("measured", columns, buckets=1, on_schema_change="append_new_columns")

    def rows(first: int, last: int, more: str = "") -> str:
        value = "IF(id % 3 = 1, 'NaN', CAST(id % 3 AS STRING))"
        return (
            f"SELECT id, CAST({value} AS DOUBLE) AS `it's x`, CAST({value} AS FLOAT) AS `Y`, "
            f"CAST(id AS INT) AS n{more} FROM range({first}, {last})"
        )

    def ids(condition: str) -> list[int]:
        return sorted(
            id_ for (id_,) in shop.main.query(f"SELECT id FROM {orders.name.sql} WHERE {condition}")
        )

    orders.build_sql(rows(0, 6))
    # A file without another value has neither bounds nor numbers, and is skipped by its counts.
    orders.upsert_sql(rows(7, 8))
    later = ", CAST(IF(id = 10, 'NaN', '1') AS DOUBLE) AS later"
    orders.upsert_sql(rows(9, 12, later))
    for state in ("pending", "compacted"):
        for column in ("`it's x`", "`Y`"):
            assert ids(f"{column} > 5") == ids(f"NOT {column} <= 5") == [1, 4, 7, 10], state
        assert ids("later > 5") == [10], state
        assert ids("n > 100") == [], state
        orders.compact()
    for side in (load_base, load_change):
        metrics = {name for name in side(shop.main.catalog, orders.table).properties if ".column." in name}
        floats = {f"write.metadata.metrics.column.{name}" for name in ("it's x", "Y", "later")}
        assert {name for name in metrics if not name.endswith(("._txn", "._offset"))} == floats
