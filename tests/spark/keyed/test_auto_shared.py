"""Models of one invocation that read the same tables: what several of them read is read once, and kept."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import expected_requests
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.context import ModelsOfRun
from dbt_arctic.store.row_cache import SharedRows
from tests.extent import extent
from tests.spark.keyed.conftest import Orders

ROUNDS = extent(1, 3)

LINES = {"order_id": "bigint", "line": "int", "amount": "bigint", "kind": "string"}
ORDERS = {"id": "bigint", "customer": "int", "day": "date"}


class Shop:
    """Orders, their lines, and models over both, all refreshed in one invocation."""

    def __init__(self, shop: Any) -> None:
        self.chance = random.Random(11)
        self.orders: Orders = shop.table("orders", ORDERS)
        self.lines: Orders = shop.table("lines", LINES, unique_key=["order_id", "line"], bucket_by="order_id")
        self.orders.build([self.order(number) for number in range(40)])
        self.lines.build([line for number in range(40) for line in self.lines_of(number)])
        self.context = replace(self.orders.session.context, shared=SharedRows())
        o, k = self.orders.name.sql, self.lines.name.sql
        self.models = {
            "kinds": (
                "kind",
                f"SELECT kind, count(*) AS lines, sum(amount) AS amount FROM {k} GROUP BY kind",
            ),
            "customers": (
                "customer",
                f"SELECT o.customer, count(*) AS lines, sum(l.amount) AS amount FROM {o} AS o "
                f"JOIN {k} AS l ON l.order_id = o.id WHERE l.kind <> 'c' GROUP BY o.customer",
            ),
            "days": (
                "day",
                f"SELECT o.day, count(*) AS orders FROM {o} AS o WHERE EXISTS (SELECT 1 FROM {k} AS l "
                "WHERE l.order_id = o.id AND l.amount > 6) GROUP BY o.day",
            ),
            "large": (
                "customer",
                f"SELECT o.customer, count(*) AS orders FROM {o} AS o "
                f"JOIN (SELECT order_id, sum(amount) AS a FROM {k} GROUP BY order_id) AS s "
                "ON s.order_id = o.id WHERE s.a > 15 GROUP BY o.customer",
            ),
            "rows": (
                ["order_id", "line"],
                f"SELECT l.order_id, l.line, l.amount, l.kind, o.customer, o.day FROM {k} AS l "
                f"JOIN {o} AS o ON o.id = l.order_id",
            ),
            "lonely": (
                "id",
                f"SELECT o.id, o.day, max(l.amount) AS most FROM {o} AS o "
                f"LEFT JOIN {k} AS l ON l.order_id = o.id GROUP BY o.id, o.day",
            ),
        }

        for name in extent(("days", "large", "lonely"), ()):
            del self.models[name]

    def order(self, number: int) -> dict[str, Any]:
        day = f"2024-01-{self.chance.randrange(1, 6):02}"
        return {"id": number, "customer": self.chance.randrange(5), "day": day}

    def lines_of(self, number: int) -> list[dict[str, Any]]:
        return [
            {
                "order_id": number,
                "line": line,
                "amount": self.chance.randrange(10),
                "kind": self.chance.choice("abc"),
            }
            for line in range(self.chance.randrange(1, 5))
        ]

    def change(self) -> None:
        """Orders alone, lines alone, both; some go, some come back."""
        drawn = self.chance.sample(range(45), 6)
        self.orders.apply([self.order(number) for number in drawn[:3]], [{"id": drawn[3]}])
        gone = [{"order_id": drawn[4], "line": line} for line in range(4)]
        self.lines.apply([line for number in drawn[2:4] for line in self.lines_of(number)], gone)

    def name(self, model: str) -> Name:
        return self.orders.name.sibling(model)

    def refresh(self, model: str) -> list[str]:
        """Refresh a model, compare it with its query; returns the steps of what was kept for others."""
        key, sql = self.models[model]
        config = parse_config(model, {"unique_key": key, "incremental_strategy": "auto"})
        config = replace(config, full_refresh_above=math.inf)
        ran, context = self.orders.session.statements.ran, self.context
        ran.clear()
        plan = plan_refresh(context.catalog, self.name(model), config, sql, context.query_schema)
        outcome = run_refresh(context, self.name(model), config, plan, owner="model.test")
        assert outcome.choice is not None
        steps = [one.step for one in ran]
        texts = (f"SELECT * FROM {self.name(model).sql}", sql)
        told, expected = (sorted(map(str, context.query(text))) for text in texts)
        assert told == expected, f"{model}: {outcome.message}"
        assert plan.action == "build" or outcome.choice.strategy == "incremental", outcome.message
        return [step for step in steps if step == "share_rows"]


@pytest.fixture
def new_shop(shop: Any) -> Shop:
    return Shop(shop)


@pytest.mark.modelled
def test_what_several_models_read_is_read_once_and_they_are_their_queries(new_shop: Shop) -> None:
    for model in new_shop.models:
        new_shop.refresh(model)
    new_shop.change()
    kept = [new_shop.refresh(model) for model in new_shop.models]
    # The lines for the second model that asks for them, the orders with them; then all is there.
    assert kept == [[], ["share_rows", "share_rows"], *([[]] * (len(kept) - 2))]
    ran = new_shop.orders.session.statements.ran
    read = [one.sql for one in ran if one.step in ("refresh", "stage_keys", "stage_rows")]
    assert read
    assert not any(
        f"{table.name.identifier}__base" in sql for sql in read for table in (new_shop.orders, new_shop.lines)
    )
    for number in range(ROUNDS):
        new_shop.change()
        if number == 0:
            new_shop.change()  # several commits
            new_shop.lines.compact()
        order = list(new_shop.models)
        new_shop.chance.shuffle(order)
        for model in order:
            new_shop.refresh(model)


@pytest.fixture
def together(new_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The same if each refresh knows the other models of the run."""
    monkeypatch.setattr(expected_requests, "WORTH_BYTES", 0)
    new_shop.context = replace(
        new_shop.context,
        alongside=ModelsOfRun(lambda of: [new_shop.name(model) for model in new_shop.models]),
    )
    return new_shop


@pytest.mark.long  # tests/planner/test_shared_reads.py has it for random models
def test_what_others_will_ask_for_is_kept_and_right_in_any_order_and_after_a_model_fell_behind(
    together: Shop,
) -> None:
    for model in together.models:
        together.refresh(model)
    together.change()
    kept = [together.refresh(model) for model in together.models]
    # The lines that changed orders meet among them, though the first model does not read orders.
    assert kept == [["share_rows"], ["share_rows"], *([[]] * (len(kept) - 2))]
    for number in range(1, 2 * ROUNDS + 1):
        together.change()
        order = list(together.models)
        together.chance.shuffle(order)
        # Every other time some are not run: they need the changes of two rounds next time.
        for model in order[2 * (number % 2) :]:
            together.refresh(model)
