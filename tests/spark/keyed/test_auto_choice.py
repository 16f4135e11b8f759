"""An automatic model's own commits decide whether it is refreshed incrementally again."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import fast_path, few_rows
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.stages import Stage, stages_of
from dbt_arctic.errors import SparkEnded
from dbt_arctic.keyed.log import PROPERTY_IMAGES
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.delta import costs
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.store.state import load_change, load_keyed, stored_rows
from tests.extent import first
from tests.spark.keyed.automatic_models import Model

BY_HISTORY = True
"""The tests of this module are about that."""


@pytest.mark.modelled
def test_what_was_slower_than_a_full_refresh_is_not_done_again(shop: Any) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    model = orders.name.sibling("doubled")
    config = parse_config("doubled", {"unique_key": "id", "incremental_strategy": "auto"})
    strict = replace(config, auto="strict")
    sql = f"SELECT id, 2 * amount AS amount FROM {orders.name.sql}"

    def plan(config: KeyedConfig = config) -> Any:
        context = orders.session.context
        return plan_refresh(context.catalog, model, config, sql, context.query_schema)

    def refresh(seconds: float) -> str:
        """Run what is planned, as if it had begun that long ago."""
        context = replace(
            orders.session.context,
            now_ms=lambda: int((time.time() - seconds) * 1000),
            run_id=f"run {seconds}",
        )
        return str(run_refresh(context, model, config, plan(), owner="model.test").choice)

    refresh(6)
    orders.upsert([{"id": 1, "amount": 5}])
    assert plan().action == "incremental"
    assert refresh(100) == "INCREMENTAL (1 key)"
    orders.upsert([{"id": 2, "amount": 5}])
    assert (plan().action, plan().reason.code) == ("full", "slower")
    assert plan(strict).action == "incremental"
    assert refresh(6) == "FULL (slower)"
    rows = orders.session.query(f"SELECT id, amount FROM {model.sql} WHERE id < 3 ORDER BY id")
    assert [tuple(row) for row in rows] == [(0, 0), (1, 10), (2, 10)]


@pytest.mark.modelled
def test_few_rows_are_all_read_where_several_statements_would_find_the_changed_ones(
    shop: Any, monkeypatch: Any
) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    catalog, read = orders.session.catalog, orders.name.sql
    parsed = parse_config("m", {"unique_key": "id", "incremental_strategy": "auto"}, small_data=True)
    config = replace(parsed, before_images=True)
    queries = dict.fromkeys(
        ("pairs", "slow", "fast"),
        f"SELECT a.id, b.amount FROM {read} AS a JOIN {read} AS b ON b.id = a.amount",
    )
    queries["doubled"] = f"SELECT id, 2 * amount AS amount FROM {read}"

    def table(name: str) -> KeyedTable:
        return load_keyed(catalog, orders.name.sibling(name))

    def plan(name: str, **settings: Any) -> Any:
        context, used = orders.session.context, replace(config, **settings)
        return plan_refresh(catalog, orders.name.sibling(name), used, queries[name], context.query_schema)

    def refresh(name: str, seconds: float = 0) -> str:
        """Run what is planned, as if it had begun that long ago."""
        context = replace(orders.session.context, now_ms=lambda: int((time.time() - seconds) * 1000))
        outcome = run_refresh(context, orders.name.sibling(name), config, plan(name), owner="model.test")
        rows = orders.session.query(f"SELECT * FROM {orders.name.sibling(name).sql} ORDER BY id")
        assert rows == orders.session.query(f"SELECT * FROM ({queries[name]}) ORDER BY id")
        return str(outcome.choice)

    took = {"pairs": 0, "doubled": 0, "slow": 6, "fast": 4}
    assert {refresh(name, seconds) for name, seconds in took.items()} == {"FULL (build)"}
    assert {table(name).layout.buckets for name in queries} == {1}
    orders.upsert([{"id": 3, "amount": 5}])
    assert (plan("pairs").action, plan("pairs").reason.code) == ("full", "few-rows")
    # An earlier full refresh took long, although the rows are few: without equalities, for instance.
    assert {plan(name).action for name in ("doubled", "slow")} == {"incremental"}
    assert plan("fast").action == "full"
    for settings in ({"small_data": False}, {"auto": "strict"}):
        assert plan("pairs", **settings).action == "incremental"
    # A large statement takes longer to plan than few rows take to read.
    pairs = plan("pairs", small_data=False)
    rows = pairs.stored_rows + stored_rows(catalog, table("pairs"))
    expected = few_rows.extra_seconds(pairs, few_rows.operators_of(pairs), rows)
    for limit, action in ((expected - 0.01, "full"), (expected, "incremental")):
        monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", limit)
        assert plan("pairs", small_data=False).action == action
        assert plan("slow", small_data=False).action == "incremental"
        assert plan("pairs", small_data=False, auto="strict").action == "incremental"
    assert refresh("doubled") == "INCREMENTAL (1 key)"
    assert refresh("pairs") == "FULL (few-rows)"
    assert load_change(catalog, table("pairs")).history()[0].summary[PROPERTY_IMAGES] == "true"
    orders.upsert([{"id": 4, "amount": 6}])
    rows = plan("pairs").stored_rows + stored_rows(catalog, table("pairs"))
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
    for limit, action in ((rows, "incremental"), (rows + 1, "full")):
        monkeypatch.setattr(few_rows, "SMALL_DATA", limit)
        assert plan("pairs").action == action
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", 0)
    monkeypatch.setattr(few_rows, "expected_slower", lambda *known: None)
    for limit, action in ((rows, "incremental"), (rows + 1, "full")):
        monkeypatch.setattr(few_rows, "FEW_ROWS", limit)
        assert plan("pairs", small_data=False).action == action
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
    # A check of a declared key is a statement of either refresh.
    check = Stage("declared_key_1", "", "decision", lambda found: "")
    monkeypatch.setattr(few_rows, "stages_of", lambda plan: [check, *stages_of(plan)])
    assert {name: plan(name).action for name in ("doubled", "pairs")} == {
        "doubled": "incremental",
        "pairs": "full",
    }


@pytest.mark.modelled
def test_what_ended_as_a_full_refresh_is_one_at_once_the_next_time(shop: Any) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    model = orders.name.sibling("best")
    config = parse_config("best", {"unique_key": "id", "incremental_strategy": "auto"})
    sql = (
        f"SELECT DISTINCT id, amount FROM {orders.name.sql} "
        f"WHERE amount = (SELECT max(amount) FROM {orders.name.sql})"
    )

    def refresh() -> str:
        context = replace(orders.session.context, now_ms=lambda: int((time.time() - 6) * 1000))
        plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
        return str(run_refresh(context, model, config, plan, owner="model.test").choice)

    refresh()
    told = []
    for amount in (30, 40, 50, 60, 70):
        orders.upsert([{"id": 1, "amount": amount}])
        told.append(refresh())
        assert orders.session.query(f"SELECT id, amount FROM {model.sql}") == [(1, amount)]
    late, at_once = "FULL (guard)", "FULL (found-late)"
    assert told == [late, late, at_once, late, at_once]


@pytest.mark.modelled
def test_a_guard_that_costs_as_much_as_the_query_is_not_compared(shop: Any, monkeypatch: Any) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    model = orders.name.sibling("best")
    config = parse_config("best", {"unique_key": "id", "incremental_strategy": "auto"})
    context, name = orders.session.context, orders.name.sql
    sql = f"SELECT id, amount FROM {name} WHERE amount = (SELECT max(amount) FROM {name})"

    def plan(config: KeyedConfig = config) -> Any:
        return plan_refresh(context.catalog, model, config, sql, context.query_schema)

    run_refresh(context, model, config, plan(), owner="model.test")
    orders.upsert([{"id": 1, "amount": 100}])
    assert plan().action == "incremental"
    monkeypatch.setattr(costs, "_WORTH", 1)
    assert (plan().action, plan().reason.code) == ("full", "costly-guard")
    assert plan(replace(config, auto="strict")).action == "incremental"
    assert (
        str(run_refresh(context, model, config, plan(), owner="model.test").choice) == "FULL (costly-guard)"
    )
    assert [tuple(row) for row in context.query(f"SELECT * FROM {model.sql}")] == [(1, 100)]


@pytest.mark.modelled
def test_what_statements_may_read_besides_changes_is_known_from_metadata(shop: Any) -> None:
    """As many tasks as these rows ask for are started after a shuffle."""
    orders, customers = shop.table("orders"), shop.table("customers")
    for table, rows in ((orders, 30), (customers, 20)):
        table.build([{"id": number, "amount": number % 5} for number in range(rows)])
    context = orders.session.context
    config = parse_config("m", {"unique_key": "part", "incremental_strategy": "auto"})
    joined = (
        f"SELECT c.amount AS part, count(*) AS n FROM {orders.name.sql} AS o "
        f"JOIN {customers.name.sql} AS c ON c.id = o.amount GROUP BY c.amount"
    )
    alone = f"SELECT amount AS part, count(*) AS n FROM {orders.name.sql} GROUP BY amount"
    for name, sql in (("joined", joined), ("alone", alone)):
        plan = plan_refresh(context.catalog, orders.name.sibling(name), config, sql, context.query_schema)
        run_refresh(context, orders.name.sibling(name), config, plan, owner="model.test")
    orders.upsert([{"id": 1, "amount": 4}])
    read = {
        name: plan_refresh(
            context.catalog, orders.name.sibling(name), config, sql, context.query_schema
        ).whole_rows
        for name, sql in (("joined", joined), ("alone", alone))
    }
    assert read == {"joined": 20, "alone": 0}


@pytest.mark.modelled
def test_no_code_is_made_for_few_rows(shop: Any, monkeypatch: Any) -> None:
    """Of incremental refreshes, and of a model over a small state; a user's own query is as Spark has it."""
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    asked: list[dict[str, str]] = []

    @contextmanager
    def tuned(conf: dict[str, str]) -> Iterator[None]:
        asked.append(conf)
        yield

    context = replace(orders.session.context, tuned=tuned)
    groups = "GROUP BY amount % 2 HAVING count(*) > 0"
    sums = f"SELECT amount % 2 AS part, avg(amount) AS mean FROM {orders.name.sql} {groups}"
    configs = {
        name: replace(parse_config(name, {"unique_key": key, "incremental_strategy": "auto"}), auto="strict")
        for name, key in (("doubled", "id"), ("means", "part"))
    }
    queries = {"doubled": f"SELECT id, 2 * amount AS amount FROM {orders.name.sql}", "means": sums}

    def refresh() -> dict[str, tuple[str, int]]:
        found = {}
        for name, config in configs.items():
            asked.clear()
            model = orders.name.sibling(name)
            plan = plan_refresh(context.catalog, model, config, queries[name], context.query_schema)
            outcome = run_refresh(context, model, config, plan, owner="model.test")
            found[name] = (str(outcome.choice), len(asked))
        return found

    assert refresh() == {"doubled": ("FULL (build)", 0), "means": ("FULL (build)", 0)}
    orders.upsert([{"id": 1, "amount": 5}])
    assert refresh() == {"doubled": ("INCREMENTAL (1 key)", 1), "means": ("INCREMENTAL (sums)", 3)}
    once = fast_path.planned_once(context.cores, 1, 20)
    assert asked == [fast_path.CONF, once, fast_path.CONF]
    monkeypatch.setattr(fast_path, "ROWS", 21)  # 20 in the base and 2 changes: the base is not all
    orders.upsert([{"id": 2, "amount": 5}])
    assert refresh() == {"doubled": ("INCREMENTAL (1 key)", 0), "means": ("INCREMENTAL (sums)", 2)}
    assert asked == [once, fast_path.CONF]
    monkeypatch.setattr(fast_path, "CHANGES", 0)
    orders.upsert([{"id": 2, "amount": 6}])
    assert refresh()["means"] == ("INCREMENTAL (sums)", 1)


