"""A refresh that is full for a reason of its own says as well why the next one will be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.auto import inputs, plan_model, plan_table
from dbt_arctic.auto.execute_table import require_incremental
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import FINGERPRINT, Consumed
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.refresh.config import parse_config

MODEL, TABLE = Name("lake", "shop", "m"), Name("lake", "shop", "t")
CONFIG = parse_config("m", {"unique_key": "id", "incremental_strategy": "auto"})
COLUMNS = (("id", "bigint"), ("g", "string"), ("at", "timestamp"), ("f", "double"))
NOW = Clock("2026-01-01", "2026-01-01 00:00:00Z")


def planned(monkeypatch: pytest.MonkeyPatch, sql: str, code: str) -> RefreshPlan:
    """The plan of a refresh that is full for a reason of its own."""
    upstream = Upstream(
        TABLE,
        COLUMNS,
        ("id",),
        Consumed("t", "1"),
        {"new": "SELECT * FROM t AT 1"},
        True,
        rows=10,
        changed_rows=9 if code == "many-changes" else 1,
        lost="the version is gone" if code == "history-gone" else "",
    )
    monkeypatch.setattr(
        inputs, "inspect_upstream", lambda catalog, name, *more: upstream if name == TABLE else None
    )
    monkeypatch.setattr(plan_table, "stored_rows", lambda *given: 10)
    table = SimpleNamespace(column_names=["id", "x"], hidden=(), key=("id",), name=MODEL, columns=())
    request = plan_table.Request(MODEL, CONFIG, sql, plan_model.RefreshParameters(now=NOW))
    header = plan_table._header(cast(Any, OneCatalog()), request, {}, "", is_build=False)
    last = header.consumed[FINGERPRINT]
    expected = (
        {}
        if code == "first-plan"
        else {FINGERPRINT: Consumed("other" if code == "changed-sql" else last.table_id, "")}
    )
    history = plan_table.RefreshHistory(expected, written_to=code == "written-to")
    return plan_table.choose_refresh(cast(Any, OneCatalog()), request, cast(Any, table), history)


CODES = ["changed-sql", "first-plan", "history-gone", "many-changes", "written-to"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("value", "permanent"),
    [("current_timestamp()", "time"), ("rand()", "random"), ("avg(f) OVER ()", "float-sum"), ("g", "")],
)
def test_the_reason_that_stays_comes_first(
    monkeypatch: pytest.MonkeyPatch, code: str, value: str, permanent: str
) -> None:
    plan = planned(monkeypatch, f"SELECT id, {value} AS x FROM lake.shop.t", code)
    assert plan.action == "full"
    assert plan.reason is not None
    assert plan.reason.code == code
    assert plan.reason.lasting.code == (permanent or code)
    assert plan.reason.codes == (f"{permanent}, {code}" if permanent else code)


def test_an_incremental_refresh_that_is_demanded_is_refused_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(monkeypatch, "SELECT id, rand() AS x FROM lake.shop.t", "changed-sql")
    with pytest.raises(ConfigError, match=r"full one \(random, changed-sql\)") as error:
        require_incremental(plan, replace(CONFIG, auto="strict"))
    assert "rand() gives another value in each run (line 1 of the compiled SQL)" in str(error.value)
