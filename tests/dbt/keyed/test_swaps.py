"""A model that changes from one materialization to another, cut off at every statement.

Wherever the process ends: what the name showed before is still there, or the next run makes what it is to
show now; and nothing is left over after it.
"""

from __future__ import annotations

import pytest

from tests.dbt.keyed.conftest import Shop

FORMS = {
    "table": "{{ config(materialized='table') }} select 1L as id, '{n}' as name",
    "view": "{{ config(materialized='view') }} select 1L as id, '{n}' as name",
    "keyed": "{{ config(materialized='incremental', unique_key='id', buckets=1) }} select 1L as id, '{n}' as name",
    "plain": "{{ config(materialized='incremental') }} select 1L as id, '{n}' as name",
}
CHANGES = [
    ("table", "view"),
    ("view", "table"),
    ("table", "keyed"),
    ("keyed", "table"),
    ("view", "keyed"),
    ("keyed", "view"),
    ("keyed", "plain"),
    ("view", "plain"),
]


def stored(shop: Shop) -> set[str]:
    return {entry.name for entry in shop.catalog.list_relations(shop.schema)}


def kind_of(shop: Shop, name: str) -> str:
    table = shop.catalog.load_table(shop.schema, name)
    view = shop.catalog.load_view(shop.schema, name)
    if table is not None:
        return "table"
    assert view is not None
    return "keyed" if view.properties.get("arctic.protocol") else "view"


def form(kind: str, name: str) -> str:
    return FORMS[kind].replace("{n}", name)


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_a_change_of_form_survives_an_end_at_every_statement(shop: Shop, before: str, after: str) -> None:
    shop.model("m", form(before, "new"))
    shop.dbt("run")
    shop.dbt("run-operation", "compact") if before == "keyed" else None
    shop.model("m", form(after, "new"))
    shop.dbt("run")
    statements = len(shop.script.ran)
    left = stored(shop)
    assert kind_of(shop, "m") == ("table" if after == "plain" else after)
    for at in range(statements):
        for late in (False, True):
            shop.model("m", form(before, "old"))
            shop.dbt("run", "--full-refresh")
            shop.model("m", form(after, "new"))
            shop.die(at, late)
            shop.try_dbt("run")
            shop.live()
            if "m" in stored(shop):
                assert shop.rows("m") in ([(1, "old")], [(1, "new")])
            shop.dbt("run", "--full-refresh") if after == "plain" else shop.dbt("run")
            assert (1, "new") in shop.rows("m")
            extra = {name for name in stored(shop) if "__arctic_" in name}
            assert not extra, (at, late)
    assert {name for name in left if "__arctic_" in name} == set()
