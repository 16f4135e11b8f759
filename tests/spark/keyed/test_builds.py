"""What a build costs, and that a key which comes twice is found all the same."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import DuplicateKey, NullKey

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
    orders = shop.table("orders", buckets=4)
    orders.build_sql("SELECT id, CAST(id AS INT) AS amount FROM range(3000)")
    plan = plan_of_build(orders)
    assert plan.count("Exchange") == 1
    assert plan.count("Sort [id") == 1
    assert "Window" not in plan
    assert len(orders.rows()) == 3000
    files = shop.main.query(f"SELECT file_path, partition FROM {orders.table.base.sql}.files")
    assert len(files) == 4
    for path, _ in files:
        ids = [row[0] for row in shop.main.query(f"SELECT id FROM parquet.`{path}`")]
        assert ids == sorted(ids)


def test_an_upsert_shuffles_its_rows_once(shop: Any) -> None:
    for number, config in enumerate(({}, {"deduplicate_by": "amount"}, {"sequence_by": "amount"})):
        orders = shop.table(f"orders{number}", buckets=4, **config)
        orders.build(ROWS)
        orders.upsert_sql("SELECT id, CAST(id + 1 AS INT) AS amount FROM range(2000)")
        upsert = orders.session.statements.ran[-1]
        assert upsert.step == "upsert"
        (plan,) = orders.session.query(f"EXPLAIN {upsert.sql}")[0]
        assert plan.count("Exchange") == 1
        history = orders.session.catalog.load_table(orders.name.schema, orders.table.change.identifier)
        assert history.history()[0].summary["added-data-files"] == "4"
        assert orders.rows() == [{"id": id_, "amount": id_ + 1} for id_ in range(2000)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join(layout) or "default")
def test_a_key_that_comes_twice_fails_a_build(shop: Any, layout: dict[str, Any]) -> None:
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