@pytest.mark.modelled
@pytest.mark.parametrize(
    "sql",
    first(
        1,
        [
            "SELECT id, 2 * amount AS amount FROM {}",
            "SELECT id % 3 AS id, avg(amount) AS amount FROM {} GROUP BY 1",
            "SELECT id % 3 AS id, sum(amount) AS amount FROM {} GROUP BY 1 HAVING count(*) > 1",
        ],
    ),
    ids=["keys", "sums", "state"],
)
def test_a_spark_that_ends_ends_the_refresh(shop: Any, sql: str) -> None:
    """The next one has not what the model's hooks and header have set for the session."""
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    model = Model(orders, "id", sql.format(orders.name.sql))
    model.refresh()
    orders.upsert([{"id": 1, "amount": 5}])
    before, ended = model.rows(), []

    def run(step: str, text: str, table: Any = None) -> int | None:
        if text.startswith("INSERT") and not ended:
            ended.append(step)
            raise SparkEnded("Spark ended while the statement ran.")
        return orders.session.context.run(step, text, table)

    plan = model.plan()
    assert plan.action == "incremental"
    with pytest.raises(SparkEnded):
        run_refresh(
            replace(orders.session.context, run=run), model.name, model.config, plan, owner="model.test"
        )
    assert ended
    assert model.rows() == before
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
@pytest.mark.parametrize("having", ["", " HAVING count(*) > 1"])
def test_groups_that_no_table_can_be_bucketed_by_are_stored_by_the_key(shop: Any, having: str) -> None:
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(20)])
    shown = "CASE WHEN amount > 9 THEN 'large' ELSE 'small' END"
    query = f"SELECT {shown} AS size, count(*) AS n FROM {orders.name.sql} GROUP BY amount > 9{having}"
    model = Model(orders, "size", query.replace("amount > 9 THEN", "(amount > 9) THEN"))
    model.refresh()
    assert (model.state is not None) == bool(having)
    orders.upsert([{"id": 1, "amount": 50}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)
