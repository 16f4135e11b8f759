"""Overlapping runs of one snapshot or plain table: the rows of the later state stay."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.dbt.keyed.conftest import Shop

QUERY = "select id, value from {{ source('raw', 'raw_rows') }}"
MODELS = {
    "replaced": "materialized='incremental', incremental_strategy='delete+insert', unique_key='id'",
    "logged": "materialized='incremental', incremental_strategy='append'",
    "shown": "materialized='table'",
    "hooked": "materialized='incremental', "
    "pre_hook='create table if not exists {{ this }} (id int, value int) using iceberg'",
}
FIRST = re.compile(r"create (?:or replace )?table `lake`\.`\w+`\.`(kept|replaced|logged|shown)`")
STAGED = re.compile(r"create table `lake`\.`\w+`\.`(kept|replaced)__pull_", re.IGNORECASE)
AS_OTHERS = "CREATE TABLE {s}.NAME USING iceberg AS SELECT 7 AS id, 70 AS value"


def test_an_overlapping_run_does_not_replace_newer_rows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.file(
        "models/sources.yml", f"sources: [{{name: raw, schema: {shop.schema}, tables: [{{name: raw_rows}}]}}]"
    )
    for name, config in MODELS.items():
        shop.model(name, f"{{{{ config({config}) }}}} {QUERY}")
    shop.file(
        "snapshots/kept.sql",
        "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all', "
        f"hard_deletes='invalidate') }}}} {QUERY}{{% endsnapshot %}}",
    )
    run = shop.script.run

    def overtaken(meanwhile: Callable[[str], object], at: re.Pattern[str], before: bool) -> None:
        def beside(sql: str, execute: Callable[[], None]) -> None:
            found = at.search(sql)
            if before and found:
                meanwhile(found[1])
            run(sql, execute)
            if found and not before:
                meanwhile(found[1])

        monkeypatch.setattr(shop.script, "run", beside)

    # Nothing was there when the run began, and another one creates each table first.
    shop.source("raw_rows", "SELECT 1 AS id, 10 AS value")
    overtaken(lambda name: shop.sql(AS_OTHERS.replace("NAME", name)), FIRST, before=True)
    outcome = shop.try_dbt("build")
    assert outcome.exception is None, outcome.exception
    told = {result.node.name: str(result.message) for result in outcome.result.results}
    for name in ("kept", "replaced", "logged"):
        assert re.search(f"AR-404 another run created .*{name} first", told[name]), told[name]
        assert shop.rows(name) == [(7, 70)]
    assert shop.rows("shown") == [(1, 10)], "a table is replaced by each run"
    assert shop.rows("hooked") == [(1, 10)], "its own hook created it"
    shop.sql("DROP TABLE {s}.kept")

    # Another run commits a later state after this one has read its rows.
    def commit(name: str) -> None:
        shop.source("raw_rows", "SELECT 1 AS id, 12 AS value")
        shop.sql(f"UPDATE {{s}}.{name} SET value = 12 WHERE id = 1")

    monkeypatch.setattr(shop.script, "run", run)
    shop.dbt("build", "--exclude", "shown", "hooked")
    assert shop.rows("logged") == [(1, 10), (7, 70)]
    shop.source("raw_rows", "SELECT 1 AS id, 11 AS value")
    overtaken(commit, STAGED, before=False)
    assert "AR-404 another run or program changed the rows" in shop.fail("snapshot")
    assert shop.rows("kept", "value, dbt_valid_to IS NULL") == [(12, True)]
    shop.source("raw_rows", "SELECT 1 AS id, 11 AS value")
    shop.dbt("run", "--select", "replaced")
    assert shop.rows("replaced") == [(1, 12), (7, 70)], "the rows are read again"

    # The next run continues from there.
    monkeypatch.setattr(shop.script, "run", run)
    shop.source("raw_rows", "SELECT 1 AS id, 13 AS value")
    shop.dbt("snapshot")
    assert shop.rows("kept", "value, dbt_valid_to IS NULL") == [(12, False), (13, True)]
    assert not [one for one in shop.catalog.list_relations(shop.schema) if "__pull_" in str(one)]
