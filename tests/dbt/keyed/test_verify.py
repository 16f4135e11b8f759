"""A model that verifies its refreshes, in dbt: what is recorded and shown, and what follows a difference."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from click.testing import CliRunner

from dbt_arctic.auto import plan_table, stages, verify_refresh
from dbt_arctic.cli.main import main
from dbt_arctic.human_readable import counted
from dbt_arctic.planner.algebra.render import Sources
from dbt_arctic.planner.delta.plan import Incremental, affected_sql
from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.test_auto import ORDERS, rows

VERIFIED = """
{{{{ config(materialized='incremental', incremental_strategy='auto', unique_key={key}, buckets=2,
          auto={{'verify': '100%'}}) }}}}
{sql}
"""
SUMS = "select customer, count(*) as orders, sum(amount) as amount from {{ ref('orders') }} group by customer"
FLOATS = """
select customer, cast(customer as string) as name, max(timestamp_seconds(amount)) as at,
  map('a', max(amount)) as m, max(cast(amount as double)) as f
from {{ ref('orders') }} where date_add(DATE '2026-11-01', cast(id as int)) <= current_date() or id > 0
group by customer
"""


def verify_output(shop: Shop, *arguments: str) -> Any:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    done = CliRunner().invoke(main, [*arguments, *folders], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output) if "--json" in arguments else done.output


def test_a_difference_fails_the_model_and_the_next_run_repairs_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, refreshes and verifications of seconds are no reason to do without one.
    monkeypatch.setattr(verify_refresh, "_SHORT_S", math.inf)
    monkeypatch.setattr(plan_table, "slower", lambda took, changed: None)
    shop.source("raw_orders", rows(*((n, n % 20, n) for n in range(1, 41))))
    shop.model("orders", ORDERS)
    shop.model("sums", VERIFIED.format(key="'customer'", sql=SUMS))
    shop.model("several", VERIFIED.format(key="['customer', 'name']", sql=FLOATS))
    shop.dbt("run")
    shop.source("raw_orders", rows((1, 1, 100), (2, 3, 2), (3, 3, -1), (50, 21, 7)))
    shop.dbt("run")
    for name in ("sums", "several"):
        told = shop.recorded[name]
        assert told["verified"]["result"] == "equal", told
        assert told["verified"]["seconds"] > 0
        assert f"{counted(told['verified']['keys'], 'key')} verified" in told["_message"]
    assert sum("'arctic.verified'" in sql for sql in shop.script.ran) == 2

    def too_few(plan: Incremental, sources: Sources) -> str:
        return f"SELECT * FROM (\n{affected_sql(plan, sources)}\n) LIMIT 1"

    shop.source("raw_orders", rows((1, 1, 11), (7, 8, 70)))
    shop.dbt("run", "--select", "orders")
    with monkeypatch.context() as wrong:
        wrong.setattr(stages, "affected_sql", too_few)
        outcome = shop.try_dbt("run", "--select", "several")
        said = shop.messages(outcome)
    assert not outcome.success, said
    assert re.search(r"AR-330 [23] of \d+ verified keys differ", said), said
    assert re.search(r"customer = (1|8), name = (1|8): at is .*; f is [\d.]+, the query returns [\d.]+", said)
    (status,) = verify_output(shop, "status", f"{shop.schema}.several", "--json")
    assert (status["verified"]["result"], status["verified"]["repaired"]) == ("different", False)
    history = verify_output(shop, "history", f"{shop.schema}.several", "--json")
    assert [entry["verified"] and entry["verified"]["result"] for entry in history] == [
        "different",
        "equal",
        None,
    ]
    assert "keys differ" in verify_output(shop, "history", f"{shop.schema}.several")
    (plan,) = verify_output(shop, "plan", "several", "--json")
    assert (plan["refresh"], plan["reason"]) == ("full", "differed")
    shop.dbt("run")
    assert shop.recorded["several"]["reason"] == "differed"
    assert "verified" not in shop.recorded["several"], "a full refresh computes everything"
    values = "SELECT customer, double(max(amount)) FROM {s}.orders GROUP BY customer"
    assert shop.rows("several", "customer, f") == sorted(shop.sql(values), key=repr)
    (status,) = verify_output(shop, "status", f"{shop.schema}.several", "--json")
    assert status["verified"]["repaired"]
    report = verify_output(shop, "report", "--json")
    (table,) = [one for one in report["tables"] if one["table"].endswith(".several")]
    assert table["verified"] == status["verified"]
