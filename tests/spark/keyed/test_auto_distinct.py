"""Counts of different values go on from the stored ones: only touched values are looked up."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import execute_table
from dbt_arctic.auto.auxiliary_tables import find_state
from dbt_arctic.auto.plan import BySummaryDelta, RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.stages import Stage
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import load_keyed
from tests.extent import extent
from tests.spark.keyed.conftest import Orders

BY_HISTORY = True


def tries_of_sums(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows with each refresh that goes on from stored sums."""
    tries: list[None] = []
    right = execute_table.stages_of

    def stages_of(plan: RefreshPlan) -> list[Stage]:
        tries.extend([None] * isinstance(plan, BySummaryDelta))
        return right(plan)

    monkeypatch.setattr(execute_table, "stages_of", stages_of)
    return tries


def refreshed(orders: Orders, model: Any, sql: str, **more: Any) -> Outcome:
    """Refresh a model by ``part``, and compare it with its query."""
    config = parse_config(model.identifier, {"unique_key": "part", "incremental_strategy": "auto"})
    config = replace(config, full_refresh_above=math.inf, **more)
    context = orders.session.context
    plan = plan_refresh(context.catalog, model, config, sql, context.query_schema)
    outcome = run_refresh(context, model, config, plan, owner="model.test")
    rows = [sorted(map(tuple, context.query(f"SELECT * FROM {one}"))) for one in (model.sql, f"({sql})")]
    assert rows[0] == rows[1]
    return outcome


ROUNDS = extent(2, 7)


@pytest.mark.modelled
def test_a_count_of_different_values_is_that_of_the_query_whatever_comes_and_goes(shop: Any) -> None:
    chance = random.Random(7)
    orders = shop.table()
    orders.build([{"id": number, "amount": chance.choice([None, *range(9)])} for number in range(60)])
    model = orders.name.sibling("different")
    sql = (
        "SELECT id % 4 AS part, count(DISTINCT amount) AS amounts, sum(amount) AS total,\n"
        "  count(DISTINCT amount + 1) + 1 AS more, avg(amount) AS average\n"
        f"FROM {orders.name.sql} GROUP BY id % 4"
    )
    found: Counter[str] = Counter()
    for _ in range(ROUNDS):
        found[str(refreshed(orders, model, sql).choice)] += 1
        picked = chance.sample(range(70), 8)
        gone = [one for one in picked if chance.random() < 0.3]
        orders.apply(
            [{"id": one, "amount": chance.choice([None, *range(12)])} for one in picked if one not in gone],
            [{"id": one} for one in gone],
        )
    assert found == {"FULL (build)": 1, "INCREMENTAL (sums)": ROUNDS - 1}


