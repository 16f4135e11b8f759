"""A statement that a catalog or a network delivers twice, on the way to an automatic model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.refresh.config import parse_config


@pytest.mark.modelled
def test_rows_that_land_again_after_they_were_consumed_count_once(shop: Any) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    context, model = orders.session.context, orders.name.sibling("totals")
    sql = (
        "SELECT amount % 2 AS part, count(*) AS orders, sum(amount) AS amount "
        f"FROM {orders.name.sql} GROUP BY amount % 2"
    )
    config = parse_config("totals", {"unique_key": "part", "incremental_strategy": "auto"})
    config = replace(config, full_refresh_above=math.inf)

    def refresh() -> str:
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        outcome = run_refresh(context, model, config, plan, owner="model.test")
        rows = [sorted(map(tuple, context.query(text))) for text in (f"SELECT * FROM {model.sql}", sql)]
        assert rows[0] == rows[1]
        return str(outcome.choice)

    refresh()
    orders.upsert([{"id": 1, "amount": 4}, {"id": 30, "amount": 3}])
    sent = next(one.sql for one in reversed(orders.session.statements.ran) if one.sql.startswith("INSERT"))
    assert refresh() == "INCREMENTAL (sums)"
    orders.session.query(sent)
    assert refresh() == "INCREMENTAL (sums)"
    orders.upsert([{"id": 30, "amount": 6}])
    assert refresh() == "INCREMENTAL (sums)"
