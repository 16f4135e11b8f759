"""A model or a profile with a mistake gets an error that says what to do, and loses nothing."""

from __future__ import annotations

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from tests.dbt.keyed.conftest import Shop

GOOD = "{{ config(materialized='incremental', unique_key='id', buckets=2) }} select 1L as id, 'a' as name"

KEYED = "{{ config(materialized='incremental', unique_key='id') }} "
PULL_MISSING = "{{ incremental_pull(source('raw', 'missing')) }}"


FIRST_RUNS = [
    (
        "{{ config(materialized='incremental', unique_key='key') }} select 1 as id",
        "AR-302",
        "columns are: id",
    ),
    (
        "{{ config(materialized='incremental', unique_key='id') }} select cast(null as int) as id",
        "AR-303",
        'NULL in its key: {"id":null}',
    ),
    (
        KEYED + "select * from values ('a|b'), ('a|b') as t(id)",
        "AR-304",
        'a/b"}',
    ),
    ("{{ config(materialized='table', partition_bye='x') }} select 1 as id", "AR-301", "'partition_by'"),
    (
        "{{ config(materialized='incremental', unique_key='id', buckets=3) }} select 1 as id",
        "AR-301",
        "buckets=4",
    ),
    ("{{ config(materialized='incremental', unique_key='id') }} select 1.0D as id", "AR-301", "bucket"),
    (
        "{{ config(materialized='incremental', incremental_strategy='merge') }} select 1 as id",
        "AR-301",
        "unique_key",
    ),
    (
        KEYED + "select id from " + PULL_MISSING,
        "AR-306",
        "does not exist",
    ),
    (
        "{{ config(materialized='incremental', unique_key='id') }} select 1 as id, 'X' as _action",
        "AR-301",
        "'U' (upsert)",
    ),
    (
        "{{ config(materialized='incremental', unique_key='id') }} select 1 as id, 2 as _txn",
        "AR-301",
        "_txn",
    ),
    (KEYED + "select 1 as id, 2 as _POS", "AR-301", "_POS, which is a reserved name"),
    (
        "{{ config(materialized='table') }} select 1 as id, 'x' as _file",
        "AR-301",
        "metadata column of Iceberg",
    ),
    (
        "{{ config(materialized='incremental', incremental_strategy='append') }} select 1 as `_Deleted`",
        "AR-301",
        "_Deleted, which is a metadata column of Iceberg",
    ),
    ("select id from {{ source('raw', 'missing') }}", "AR-201", "missing"),
    (
        "{{ config(materialized='dynamic_table') }} select 1 as id",
        "AR-301",
        "materialized='materialized_view'",
    ),
    (
        "{{ config(materialized='materialized_view') }} select 1 as id",
        "AR-301",
        "a materialized view needs a unique_key",
    ),
    (
        KEYED.replace("'id'", "'id', incremental_strategy='upserts'") + "select 1 as id",
        "AR-301",
        "did you mean 'upsert'?",
    ),
    (
        KEYED.replace("'id'", "'id', partition_by='dayy(at)'") + "select 1 as id",
        "AR-301",
        "did you mean day(at)?",
    ),
    (
        KEYED.replace("'id'", "'id', delete_when=\"gone = 'x'\"") + "select 1 as id",
        "AR-201",
        "delete_when: gone = 'x'",
    ),
    ("{{ config(materialized='table') }}\nselect 1 as id,\n  amout", "AR-201", ".sql, line 3: amout"),
    (KEYED + "\nselect\n  cast('abc' as int) as id", "AR-201", ".sql, line 3: cast('abc' as int) as id"),
    (
        "{{ config(materialized='view') }} select * from " + PULL_MISSING,
        "incremental_pull()",
        "materialized='incremental'",
    ),
]


def test_a_mistake_in_a_first_run_is_explained(shop: Shop) -> None:
    for number, (model, _, _) in enumerate(FIRST_RUNS):
        shop.model(f"wrong_{number}", model)
    messages = shop.refusals("run")
    for number, (_, code, told) in enumerate(FIRST_RUNS):
        message = messages[f"wrong_{number}"]
        assert code in message
        assert told in message
        assert "Traceback" not in message
    assert not [entry.name for entry in shop.catalog.list_relations(shop.schema) if "wrong" in entry.name]


