"""Models whose states stand further inside: what they join, filter or group again is kept and added to."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dbt_arctic.auto import auxiliary_view, nested_view, plan_table, refresh_model, select_list_subqueries
from dbt_arctic.auto.auxiliary_tables import find_state
from dbt_arctic.auto.plan import OverState, RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.auxiliary import reduced_view, regrouping
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import load_change, load_keyed
from tests.extent import extent, first
from tests.spark.keyed.conftest import Orders, Row

SALES = {"id": "bigint", "customer": "int", "amount": "decimal(10,2)", "day": "date"}
CUSTOMERS = {"id": "int", "city": "string", "credit": "bigint"}
CITIES = "ABC"

MODELS = {
    "best": (
        "id",
        """WITH sums AS (SELECT customer, sum(amount) AS total FROM {sales} WHERE customer IS NOT NULL
             GROUP BY customer)
           SELECT c.id, c.city, s.total FROM {customers} AS c JOIN sums AS s ON s.customer = c.id
           WHERE s.total = (SELECT max(total) FROM sums)""",
    ),
    "counted": (
        "sales",
        """SELECT sales, count(*) AS customers FROM (
             SELECT c.id, count(s.id) AS sales FROM {customers} AS c
             LEFT JOIN {sales} AS s ON s.customer = c.id AND s.amount > 20 GROUP BY c.id) AS q
           GROUP BY sales""",
    ),
    "above": (
        "id",
        """SELECT c.id, c.city FROM {customers} AS c WHERE c.credit > (
             SELECT 0.5 * sum(s.amount) + count(s.amount) FROM {sales} AS s WHERE s.customer = c.id)""",
    ),
    "quiet": (
        "city",
        """SELECT c.city, count(*) AS customers, sum(c.credit) AS credit FROM {customers} AS c
           WHERE NOT EXISTS (SELECT 1 FROM {sales} AS s WHERE s.customer = c.id AND s.amount > 60)
           GROUP BY c.city""",
    ),
    "known": (
        "id",
        "SELECT c.id, c.credit FROM {customers} AS c WHERE c.id IN (SELECT customer FROM {sales})",
    ),
    "ends": (
        "id",
        """SELECT c.id, c.city, s.low, s.high, s.mean FROM {customers} AS c JOIN (
             SELECT customer, min(amount) AS low, max(day) AS high, avg(amount) AS mean
             FROM {sales} WHERE customer IS NOT NULL GROUP BY customer) AS s ON s.customer = c.id""",
    ),
    "best of few": (
        "id",
        """SELECT s.id, s.amount, s.day, c.city FROM {sales} AS s JOIN {customers} AS c ON c.id = s.customer
           WHERE c.credit > 120 AND s.amount > 10 AND s.amount >= (
             SELECT avg(b.amount) FROM {sales} AS b WHERE b.customer = c.id)""",
    ),
    "customers of days": (
        "day",
        """SELECT day, count(DISTINCT customer) AS customers, sum(amount) AS amount, max(amount) AS best,
             count(*) AS sales, count(amount) - 1 AS others
           FROM {sales} WHERE customer IS NOT NULL GROUP BY day""",
    ),
    "no sums alone": (
        "id",
        """SELECT c.id, (SELECT sum(s.amount) / count_if(s.customer >= 0) FROM {sales} AS s
             WHERE s.customer = c.id) AS mean, (SELECT max(t.amount) - median(t.amount) FROM {sales} AS t
             WHERE t.customer = c.id) AS beyond FROM {customers} AS c""",
    ),
    "means twice": (
        "customer",
        """WITH means AS (SELECT customer, avg(amount) AS mean FROM {sales} WHERE customer IS NOT NULL
             GROUP BY customer)
           SELECT a.customer, a.mean, (SELECT count(*) FROM means AS b WHERE b.mean > a.mean) AS better
           FROM means AS a""",
    ),
    "beyond": (
        "id",
        "SELECT id, credit FROM {customers} WHERE credit > (SELECT avg(amount) FROM {sales})",
    ),
    "share": (
        "customer",
        """SELECT coalesce(customer, -1) AS customer, sum(amount) AS amount,
             CAST(sum(amount) / (SELECT sum(amount) FROM {sales}) AS decimal(12,6)) AS share, count(*) AS n
           FROM {sales} GROUP BY customer""",
    ),
    "large": (
        "customer",
        """SELECT coalesce(customer, -1) AS customer, max(amount) AS best FROM {sales} GROUP BY customer
           HAVING sum(amount) > (SELECT sum(amount) / 20 + count(*) FROM {sales})""",
    ),
}
FEW = ("ends",)
"""Extremes. For a view over a null side and what is read twice see ``tests/planner/test_nested_view.py``."""


class Shop:
    """Sales and customers, and models over both."""

    def __init__(self, shop: Any) -> None:
        self.chance = random.Random(7)
        self.sales: Orders = shop.table("sales", SALES)
        self.customers: Orders = shop.table("customers", CUSTOMERS)
        self.sales.build([self.sale(number) for number in range(60)])
        self.customers.build([self.customer(number) for number in range(12)])
        self.context = self.sales.session.context

    def sale(self, number: int) -> Row:
        customer = self.chance.choice([None, *range(14)])
        amount = f"{self.chance.randint(1, 9999) / 100:.2f}"
        return {"id": number, "customer": customer, "amount": amount, "day": f"2026-01-{number % 28 + 1:02}"}

    def customer(self, number: int) -> Row:
        return {"id": number, "city": self.chance.choice(CITIES), "credit": self.chance.randint(0, 200)}

    def change(self) -> None:
        touched = self.chance.sample(range(80), 6)
        self.sales.upsert([self.sale(number) for number in touched[:4]])
        self.sales.delete([{"id": number} for number in touched[4:]])
        if self.chance.random() < 0.5:
            self.customers.upsert([self.customer(self.chance.randrange(14))])

    def sql(self, model: str) -> str:
        return MODELS[model][1].format(sales=self.sales.name.sql, customers=self.customers.name.sql)

    def config(self, model: str, **config: Any) -> KeyedConfig:
        given = {"unique_key": MODELS[model][0], "incremental_strategy": "auto", **config}
        return replace(parse_config(model, given), full_refresh_above=math.inf)

    def plan(self, model: str, **config: Any) -> RefreshPlan:
        name, made = self.sales.name.sibling(model), self.config(model, **config)
        return plan_refresh(self.context.catalog, name, made, self.sql(model), self.context.query_schema)

    def refresh(self, model: str, **config: Any) -> Outcome:
        name, made = self.sales.name.sibling(model), self.config(model, **config)
        return run_refresh(self.context, name, made, self.plan(model, **config), owner="model.test")

    def rows(self, model: str) -> list[tuple[Any, ...]]:
        name = self.sales.name.sibling(model)
        return sorted(map(tuple, self.sales.session.query(f"SELECT * FROM {name.sql}")), key=repr)

    def expected(self, model: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.sales.session.query(self.sql(model))), key=repr)

    def state(self, model: str) -> KeyedTable | None:
        return find_state(self.context.catalog, self.sales.name.sibling(model))


@pytest.fixture
def of_sales(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(nested_view, "WORTH_ROWS", 1)
    monkeypatch.setattr(reduced_view, "MAX_SHARE", 1)
    monkeypatch.setattr(regrouping, "MAX_SHARE", 1.5)
    return Shop(shop)


@pytest.mark.parametrize(
    ("model", "small"), [*((model, 0) for model in extent(FEW, MODELS)), *extent([], [("best", 100)])]
)
def test_it_equals_its_query_after_any_change(
    of_sales: Shop, model: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether all that the outer query reads is small enough to be read whole, or not."""
    monkeypatch.setattr(plan_table, "SMALL", small)
    monkeypatch.setattr(refresh_model, "_LITTLE", 0)
    of_sales.refresh(model)
    state = of_sales.state(model)
    assert (state is None) == (model == "no sums alone")
    assert of_sales.rows(model) == of_sales.expected(model)
    told = []
    for _ in range(extent(1, 3)):
        of_sales.change()
        outcome = of_sales.refresh(model)
        told.append(str(outcome.choice))
        assert of_sales.rows(model) == of_sales.expected(model), told
        assert of_sales.state(model) == state, "kept, not built anew"
    assert str(of_sales.refresh(model).choice) == "SKIP (no upstream change)"
    if small or model not in ("best", "beyond", "share"):  # a value that no row is linked to has changed
        assert not any(one.startswith("FULL") for one in told), told


