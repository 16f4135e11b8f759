"""The page on several catalogs: its models are built there, and its commands find them."""

from __future__ import annotations

import re

import pytest
from dbt.cli.main import dbtRunner

from tests.dbt.keyed.conftest import Terminal
from tests.dbt.keyed.followed_pages import Guide
from tests.dbt.keyed.test_writing_to_catalogs import Two, two
from tests.pages import HOW_TO, section

pytestmark = pytest.mark.long
__all__ = ["two"]

PAGE = HOW_TO / "use-several-catalogs.md"
ORDERS = """{{ config(materialized='incremental', unique_key='id', delete_when='gone') }}
select id, amount, gone from {{ source('raw', 'raw_orders') }}"""
OF_BOTH = "{{ config(materialized='MATERIALIZED', database='archive') }} select * from {{ ref('orders') }}"


def test_models_are_built_in_two_catalogs_and_operated(
    two: Two, type_in: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = two.shop
    shop.source("raw_orders", "select id, int(id * 10) as amount, false as gone from range(1, 4)")
    shop.model("orders", ORDERS)
    shop.file("models/archived/by_folder.sql", "{{ config(materialized='table') }} select 1 as id")
    guide = Guide(shop, "use-several-catalogs", narrow=False)
    guide.write("dbt_project.yml", guide.text("+database: archive"))
    guide.write("models/orders_archive.sql", guide.text("incremental_pull"))
    shop.dbt("run")
    rows = [(1, 10), (2, 20), (3, 30)]
    assert two.rows("orders_archive", "id, amount") == rows
    assert two.rows("by_folder") == [(1,)]
    assert {entry.name for entry in shop.catalog.list_names(shop.schema)}.isdisjoint(two.names())

    # A view there reads tables of that catalog only; a table reads both.
    shop.model("both", OF_BOTH.replace("MATERIALIZED", "view"))
    shop.fail("run", "--select", "both")
    shop.model("both", OF_BOTH.replace("MATERIALIZED", "table"))
    shop.dbt("run", "--select", "both")
    assert two.rows("both", "id, amount") == rows

    shop.source("raw_orders", "select 1L as id, 11 as amount, false as gone")
    shop.dbt("run", "--select", "orders", "orders_archive")
    assert two.rows("orders_archive", "id, amount") == [(1, 11), *rows[1:]]
    before = type_in.json("history", f"archive.{shop.schema}.orders_archive")[-1]["version"]
    guide.known["VERSION"] = before
    guide.follow_section("Operate")
    assert two.rows("orders_archive", "id, amount") == rows
    listed = guide.printed["dbt-arctic status --catalog archive"]
    assert {name for name in ("orders_archive", "by_folder", "both") if name in listed} == {
        *("orders_archive", "by_folder", "both")
    }
    own = type_in("status")
    assert f"{shop.schema}.orders_archive" not in own
    assert "archive" in own, "the command names the other catalog"

    # What a consumer in the other catalog needs is kept.
    (plan,) = type_in.json("expire", "orders", "--older-than", "1h", "--dry-run")
    assert plan["sides"]
    (line,) = re.findall(r"catalog archive: ok .*\)", section(PAGE, "Check"))
    capsys.readouterr()
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    assert dbtRunner().invoke(["debug", *folders, "--no-use-colors"]).success
    assert re.search(re.sub(r"\d+\\ schemas", r"\\d+ schemas?", re.escape(line)), capsys.readouterr().out)
