"""Views that a refresh creates keep the meaning of their text, and session settings are restored."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dbt_arctic.auto.affected_keys import kept_rows
from dbt_arctic.auto.temporary_views import ANALYSED, make_view
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.store.row_cache import SharedRows
from tests.spark.keyed.conftest import Orders


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(5)])
    session = made.session
    session.context = replace(session.context, tuned=partial(tuned, session.connection))
    return made


def keeps_its_meaning(orders: Orders, name: str, *, of_all: bool = False) -> bool:
    catalog = orders.session.connection.session._jsparkSession.sessionState().catalog()
    made = catalog.getRawGlobalTempView(name) if of_all else catalog.getRawTempView(name)
    return "storingAnalyzedPlan" in str(made.get().tableMeta().properties())


def test_views_of_a_refresh_keep_what_their_text_meant(orders: Orders) -> None:
    context, table = orders.session.context, orders.table
    rows = f"SELECT id FROM {orders.name.sql} WHERE id > 2"
    with kept_rows(context, table, rows, "keys") as kept:
        assert keeps_its_meaning(orders, kept)
        assert sorted(orders.session.query(f"SELECT * FROM `{kept}`")) == [(3,), (4,)]
    shared = SharedRows()
    for _ in range(2):
        relation = shared.kept(
            "rows", ["id"], {}, lambda columns, lookup_keys: rows, partial(make_view, context)
        )
    assert relation is not None
    assert keeps_its_meaning(orders, relation.rpartition(".")[2].strip("`"), of_all=True)
    assert sorted(orders.session.query(f"SELECT * FROM {relation}")) == [(3,), (4,)]
    orders.session.query(f"DROP VIEW {relation}")


def test_a_user_s_own_view_is_as_spark_makes_it(orders: Orders) -> None:
    make_view(orders.session.context, "stage_keys", "CREATE OR REPLACE TEMPORARY VIEW ours AS SELECT 1 AS x")
    orders.session.query("CREATE OR REPLACE TEMPORARY VIEW theirs AS SELECT 1 AS x")
    assert keeps_its_meaning(orders, "ours")
    assert not keeps_its_meaning(orders, "theirs")
    (setting,) = ANALYSED
    assert orders.session.connection.session.conf.get(setting) == "false"
