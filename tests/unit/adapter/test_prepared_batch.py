"""A keyed model's SQL is analysed once, however many checks need its columns."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.store.context import Context

SQL = "SELECT id, _action FROM pulled"
MODEL = {"name": "orders", "unique_id": "model.shop.orders", "config": {"unique_key": "id"}}


def test_the_sql_of_a_pull_is_analysed_once() -> None:
    counts = Counter[str]()

    def query_schema(sql: str) -> list[ColumnInfo]:
        counts[sql] += 1
        return [ColumnInfo("id", "bigint"), ColumnInfo("_action", "string")]

    pulls = SimpleNamespace(needed_columns=lambda model, deletes_by_condition: {"_action": "deletes"})
    credentials = SimpleNamespace(small_data=False)
    adapter = SimpleNamespace(config=SimpleNamespace(credentials=credentials), _pulls=lambda: pulls)
    unused: Any = None
    given = Context(unused, unused, query_schema, unused)
    context, _, sql = KeyedApi.prepared_batch(cast("Any", adapter), given, MODEL, SQL)
    assert sql == SQL
    assert [one.name for one in context.query_schema(sql)] == ["id", "_action"]
    assert counts == {SQL: 1}