LATER_RUNS = [
    ("select cast(null as bigint) as id, 'b' as name union all select 2L, 'c'", "AR-303"),
    ("select 2L as id, 'b' as name union all select 2L, 'c'", "AR-304"),
    ("select 2L as id", "AR-305"),
    ("select 2L as other, 'b' as name", "AR-302"),
]


def test_a_mistake_in_a_later_run_loses_nothing(shop: Shop) -> None:
    names = [f"orders_{number}" for number in range(len(LATER_RUNS))]
    for name in names:
        shop.model(name, GOOD)
    shop.dbt("run")
    before = [shop.log(name) for name in names]
    for name, (batch, _) in zip(names, LATER_RUNS, strict=True):
        shop.model(name, GOOD.split("}} ")[0] + "}} " + batch)
    messages = shop.refusals("run")
    for name, (_, code) in zip(names, LATER_RUNS, strict=True):
        assert code in messages[name]
        assert name in messages[name]
    assert [shop.log(name) for name in names] == before
    assert [shop.rows(name) for name in names] == [[(1, "a")]] * len(names)


def test_a_changed_key_asks_for_a_full_refresh(shop: Shop) -> None:
    shop.model("orders", GOOD)
    shop.dbt("run")
    shop.model("orders", GOOD.replace("unique_key='id'", "unique_key=['id', 'name']"))
    message = shop.fail("run")
    assert "AR-301" in message
    assert "dbt run --full-refresh --select orders" in message
    shop.dbt("run", "--full-refresh")
    assert shop.rows("orders") == [(1, "a")]


def test_a_side_table_that_was_dropped_by_hand_is_missed(shop: Shop) -> None:
    shop.model("orders", GOOD)
    shop.dbt("run")
    shop.sql("DROP TABLE {s}.orders__change_1")
    message = shop.fail("run")
    assert "AR-401" in message or "orders__change_1" in message
    shop.dbt("run", "--full-refresh")
    assert shop.rows("orders") == [(1, "a")]


def test_compacting_what_is_not_keyed_is_an_error(shop: Shop) -> None:
    shop.model("plain", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run")
    outcome = shop.try_dbt("run-operation", "compact", "--args", "{table: plain}")
    assert not outcome.success


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ("method: jdbc", "session"),
        ("spark_conf: {a: {b: 1}}", "single value"),
        ("catalog: 'my lake'", "lake"),
    ],
)
def test_a_wrong_profile_is_explained(shop: Shop, profile: str, told: str) -> None:
    shop.model("orders", GOOD)
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    profiles["shop"]["outputs"]["dev"].update(yaml.safe_load(profile))
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    message = shop.fail("run")
    assert "AR-101" in message
    assert told in message


def test_a_catalog_without_views_gets_no_part_of_a_view(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.model("shown", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run")
    monkeypatch.setattr(EmbeddedCatalog, "has_views", lambda catalog: False)
    hook = "pre_hook='create table {{ this.schema }}.hooked (id int)'"
    shop.model("shown", "{{ config(materialized='view', " + hook + ") }} select 2 as id")
    refused = shop.refusals("run")
    assert "AR-301" in refused["shown"]
    assert "cannot be a view, because the catalog `lake` has no views" in refused["shown"]
    entries = shop.catalog.list_relations(shop.schema)
    assert [(entry.name, entry.kind) for entry in entries] == [("shown", "table")]
    assert shop.rows("shown") == [(1,)]


@pytest.mark.parametrize(
    "conf", [{"spark.sql.catalog.lake.uri": "x"}, {"spark.sql.parser.escapedStringLiterals": "true"}]
)
def test_a_mistake_in_spark_conf_is_an_error_of_dbt_and_no_crash(shop: Shop, conf: dict[str, str]) -> None:
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    profile["shop"]["outputs"]["dev"]["spark_conf"] = conf
    shop.file("profiles.yml", yaml.safe_dump(profile))
    error = shop.try_dbt("run").exception
    assert isinstance(error, DbtRuntimeError), "dbt prints a traceback of any other"
    assert "AR-101" in str(error)
    assert "spark_conf" in str(error)
