"""``dbt-arctic diff``, as typed: a pull request's schema is compared with that of production."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.cli import output
from dbt_arctic.cli.main import main
from tests.dbt.keyed.conftest import Shop

ORDERS = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, status, amount from {{ source('raw', 'raw_orders') }}"""
CUSTOMERS = "{{ config(materialized='table') }} select id as customer, amount from {{ ref('orders') }}"
KEYS = """
models:
  - name: customers
    columns: [{name: customer, tests: [unique, not_null]}]
"""


def test_a_pull_request_is_compared_with_production(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def type_in(*arguments: str, code: int = 0) -> str:
        folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
        result = CliRunner().invoke(main, ["diff", *arguments, *folders])
        assert result.exit_code == code, result.output + repr(result.exception)
        return result.stdout

    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profiles["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    outputs["elsewhere"] = {**outputs["dev"], "warehouse": str(shop.folder / "other")}
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    rows = " union all ".join(f"select {key}L, 'open', {key}" for key in range(2, 11))
    shop.source("raw_orders", f"select 1L id, 'open' status, 1 amount union all {rows}")
    shop.file("models/keys.yml", KEYS)
    shop.model("orders", ORDERS)
    shop.model("customers", CUSTOMERS)
    shop.model("shown", "{{ config(materialized='view') }} select id, status from {{ ref('orders') }}")
    shop.model("unbuilt", "select 1 as id")
    shop.dbt("run", "--exclude", "unbuilt")
    changed = "case when id = 3 then 'pa|id' else status end as status, amount, 0 as tax"
    shop.model("orders", ORDERS.replace("status, amount", changed) + " where id <> 2")
    shop.file("models/added.yml", "models: [{name: added, versions: [{v: 1}, {v: 2}]}]")
    for version in (1, 2):
        shop.model(f"added_v{version}", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run", "--exclude", "unbuilt", "--target", "ci")

    shop.script.ran = []
    found: Any = json.loads(type_in("--base", "dev", "--target", "ci", "--json"))
    statements = [sql for sql in shop.script.ran if sql.startswith("SELECT")]
    models = {one["model"]: one for one in found["models"]}
    assert {name: one["state"] for name, one in models.items()} == {
        "orders": "compared",
        "customers": "compared",
        "shown": "compared",
        "added.v1": "new",
        "added.v2": "new",
        "unbuilt": "not built",
    }
    orders, customers, shown = (models[name] for name in ("orders", "customers", "shown"))
    assert orders["schema"] == [{"column": "tax", "type": "int", "base_type": None}]
    names = ("rows", "base_rows", "changed", "only_target", "only_base", "columns")
    assert [orders[name] for name in names] == [9, 10, 1, 0, 1, {"status": 1}]
    assert [customers[name] for name in names] == [9, 10, 0, 0, 1, {}]
    assert [shown[name] for name in names] == [9, 10, 0, 1, 2, {}]
    assert (orders["key"], customers["key"], shown["key"]) == (["id"], ["customer"], [])
    assert orders["samples"] == [
        {"row": "changed", "key": {"id": 3}, "values": {"status": {"base": "open", "target": "pa|id"}}},
        {"row": "only_base", "key": {"id": 2}, "values": {"status": {"base": "open", "target": None}}},
    ]
    # One aggregation a model, and one statement for its samples.
    assert len(statements) == 6

    text = type_in("--base", "dev", "--target", "ci", "--select", "orders added")
    assert text.startswith(
        "orders: tax int is new\n\nmodel\trows\tin dev\tchanged\tonly ci\tonly dev\tdiffer\t"
    )
    assert "orders\t9\t10\t1\t0\t1\t20 %\t\tstatus: 1\n" in text
    assert "changed\tid = 3\tstatus: open → pa|id\nonly dev\tid = 2\tstatus: open\n" in text
    assert text.endswith("diff of ci with dev: 1 compared, 3 differ, 2 new\n")
    markdown = type_in("--base", "dev", "--target", "ci", "--select", "orders", "--format", "markdown")
    assert "* orders: tax int is new\n" in markdown
    assert "| orders | 9 | 1 | 0 | 1 | 20 % | status: 1 |  |\n" in markdown
    assert "| changed | id = 3 | status: open → pa\\|id |\n" in markdown
    selected = ("--base", "dev", "--target", "ci", "--select", "orders", "--samples", "0")
    assert "over the threshold" in type_in(*selected, "--max-changed", "19.9%", code=1)
    type_in(*selected, "--max-changed", "20%")
    type_in(*selected, "--max-changed", "1", code=1)
    type_in(*selected, "--max-changed", "2")
    for width in (80, 120):
        monkeypatch.setattr(output, "terminal_width", lambda width=width: width)
        lines = type_in("--base", "dev", "--target", "ci").splitlines()
        assert [line for line in lines if len(line) > width] == []
    monkeypatch.undo()
    for arguments in (("--base", "ci"), ("--base", "elsewhere"), ("--base", "dev", "--max-changed", "few")):
        type_in(*arguments, "--target", "ci", code=2)
    type_in("--base", "dev", "--target", "ci", "--select", "nothing_like_this", code=2)
    nothing = type_in("--base", "dev", "--target", "ci", "--select", "unbuilt", code=2)
    assert nothing.endswith("0 compared, 0 differ, 1 not built; build the models in ci first\n")