@pytest.mark.long
def test_beside_extremes_groups_that_have_lost_one_are_asked_for_these(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = tries_of_sums(monkeypatch)
    orders = shop.table()
    orders.build([{"id": number, "amount": number} for number in range(40)])
    model = orders.name.sibling("reached")
    sql = (
        "SELECT id % 2 AS part, count(DISTINCT amount) AS amounts, max(amount) AS high "
        f"FROM {orders.name.sql} GROUP BY id % 2"
    )
    told, tried = [], []
    changes = [(0, 7), (38, 5), (36, 5), (2, 6), (4, 6), (6, 6), (8, 6), (34, 5)]
    for rows in ([], *([{"id": key, "amount": amount}] for key, amount in changes)):
        if rows:
            orders.upsert(rows)
        tries.clear()
        told.append(str(refreshed(orders, model, sql).choice))
        tried.append(len(tries))
    assert told == ["FULL (build)", *["INCREMENTAL (sums)"] * 8]
    # It is looked first which groups have lost one. After four refreshes without any, one is found late.
    assert tried == [0, *[1] * 7, 2]


def test_where_a_value_cannot_be_computed_of_other_rows_groups_are_computed_by_their_keys(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look-up meets rows that the join leaves out: of these the quotient is none."""
    orders, kinds = shop.table("orders"), shop.table("kinds")
    orders.build([{"id": number, "amount": number % 5} for number in range(20)])
    kinds.build([{"id": number, "amount": 1} for number in range(1, 5)])
    model = orders.name.sibling("quotients")
    sql = (
        f"SELECT o.id % 2 AS part, count(DISTINCT 100 / o.amount) AS quotients FROM {orders.name.sql} AS o "
        f"JOIN {kinds.name.sql} AS k ON o.amount = k.id GROUP BY o.id % 2"
    )
    refreshed(orders, model, sql)
    tries = tries_of_sums(monkeypatch)
    orders.upsert([{"id": 1, "amount": 2}])
    assert str(refreshed(orders, model, sql).choice) == "INCREMENTAL (1 key)"
    assert tries, "the look-up was to be tried, and to fail"


@pytest.mark.modelled
def test_where_stored_counts_are_not_those_of_the_rows_all_groups_are_computed_anew(shop: Any) -> None:
    """Also the unaffected ones, because it is unknown which of them are wrong."""
    orders = shop.table()
    orders.build([{"id": number, "amount": number % 7} for number in range(40)])
    model = orders.name.sibling("counts")
    sql = (
        "SELECT id % 4 AS part, count(*) AS orders, count(DISTINCT amount) AS different "
        f"FROM {orders.name.sql} GROUP BY id % 4"
    )
    refreshed(orders, model, sql)
    base = load_keyed(orders.session.catalog, model).base
    orders.session.query(f"UPDATE {base.sql} SET orders = 0")
    orders.delete([{"id": 1}])
    assert str(refreshed(orders, model, sql).choice) == "FULL (failed)"


@pytest.mark.modelled
def test_a_state_that_was_kept_by_other_columns_is_built_anew(shop: Any) -> None:
    """Two expressions have no count of touched values, so the state of the first is all rows of the query."""
    orders = shop.table()
    orders.build([{"id": number, "amount": number % 7} for number in range(40)])
    model = orders.name.sibling("first_three")

    def first_three(counted: str) -> str:
        return (
            f"SELECT amount AS part, count(DISTINCT {counted}) AS different FROM {orders.name.sql}\n"
            "GROUP BY amount ORDER BY amount, different LIMIT 3"
        )

    keys = []
    for counted in ("id, amount", "id + 1"):
        assert str(refreshed(orders, model, first_three(counted)).choice) == "FULL (build)"
        state = find_state(orders.session.context.catalog, model)
        assert state is not None
        keys.append(state.key)
        orders.upsert([{"id": 3, "amount": 1}])
        assert str(refreshed(orders, model, first_three(counted)).choice).startswith("INCREMENTAL")
        orders.upsert([{"id": 3, "amount": 3}])
    assert keys[0] != keys[1]


@pytest.mark.modelled
def test_having_a_limit_and_images_go_with_counts_of_different_values(shop: Any) -> None:
    chance = random.Random(3)
    orders = shop.table()
    orders.build([{"id": number, "amount": chance.randrange(9)} for number in range(60)])
    models = {
        "many": f"SELECT id % 5 AS part, count(DISTINCT amount) AS different FROM {orders.name.sql}\n"
        "GROUP BY id % 5 HAVING count(DISTINCT amount) > 5",
        "most": f"SELECT id % 5 AS part, count(DISTINCT concat('a', amount)) AS different\n"
        f"FROM {orders.name.sql} GROUP BY id % 5 ORDER BY different DESC, part LIMIT 2",
        "joined": "SELECT a.id % 5 AS part, count(DISTINCT b.amount) AS different\n"
        f"FROM {orders.name.sql} AS a JOIN {orders.name.sql} AS b ON a.amount = b.id GROUP BY a.id % 5",
        "whole": f"SELECT 1 AS part, count(DISTINCT amount) AS different FROM {orders.name.sql}",
    }
    said: dict[str, list[str]] = {name: [] for name in models}
    for _ in range(extent(2, 4)):
        for name, sql in models.items():
            choice = refreshed(orders, orders.name.sibling(name), sql, before_images=name == "joined").choice
            said[name].append(str(choice))
        orders.apply(
            [{"id": chance.randrange(70), "amount": chance.randrange(12)}], [{"id": chance.randrange(60)}]
        )
    assert said == {name: ["FULL (build)", *["INCREMENTAL (sums)"] * extent(1, 3)] for name in models}
