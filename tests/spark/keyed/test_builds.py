"""What a build costs, and that a key which comes twice is found all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.engine import commit_conflicts
from dbt_arctic.engine.commit_conflicts import refuses_stale_commit, require_commit_conflicts
from dbt_arctic.errors import ConfigError, DuplicateKey, NullKey, SchemaChanged
from dbt_arctic.keyed import layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh import build
from tests.extent import first

LAYOUTS: list[dict[str, Any]] = [
    {},
    {"partition_by": "amount"},
    {"buckets": 128},
    {"deduplicate_by": "1"},
    {"unique_key": ["id", "amount"], "sort_by": "amount"},
]
ROWS = [{"id": number, "amount": number} for number in range(5)]


def plan_of_build(table: Any) -> str:
    fill = next(one.sql for one in reversed(table.session.statements.ran) if one.step == "fill_base")
    plan: str = table.session.query(f"EXPLAIN {fill}")[0][0]
    return plan


def test_rows_are_shuffled_once_and_sorted_by_the_key_alone(shop: Any) -> None:
    shop.main.plans_as_for_users()
    orders = shop.table("orders", buckets=4)
    orders.build_sql("SELECT id, CAST(id AS INT) AS amount FROM range(3000)")
    plan = plan_of_build(orders)
    assert plan.count("Exchange") == 1
    assert "REBALANCE_PARTITIONS_BY_COL" in plan, "a large bucket is split between tasks"
    assert plan.count("Sort [id") == 1
    assert "Window" not in plan
    assert len(orders.rows()) == 3000
    files = shop.main.query(f"SELECT file_path, partition FROM {orders.table.base.sql}.files")
    assert len(files) == 4
    for path, _ in files:
        ids = [row[0] for row in shop.main.query(f"SELECT id FROM parquet.`{path}`")]
        assert ids == sorted(ids)


@pytest.fixture
def unknown_catalog(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The lake, with a catalog of which nothing is known."""
    monkeypatch.setattr(commit_conflicts, "_COMPARING", set())
    monkeypatch.setattr(commit_conflicts, "_comparing", set())
    session = shop.main

    def require(name: Name) -> None:
        require_commit_conflicts(session.connection, name.catalog, name.schema, name.identifier)

    session.context = replace(session.context, require_conflicts=require)
    return shop


def test_a_catalog_without_commit_conflicts_is_refused_before_a_table_is_shown(
    unknown_catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_conflicts, "refuses_stale_commit", lambda *names: False)
    orders = unknown_catalog.table("orders")
    with pytest.raises(ConfigError, match="accepts two commits on one version"):
        orders.build(ROWS)
    assert list(unknown_catalog.main.catalog.list_names(orders.name.schema)) == []