def test_a_subquery_in_a_select_list_over_a_state(of_sales: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark fails on it if the model's query is run, and does not if only the query of the state is run."""
    sql = """WITH sums AS (SELECT customer, sum(amount) AS total FROM {sales} WHERE customer IS NOT NULL
               GROUP BY customer)
             SELECT c.id, c.credit, (SELECT count(*) FROM sums AS s WHERE s.total > 30 AND s.customer = c.id)
               AS n FROM {customers} AS c"""
    monkeypatch.setitem(MODELS, "well sold", ("id", sql))
    of_sales.context = replace(of_sales.context, tuned=partial(tuned, of_sales.sales.session.connection))
    of_sales.customers.upsert([of_sales.customer(3)])
    of_sales.refresh("well sold")
    assert of_sales.state("well sold") is not None
    of_sales.sales.upsert([of_sales.sale(3), of_sales.sale(61)])
    assert of_sales.refresh("well sold").message.startswith("INCREMENTAL (sums)")
    with of_sales.context.tuned(select_list_subqueries.CONF):  # Spark fails on a user's query as well
        assert of_sales.rows("well sold") == of_sales.expected("well sold")


@pytest.mark.modelled
def test_rows_that_are_most_of_what_there_is_are_not_kept(
    of_sales: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of customers that a condition selects is queried before a state is built."""
    sql = """SELECT 1 AS id, sum(s.amount) AS amount FROM {sales} AS s JOIN {customers} AS c
             ON c.id = s.customer WHERE c.id < 6 AND s.amount >= (
               SELECT avg(b.amount) FROM {sales} AS b WHERE b.customer = c.id)"""
    monkeypatch.setitem(MODELS, "total", ("id", sql))
    monkeypatch.setitem(MODELS, "total of few", ("id", sql))
    monkeypatch.setattr(reduced_view, "MAX_SHARE", 5 / 12)
    of_sales.refresh("total")
    assert not isinstance(of_sales.plan("total"), OverState), "it is its own state"
    monkeypatch.setattr(reduced_view, "MAX_SHARE", 6 / 12)
    of_sales.refresh("total of few")
    state = of_sales.state("total of few")
    assert state is not None
    assert state.key == ("s_id",)
    for model in ("total", "total of few"):
        of_sales.change()
        assert str(of_sales.refresh(model).choice).startswith("INCREMENTAL")
        assert of_sales.rows(model) == of_sales.expected(model)


@pytest.mark.modelled
@pytest.mark.parametrize(("where", "share"), first(1, [("", 1.5), ("WHERE customer < 9", 0)]))
def test_values_are_not_kept_where_they_are_many_or_missing(
    of_sales: Shop, where: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT day, count(DISTINCT customer) AS customers FROM {{sales}} {where} GROUP BY day"
    monkeypatch.setitem(MODELS, "values", ("day", sql))
    monkeypatch.setattr(regrouping, "MAX_SHARE", share)
    of_sales.refresh("values")
    assert of_sales.state("values") is None
    of_sales.change()
    of_sales.refresh("values")
    assert of_sales.rows("values") == of_sales.expected("values")


@pytest.mark.modelled
@pytest.mark.parametrize("model", ["share", "large"])
def test_a_total_is_that_of_the_stored_groups(of_sales: Shop, model: str) -> None:
    of_sales.refresh(model)
    state = of_sales.state(model)
    assert state is not None
    assert state.key == ("_key_1",), "a sale without a customer has a group"
    assert of_sales.rows(model) == of_sales.expected(model)
    for _ in range(extent(2, 10)):
        of_sales.change()
        assert not str(of_sales.refresh(model).choice).startswith("FULL")
        assert of_sales.rows(model) == of_sales.expected(model)
    assert of_sales.state(model) == state


@pytest.mark.modelled
def test_nothing_but_the_state_is_read_of_the_large_table(of_sales: Shop) -> None:
    of_sales.refresh("best")
    of_sales.change()
    ran = of_sales.sales.session.statements.ran
    ran.clear()
    of_sales.refresh("best")
    writes = [one.sql for one in ran if one.sql.startswith("INSERT")]
    assert len(writes) == 2
    state = of_sales.state("best")
    assert state is not None
    assert of_sales.sales.table.base.sql not in writes[1]
    assert state.base.sql in writes[1]


@pytest.mark.modelled
def test_a_plan_names_what_has_changed_wherever_it_is_read(of_sales: Shop) -> None:
    of_sales.refresh("counted")
    of_sales.customers.upsert([{"id": 90, "city": "A", "credit": 3}])
    plan = of_sales.plan("counted")
    assert plan.action == "incremental"
    assert [one.name for one in plan.changed] == [of_sales.customers.name]
    assert str(of_sales.refresh("counted").choice).startswith("INCREMENTAL")
    assert of_sales.rows("counted") == of_sales.expected("counted")
    of_sales.sales.upsert([of_sales.sale(3)])
    assert [one.name for one in of_sales.plan("counted").changed] == [of_sales.sales.name]


@pytest.mark.modelled
def test_both_read_what_both_read_at_one_version(of_sales: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join inside reads the customers, too; these change between the state's refresh and the model's."""
    monkeypatch.setitem(
        MODELS,
        "shares",
        (
            "id",
            """SELECT c.id, c.credit, s.total FROM {customers} AS c JOIN (
                 SELECT s.customer, sum(s.amount * b.credit) AS total FROM {sales} AS s
                 JOIN {customers} AS b ON b.id = s.customer GROUP BY s.customer) AS s ON s.customer = c.id""",
        ),
    )
    of_sales.refresh("shares")
    of_sales.change()
    before = of_sales.expected("shares")
    real = auxiliary_view.consumed_by
    late = [lambda: of_sales.customers.upsert([{"id": n, "city": "Z", "credit": 1} for n in range(12)])]

    def and_then(*given: Any) -> Any:
        found = real(*given)
        while late:
            late.pop()()
        return found

    monkeypatch.setattr(auxiliary_view, "consumed_by", and_then)
    of_sales.refresh("shares")
    assert not late
    assert of_sales.rows("shares") == before
    of_sales.refresh("shares")
    assert of_sales.rows("shares") == of_sales.expected("shares") != before


@pytest.mark.modelled
def test_a_run_that_ended_in_between_is_finished_by_the_next(of_sales: Shop) -> None:
    of_sales.refresh("counted")
    of_sales.change()
    statements = of_sales.sales.session.statements
    model, dead = of_sales.sales.name.sibling("counted"), []

    def die_at_the_second(step: str) -> None:
        if step == "refresh":
            dead.append(step)
            if len(dead) == 2:
                raise InterruptedError

    statements.before = die_at_the_second
    with pytest.raises(InterruptedError):
        of_sales.refresh("counted")
    statements.before = None
    assert len(dead) == 2
    assert str(of_sales.refresh("counted").choice).startswith("INCREMENTAL")
    assert of_sales.rows("counted") == of_sales.expected("counted")
    table = load_keyed(of_sales.context.catalog, model)
    read = consumed_versions(load_change(of_sales.context.catalog, table).history())
    assert of_sales.sales.name.dotted not in read, "the state reads that"


@pytest.mark.modelled
def test_a_group_without_a_value_ends_the_state(of_sales: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a row of the query like any other, and none that a keyed table can have."""
    monkeypatch.setitem(
        MODELS,
        "totals",
        (
            "total",
            """SELECT total, count(*) AS customers FROM (
                 SELECT customer, count(*) AS total FROM {sales} GROUP BY customer) AS q GROUP BY total""",
        ),
    )
    of_sales.refresh("totals")
    assert of_sales.state("totals") is None
    of_sales.change()
    of_sales.refresh("totals")
    assert of_sales.rows("totals") == of_sales.expected("totals")


@pytest.mark.modelled
def test_a_group_whose_value_goes_ends_the_state_and_costs_no_row(
    of_sales: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        MODELS,
        "totals",
        (
            "total",
            """SELECT total, count(*) AS customers FROM (
                 SELECT customer, count(*) AS total FROM {sales} GROUP BY customer) AS q GROUP BY total""",
        ),
    )
    of_sales.sales.upsert([{**of_sales.sale(number), "customer": 1} for number in range(60)])
    of_sales.refresh("totals")
    assert of_sales.state("totals") is not None
    of_sales.sales.upsert([{**of_sales.sale(3), "customer": None}])
    of_sales.refresh("totals")
    assert of_sales.rows("totals") == of_sales.expected("totals")
    assert of_sales.state("totals") is None


@pytest.mark.modelled
def test_a_state_that_others_keep_refreshing_is_done_without_and_stays(
    of_sales: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_sales.refresh("counted")
    of_sales.change()
    moving = iter(range(9))
    with monkeypatch.context() as others:
        others.setattr(auxiliary_view, "consumed_by", lambda *_: {"x": Consumed("x", str(next(moving)))})
        assert str(of_sales.refresh("counted").choice) == "FULL (without-state)"
    assert of_sales.rows("counted") == of_sales.expected("counted")
    assert of_sales.state("counted") is not None
    of_sales.change()
    of_sales.refresh("counted")
    assert of_sales.rows("counted") == of_sales.expected("counted")


@pytest.mark.modelled
def test_small_tables_get_none(of_sales: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_view, "WORTH_ROWS", 61)
    of_sales.refresh("best")
    assert of_sales.state("best") is None


@pytest.mark.modelled
def test_strict_is_about_the_outer_query_as_well(of_sales: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_table, "SMALL", 0)
    monkeypatch.setattr(refresh_model, "_LITTLE", 0)
    monkeypatch.setitem(MODELS, "beyond", ("id", MODELS["beyond"][1].replace("SELECT", "SELECT DISTINCT", 1)))
    of_sales.refresh("beyond", auto="strict")
    of_sales.sales.upsert([{**of_sales.sale(n), "amount": "99.99"} for n in range(30)])
    with pytest.raises(ConfigError, match="guard"):
        of_sales.refresh("beyond", auto="strict")
