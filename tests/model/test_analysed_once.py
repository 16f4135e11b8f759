"""How often Spark analyses the query of a model in a build and in a refresh."""

from __future__ import annotations

from collections import Counter

import pytest

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.store.analysed_once import analysed_once
from dbt_arctic.store.context import Context
from tests.model import duck
from tests.model.test_automatic import FIRST
from tests.model.test_verified import JOINED, SUMS, Shop
from tests.model.world import MemoryWorld


@pytest.mark.parametrize(("sql", "key"), [(JOINED, "id"), (SUMS, "customer"), (FIRST, "customer")])
def test_the_query_of_a_model_is_analysed_once(sql: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")  # as Spark adds whole numbers
    shop = Shop(MemoryWorld(1), sql, key, verify=None)
    plain, counts = shop.context, Counter[str]()

    def query_schema(text: str) -> list[ColumnInfo]:
        counts[text] += 1
        return plain.query_schema(text)

    counted = Context(plain.catalog, plain.run, query_schema, plain.query, now_ms=plain.now_ms)
    found = []
    for _ in ("build", "refresh"):
        counts.clear()
        shop.context = analysed_once(counted, shop.sql)
        shop.refresh()
        found.append(counts[shop.sql])
        shop.context = plain
        shop.change((4, 2, 400), (2, 3, 7))
    assert found[0] == 1
    assert found[1] <= 1
    assert shop.context.query_schema(shop.sql) == analysed_once(plain, shop.sql).query_schema(shop.sql)