def test_commit_conflicts_are_tried_once_and_leave_nothing(
    unknown_catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def counted(*names: Any) -> bool:
        tried.append(names[-1])
        return refuses_stale_commit(*names)

    monkeypatch.setattr(commit_conflicts, "refuses_stale_commit", counted)
    for name in ("orders", "others"):
        orders = unknown_catalog.table(name)
        orders.build(ROWS)
        assert orders.rows() == ROWS
        base = orders.table.base
        branches = unknown_catalog.main.catalog.load_table(base.schema, base.identifier).branches
        assert set(branches) == {"main"}
    assert len(tried) == 1


def test_hadoops_catalog_without_a_lock_depends_on_the_renames_of_its_file_system(
    unknown_catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_conflicts, "_HADOOP", "org.apache.iceberg.jdbc.JdbcCatalog")
    monkeypatch.delattr(commit_conflicts, "refuses_stale_commit")  # it would not show what renames do
    orders = unknown_catalog.table("orders")
    orders.build(ROWS)
    assert orders.rows() == ROWS
    commit_conflicts._comparing.clear()
    monkeypatch.setattr(commit_conflicts, "_WITH_ATOMIC_RENAME", set())
    with pytest.raises(ConfigError, match="accepts two commits on one version"):
        unknown_catalog.table("others").build(ROWS)


COMPARED: list[dict[str, Any]] = [
    {"sequence_by": "amount"},
    {"deduplicate_by": "amount"},
    {"delete_when": "amount < 0"},
    {"deduplicate_by": "amount", "delete_when": "amount < 0"},
]


@pytest.mark.parametrize("config", COMPARED)
def test_rows_that_are_compared_are_shuffled_and_sorted_once(shop: Any, config: dict[str, Any]) -> None:
    shop.main.plans_as_for_users()
    orders = shop.table("orders", buckets=4, **config)
    times = 3 if {"sequence_by", "deduplicate_by"} & config.keys() else 1
    rows = f"SELECT id % 2000 AS id, CAST(id AS INT) AS amount FROM range(0, {2000 * times}, 1, 4)"
    for cores, shuffles in ((2, 1), (64, 2), (None, 2)):
        orders.session.context = replace(orders.session.context, cores=cores)
        orders.build_sql(rows)
        plan = plan_of_build(orders)
        assert plan.count("Exchange") == shuffles
        assert plan.count("Sort [") == shuffles
        assert "WindowGroupLimit" not in plan
        assert orders.rows() == [{"id": id_, "amount": id_ + 2000 * (times - 1)} for id_ in range(2000)]
        with pytest.raises(DuplicateKey, match='"id":7'):
            orders.build_sql(f"{rows} UNION ALL SELECT 7, {7 + 2000 * (times - 1)}")
        for amount in (1, -1):
            with pytest.raises(NullKey):
                orders.build_sql(f"{rows} UNION ALL SELECT NULL, {amount}")
    files = shop.main.query(f"SELECT file_path, partition FROM {orders.table.base.sql}.files")
    for path, _ in files:
        ids = [row[0] for row in shop.main.query(f"SELECT id FROM parquet.`{path}`")]
        assert ids == sorted(ids)


def test_an_upsert_shuffles_its_rows_once(shop: Any) -> None:
    shop.main.plans_as_for_users()
    configs = ({}, {"deduplicate_by": "amount"}, {"sequence_by": "amount"}, {"buckets": 1})
    for number, config in enumerate(configs):
        orders = shop.table(f"orders{number}", **{"buckets": 4, **config})
        orders.build(ROWS)
        orders.session.context = replace(orders.session.context, cores=2)
        orders.upsert_sql("SELECT id, CAST(id + 1 AS INT) AS amount FROM range(2000)")
        upsert = orders.session.statements.ran[-1]
        assert upsert.step == "upsert"
        (plan,) = orders.session.query(f"EXPLAIN {upsert.sql}")[0]
        assert plan.count("Exchange") == 1
        history = orders.session.catalog.load_table(orders.name.schema, orders.table.change.identifier)
        assert history.history()[0].summary["added-data-files"] == str(config.get("buckets", 4))
        assert orders.rows() == [{"id": id_, "amount": id_ + 1} for id_ in range(2000)]


def test_an_upsert_may_have_a_key_of_another_type(shop: Any) -> None:
    orders = shop.table("orders", buckets=4)
    orders.build(ROWS)
    for amount, cores in ((100, None), (200, 2), (300, 64)):
        orders.session.context = replace(orders.session.context, cores=cores)
        orders.upsert_sql(f"SELECT CAST(id AS SMALLINT) AS id, {amount} AS amount FROM range(3)")
        orders.upsert_sql(f"SELECT CAST(id AS DECIMAL(19, 0)) AS id, {amount + 1} AS amount FROM range(2)")
        assert [row["amount"] for row in orders.rows()] == [amount + 1, amount + 1, amount, 3, 4]
    with pytest.raises(NullKey):
        orders.upsert_sql("SELECT CAST(NULL AS BIGINT) AS id, 8 AS amount")
    with pytest.raises(NullKey):  # what the column cannot hold is no key of it
        orders.upsert_sql("SELECT 9999999999999999999BD AS id, 8 AS amount")


def test_files_that_users_do_not_want_open_are_open_in_a_build_all_the_same(shop: Any) -> None:
    orders = shop.table("orders", buckets=16, tblproperties={"write.spark.fanout.enabled": "false"})
    orders.build_sql("SELECT id, CAST(id AS INT) AS amount FROM range(300)")
    assert len(orders.rows()) == 300


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("layout", "rows_of_a_task"),
    first(4, [(layout, rows) for layout in LAYOUTS for rows in (0, 4_000_000)]),
)
def test_a_key_that_comes_twice_fails_a_build(
    shop: Any, layout: dict[str, Any], rows_of_a_task: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_ROWS_OF_A_TASK", rows_of_a_task)
    orders = shop.table("orders", **layout)
    twice = [*ROWS, ROWS[3]]
    with pytest.raises(DuplicateKey, match='"id":3'):
        orders.build(twice)
    assert shop.main.catalog.list_relations(orders.name.schema) == []
    orders.build(ROWS)
    with pytest.raises(DuplicateKey, match='"id":3'):
        orders.build(twice)
    assert orders.rows() == ROWS
    with pytest.raises(NullKey):
        orders.build([*ROWS, {"id": None, "amount": 1}])
    assert orders.rows() == ROWS


@pytest.mark.parametrize(
    ("type_", "key"),
    [("date", "TIMESTAMP'2026-01-02 00:30:00' + make_dt_interval(0, int(id))"), ("bigint", "id + 0.5BD")],
)
def test_keys_that_would_become_one_in_the_table_are_refused(shop: Any, type_: str, key: str) -> None:
    days = shop.table("days", {"day": type_, "amount": "int"}, unique_key="day", buckets=4)
    days.build([{"day": "2026-01-01" if type_ == "date" else 1, "amount": 1}])
    with pytest.raises(SchemaChanged, match="day is"):
        days.upsert_sql(f"SELECT {key} AS day, int(id) AS amount FROM range(2)")
    assert len(days.rows()) == 1


def test_a_key_that_is_null_in_rows_that_a_query_leaves_out_is_no_error(shop: Any) -> None:
    """Spark pushes conditions down to the tables, and would have evaluated the check for all their rows."""
    types = {"id": "int", "customer": "int"}
    sales, customers = shop.table("sales", types), shop.table("customers", {"id": "int", "city": "string"})
    sales.build([{"id": 1, "customer": None}, {"id": 2, "customer": 7}])
    customers.build([{"id": 7, "city": "A"}])
    joined = shop.table("joined", {"customer": "int", "city": "string"}, unique_key="customer")
    joined.build_sql(
        f"SELECT s.customer, c.city FROM {sales.name.sql} AS s JOIN {customers.name.sql} AS c "
        "ON c.id = s.customer"
    )
    assert joined.rows() == [{"customer": 7, "city": "A"}]
    sales.upsert([{"id": 1, "customer": 8}])
    counted = shop.table("counted", {"customer": "int", "sales": "bigint"}, unique_key="customer")
    counted.build_sql(f"SELECT customer, count(*) AS sales FROM {sales.name.sql} GROUP BY customer")
    assert counted.rows() == [{"customer": 7, "sales": 1}, {"customer": 8, "sales": 1}]
    sales.upsert([{"id": 3, "customer": None}])
    with pytest.raises(NullKey):
        counted.build_sql(f"SELECT customer, count(*) AS sales FROM {sales.name.sql} GROUP BY customer")


@pytest.mark.parametrize(
    ("size", "config", "buckets"),
    [
        (100, {}, 1),
        (9_000_000, {}, 2),
        (100, {"partition_by": "amount"}, 2),
        (100, {"buckets": 4}, 4),
    ],
)
def test_a_new_table_begins_with_the_buckets_that_its_size_needs(
    shop: Any, size: int, config: dict[str, Any], buckets: int
) -> None:
    assert layout.DEFAULT_BUCKETS == 2, "of these tests"
    orders = shop.table("orders", **{"buckets": "auto", **config})
    # Without statistics of columns, Spark expects that a filter keeps all rows.
    sql = "SELECT id, CAST(id AS INT) AS amount FROM range({}) WHERE id % 2500000 = 0"
    orders.build_sql(sql.format(size))
    assert orders.table.layout.buckets == buckets
    assert orders.rows() == [{"id": id_, "amount": id_} for id_ in range(0, size, 2_500_000)]
    orders.build_sql(sql.format(9_000_100 - size))
    assert orders.table.layout.buckets == buckets, "a full refresh keeps the number"
