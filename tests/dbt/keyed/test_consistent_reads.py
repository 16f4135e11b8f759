"""With ``consistent_reads``, an invocation reads every table at one version, and its own models as made."""

from __future__ import annotations

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop

TWO_READERS = {
    "early": "{{ config(materialized='table') }} select * from {{ source('raw', 'raw_orders') }} as o",
    "late": """{{ config(materialized='table') }}
        -- depends_on: {{ ref('early') }}
        select o.id, e.id as seen from {{ source('raw', 'raw_orders') }} as o
        left join {{ ref('early') }} as e on e.id = o.id""",
    "later": """
        {{ config(materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=2) }}
        -- depends_on: {{ ref('late') }}
        select o.id from {{ ref('orders') }} as o""",
    "orders": """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select id from {{ source('raw', 'raw_orders') }}""",
}


@pytest.fixture
def pinned(shop: Shop) -> Shop:
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["dev"]["consistent_reads"] = True
    shop.file("profiles.yml", yaml.safe_dump(profile))
    shop.source("raw_orders", "SELECT id FROM range(3)")
    for name, text in TWO_READERS.items():
        shop.model(name, text)
    return shop


def insert_in_between(shop: Shop, model: str) -> None:
    """A row lands in the source right before a model is written."""
    run = shop.script.run

    def beside(sql: str, execute: object) -> None:
        if f"`{model}`" in sql.split("as\n", 1)[0] and "create or replace table" in sql.lower():
            shop.sql("INSERT INTO {s}.raw_orders VALUES (99)")
        run(sql, execute)  # type: ignore[arg-type]

    shop.script.run = beside  # type: ignore[method-assign]


def test_all_models_of_a_run_read_a_source_at_one_version_and_the_next_run_at_the_next(pinned: Shop) -> None:
    insert_in_between(pinned, "late")
    pinned.dbt("run")
    assert (99,) in pinned.rows("raw_orders")
    assert pinned.rows("early") == [(0,), (1,), (2,)]
    # The run's own table is read as the run made it, the source as it was.
    assert pinned.rows("late") == [(0, 0), (1, 1), (2, 2)]
    assert pinned.rows("later") == [(0,), (1,), (2,)]
    pinned.dbt("run", "--select", "early", "late", "orders")
    assert pinned.rows("late") == [(0, 0), (1, 1), (2, 2), (99, 99)]
    pinned.dbt("run", "--select", "later")
    assert pinned.rows("later") == pinned.rows("orders") == [(0,), (1,), (2,), (99,)]
    # The columns of a table may be newer than its last snapshot.
    pinned.sql("ALTER TABLE {s}.raw_orders ADD COLUMN note STRING")
    pinned.dbt("run", "--select", "early")
    assert set(pinned.rows("early")) == {(0, None), (1, None), (2, None), (99, None)}


def test_without_it_a_run_sees_what_lands_meanwhile(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT id FROM range(3)")
    for name in ("early", "late"):
        shop.model(name, TWO_READERS[name])
    insert_in_between(shop, "late")
    shop.dbt("run")
    assert (99, None) in shop.rows("late")


def test_each_invocation_of_one_process_has_its_own_versions(pinned: Shop) -> None:
    without = ["--no-populate-cache"]
    pinned.dbt("run", *without)
    insert_in_between(pinned, "late")
    pinned.dbt("run", "--select", "early", "late", *without)
    assert pinned.rows("late") == [(0, 0), (1, 1), (2, 2)], "what landed in between is read by the next run"
    pinned.dbt("run", "--select", "early", "late", "orders", "later", *without)
    assert pinned.rows("orders") == pinned.rows("later") == [(0,), (1,), (2,), (99,)]


def test_a_python_model_reads_a_plain_table_at_the_version_of_its_run(pinned: Shop) -> None:
    pinned.file(
        "models/counted.py",
        """def model(dbt, session):
    dbt.config(materialized="table")
    dbt.ref("late")
    return dbt.source("raw", "raw_orders").agg({"id": "count"}).toDF("rows")
""",
    )
    insert_in_between(pinned, "late")
    pinned.dbt("run")
    assert pinned.rows("counted") == [(3,)]
    pinned.dbt("run", "--select", "counted")
    assert pinned.rows("counted") == [(4,)]
