"""A model that changes from one materialization to another, its run ended at every statement.

Wherever the run ends: the name shows what it showed before, or what it is to show, or the next run puts it
right; and nothing is left over after that.
"""

from __future__ import annotations

import pytest

from dbt_arctic.refresh.materializations import is_materialized_view
from tests.dbt.keyed.conftest import Shop
from tests.extent import extent

FORMS = {
    "table": "{{ config(materialized='table') }} select 1L as id, 'TEXT' as name",
    "view": "{{ config(materialized='view') }} select 1L as id, 'TEXT' as name",
    "keyed": "{{ config(materialized='incremental', unique_key='id', buckets=1) }} "
    "select 1L as id, 'TEXT' as name",
    "materialized view": "{{ config(materialized='materialized_view', unique_key='id', buckets=1) }} "
    "select 1L as id, 'TEXT' as name",
}
ROUND = [
    ("table", "view"),
    ("view", "keyed"),
    ("keyed", "table"),
    ("keyed", "materialized view"),
    ("materialized view", "view"),
    ("table", "materialized view"),
]
CHANGES = extent(ROUND[1:2], [*ROUND, *((after, before) for before, after in ROUND)])


def entries(shop: Shop) -> set[str]:
    return {entry.name for entry in shop.catalog.list_relations(shop.schema)}


def kind_of(shop: Shop, name: str) -> str:
    if shop.catalog.load_table(shop.schema, name) is not None:
        return "table"
    view = shop.catalog.load_view(shop.schema, name)
    assert view is not None, name
    if is_materialized_view(view.properties):
        return "materialized view"
    return "keyed" if view.properties.get("arctic.protocol") else "view"


def names_in(shop: Shop, relations: list[str]) -> dict[str, list[str]]:
    """The column ``name`` of some relations, in one statement."""
    found: dict[str, list[str]] = {relation: [] for relation in relations}
    selects = [f"SELECT '{relation}', name FROM {{s}}.{relation}" for relation in relations]
    for relation, name in shop.sql(" UNION ALL ".join(selects)):
        found[relation].append(name)
    return found


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_a_change_of_form_survives_an_end_at_every_statement(shop: Shop, before: str, after: str) -> None:
    def write(names: list[str], form: str, text: str) -> None:
        for name in names:
            shop.model(name, FORMS[form].replace("TEXT", text))

    write(["counted"], before, "old")
    shop.dbt("run")
    write(["counted"], after, "new")
    shop.dbt("run")
    statements = len(shop.script.ran)
    assert statements > 1
    assert kind_of(shop, "counted") == after

    # Before each statement, which is also after the one before it, and after the last.
    ends = {f"m_{at}": (at, False) for at in range(statements)} | {"m_last": (statements - 1, True)}
    write(list(ends), before, "old")
    shop.dbt("run")
    write(list(ends), after, "new")
    shop.end(ends)
    assert not shop.try_dbt("run").success
    found = entries(shop)
    for name, shown in names_in(shop, [name for name in ends if name in found]).items():
        assert shown in (["old"], ["new"]), name

    shop.end({})
    shop.dbt("run")
    for name in ends:
        assert kind_of(shop, name) == after, name
    assert names_in(shop, list(ends)) == {name: ["new"] for name in ends}
    assert not [name for name in entries(shop) if "__arctic_" in name]
    assert "counted__base_1" not in entries(shop) or after in ("keyed", "materialized view")
