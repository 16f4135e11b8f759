"""An automatic model with other columns than its table is rebuilt, unless the config forbids it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.names import quote_all
from tests.extent import extent
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

SQL = "SELECT id, amount * 2 AS twice FROM {}"


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(5)])
    return made


@pytest.fixture
def model(orders: Orders) -> Model:
    made = Model(orders, "id", SQL.format(orders.name.sql))
    assert made.refresh() == "FULL (build)"
    made.sql = made.sql.replace("twice", "twice, amount AS once")
    return made


@pytest.mark.modelled
def test_it_is_built_anew(orders: Orders, model: Model) -> None:
    assert model.refresh() == "FULL (changed-columns)"
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 7}])
    assert model.refresh() == "INCREMENTAL (1 key)"


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("setting", "error", "says"),
    [
        ({"auto": "strict"}, ConfigError, "changed-columns"),
        ({"on_schema_change": "fail"}, SchemaChanged, "other columns"),
    ],
)
def test_or_it_is_an_error(model: Model, setting: dict[str, Any], error: Any, says: str) -> None:
    before, plain = model.rows(), model.config
    model.config = replace(plain, **setting)
    with pytest.raises(error, match=says) as told:
        model.refresh()
    assert "--full-refresh" in str(told.value.fix)
    assert model.rows() == before
    context = model.session.context
    plan = plan_refresh(
        context.catalog, model.name, model.config, model.sql, context.query_schema, rebuild=True
    )
    outcome = run_refresh(context, model.name, model.config, plan, owner="model.test")
    assert str(outcome.choice) == "FULL (build)", "which is what its user asked for"
    assert model.rows() == model.rows(model.sql)


GROUPS = "SELECT id % 3 AS part, sum(amount) AS s FROM {} GROUP BY 1 HAVING count(*) > 1"


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("setting", "error"),
    [({"auto": "strict"}, ConfigError), ({"on_schema_change": "fail"}, SchemaChanged)],
)
def test_over_a_state_it_is_an_error_too(orders: Orders, setting: dict[str, Any], error: Any) -> None:
    model = Model(orders, "part", GROUPS.format(orders.name.sql))
    model.refresh()
    assert model.state is not None
    orders.upsert([{"id": 1, "amount": 7}])
    before, plain = model.rows(), model.config
    kept = f"SELECT * FROM {model.state.name.sql}"
    kept_before = model.rows(kept)
    model.config = replace(plain, **setting)
    model.sql = model.sql.replace("AS s", "AS s, sum(amount) * 2 AS d")
    with pytest.raises(error):
        model.refresh()
    assert (model.rows(), model.rows(kept)) == (before, kept_before)
    model.config = plain
    assert model.refresh() == "FULL (changed-columns)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_over_a_state_a_full_refresh_is_called_one(orders: Orders) -> None:
    model = Model(orders, "part", GROUPS.format(orders.name.sql))
    model.refresh()
    model.sql = model.sql.replace("> 1", "> 0")
    assert model.refresh() == "FULL (changed-sql)"
    orders.upsert([{"id": 1, "amount": 7}])
    model.sql = model.sql.replace("> 0", "> 2")
    assert model.refresh() == "FULL (changed-sql)"
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 8}])
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_a_model_with_hidden_columns_too(orders: Orders) -> None:
    model = Model(
        orders, "part", f"SELECT id % 2 AS part, avg(amount) AS a FROM {orders.name.sql} GROUP BY 1"
    )
    model.refresh()
    model.sql = model.sql.replace("AS a", "AS a, count(*) AS n")
    assert model.plan().reason is not None
    assert model.refresh() == "FULL (changed-columns)"
    orders.upsert([{"id": 1, "amount": 7}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


REORDERED = {
    "keys": ("id", "SELECT id, {1} FROM {0}", ["amount + 1", "amount * 2"]),
    "sums": (
        "g",
        "SELECT id % 2 AS g, {1} FROM {0} GROUP BY id % 2",
        ["sum(amount)", "count(*)", "count(amount)"],
    ),
    "hidden": (
        "g",
        "SELECT id % 2 AS g, {1} FROM {0} GROUP BY id % 2",
        ["max(amount)", "max(amount % 7)", "count(*)"],
    ),
    "named": ("id", "SELECT id, {1} FROM {0}", ["amount + 1 AS one", "amount * 2 AS two"]),
    "named sums": (
        "g",
        "SELECT id % 2 AS g, {1} FROM {0} GROUP BY id % 2",
        ["sum(amount) AS s", "count(*) AS n", "count(amount) AS c", "max(amount) AS m"],
    ),
}


@pytest.mark.modelled
@pytest.mark.parametrize("case", extent(("hidden", "named sums"), REORDERED))
def test_columns_that_change_places_keep_their_values(orders: Orders, case: str) -> None:
    """The table keeps them in the order that it was made with."""
    key, sql, columns = REORDERED[case]
    model = Model(orders, key, sql.format(orders.name.sql, ", ".join(columns)))
    model.refresh()
    model.sql = sql.format(orders.name.sql, ", ".join(reversed(columns)))
    assert model.refresh() == "FULL (changed-sql)"
    shown = quote_all(column.name for column in model.session.context.query_schema(model.sql))
    for number in range(2):
        orders.upsert([{"id": number, "amount": 50 + number}, {"id": 10 + number, "amount": 7}])
        assert model.refresh().startswith("INCREMENTAL")
        assert model.rows(f"SELECT {shown} FROM {model.name.sql}") == model.rows(model.sql)
