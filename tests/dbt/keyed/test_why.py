"""``dbt-arctic why``, as typed: in a pipe, on terminals, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from dbt_arctic.cli import output
from dbt_arctic.cli.main import main
from tests.dbt.keyed.conftest import Shop

PULL = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select * from {{ incremental_pull(ref('orders')) }}"""
ORDERS = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, status, amount from {{ source('raw', 'raw_orders') }}"""


def test_a_row_is_explained(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def type_in(*arguments: str, code: int = 0) -> str:
        folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
        result = CliRunner().invoke(main, ["why", *arguments, *folders])
        assert result.exit_code == code, result.output + repr(result.exception)
        return result.output

    shop.source("raw_orders", "select 1L id, 'open' status, 2.50 amount union all select 2L, 'open', 1.00")
    shop.model("orders", ORDERS)
    shop.model("totals", PULL)
    shop.model("shown", "{{ config(materialized='view') }} select * from {{ ref('orders') }}")
    shop.dbt("run")
    shop.source("raw_orders", "select 1L id, 'paid' status, 2.50 amount")
    shop.dbt("run", "--select", "orders")

    found: Any = json.loads(type_in("orders", "id=1", "--json"))
    newest, built = found["commits"]
    assert found["row"] == {"id": 1, "status": "paid", "amount": "2.50"}
    assert (newest["effect"], newest["changed"], newest["stored"]) == ("changed", ["status"], "pending")
    assert (newest["before"]["status"], newest["after"]["status"]) == ("open", "paid")
    assert newest["run"].endswith(":model.shop.orders")
    assert (built["kind"], built["effect"], built["before"]) == ("build", "new", None)
    assert [(one["table"], one["has_read"]) for one in found["feeds"]] == [
        (f"lake.{shop.schema}.totals", False),
        (f"lake.{shop.schema}.shown", None),
    ]
    (read,) = json.loads(type_in("totals", '{"id": 2}', "--json"))["commits"][0]["read"]
    assert read["upstream"] == f"lake.{shop.schema}.orders"
    assert (read["after"], read["to"]) == (None, built["version"])

    text = type_in("orders", "id=1")
    assert f"lake.{shop.schema}.orders: id = 1\nThe row now: status = paid, amount = 2.50\n" in text
    assert f"\tchanged\t{newest['version']}\tpending\tupsert\t{newest['run']}\tstatus: open → paid\n" in text
    assert f"\tnew\t{built['version']}\tbase\tbuild\t{built['run']}\tstatus: open; amount: 2.50\n" in text
    assert f"\n{shop.schema}.totals\t{built['version']}\t{built['time']}\tno: its next run reads it\n" in text
    for width in (80, 120):
        monkeypatch.setattr(output, "terminal_width", lambda width=width: width)
        lines = type_in("orders", "id=1").splitlines()
        assert [line for line in lines if len(line) > width] == []
        assert any("status: open → paid" in line for line in lines)
    monkeypatch.undo()
    assert "No row has this key in any version that is left." in type_in("orders", "id=3", code=1)
    assert "fix:   write each value in the form" in type_in("orders", "id=x", code=2)
