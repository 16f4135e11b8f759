"""Columns that the base declares NOT NULL: compaction still merges in place, and reads join in place."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch, shop: Any) -> Any:
    """Models whose contract declares these columns NOT NULL; as without one when the set is empty."""
    columns = {"id", "amount"}
    module = sys.modules[type(shop.table("any", {"id": "int"})).__module__]
    parse = module.parse_config
    monkeypatch.setattr(
        module, "parse_config", lambda *config: replace(parse(*config), required=tuple(sorted(columns)))
    )
    return columns


@pytest.mark.modelled
def test_rows_without_a_column_that_is_to_be_dropped_can_be_merged(shop: Any, required: set[str]) -> None:
    types = {"id": "bigint", "amount": "int"}
    orders = shop.table("orders", types, on_schema_change="sync_all_columns")
    orders.build([{"id": 1, "amount": 1}])
    narrow = orders.with_types({"id": "bigint"})
    required.discard("amount")
    session = shop.session()

    def before(step: str) -> None:
        if step == "drop_columns":
            raise KeyboardInterrupt

    session.statements.before = before
    with pytest.raises(KeyboardInterrupt):
        narrow.on(session).upsert([{"id": 2}])
    narrow.upsert([{"id": 3}])
    narrow.compact()
    assert narrow.base_rows() == [{"id": 1}, {"id": 3}]


def test_reads_and_merges_stay_in_place(shop: Any, required: set[str]) -> None:
    session = shop.main
    session.plans_as_for_users()
    session.query("SET spark.sql.autoBroadcastJoinThreshold = -1")
    orders = shop.table("orders", {"id": "bigint", "amount": "int"}, buckets=4)
    orders.build_sql("SELECT id, CAST(id AS INT) AS amount FROM range(3000)")
    orders.upsert_sql("SELECT id, CAST(id + 1 AS INT) AS amount FROM range(700)")
    orders.upsert_sql("SELECT id, CAST(NULL AS INT) AS amount, 'D' AS _action FROM range(100)")
    plans = [session.query(f"EXPLAIN SELECT * FROM {orders.name.sql}")[0][0]]
    run = session.context.run

    def explained(step: str, sql: str, table: Any = None) -> int | None:
        if step == "merge":
            plans.append(session.query(f"EXPLAIN {sql}")[0][0])
        return run(step, sql, table)

    session.context = replace(session.context, run=explained)
    orders.compact()
    assert len(plans) == 2
    for plan in plans:
        assert "Join" in plan
        assert "Exchange" not in plan
    assert len(orders.base_rows()) == 2900
