"""Settings with which Spark reads a text otherwise stop the planner before it writes any SQL."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.auto import auxiliary_view, hidden_columns, inputs, plan_model, plan_table
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.auto.upstreams import Upstream, View
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.render import Renderer
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.refresh.config import parse_config

MODEL, TABLE, VIEW = (Name("lake", "shop", name) for name in ("m", "t", "v"))
CONFIG = parse_config("m", {"unique_key": "city", "incremental_strategy": "auto"})
SQL = """SELECT "city" AS city, count(*) AS n, max(at) AS at
FROM v WHERE at < now() GROUP BY 1 HAVING count(*) > 1"""
NO_CATALOG = SimpleNamespace(
    of=lambda name: NO_CATALOG, load_view=lambda *name: None, load_table=lambda *name: None
)
OTHER_MEANING = [
    "spark.sql.ansi.doubleQuotedIdentifiers=true",
    "spark.sql.timestampType=TIMESTAMP_NTZ",
    "statement 0=create temporary view v as select 1",
]
WRITERS: list[tuple[Any, str]] = [
    *(
        (plan_model, name)
        for name in ("find_state", "plan_state", "plan_with_hidden_columns", "build_with_hidden_columns")
    ),
    *((auxiliary_view, name) for name in ("state_sql", "outer_sql")),
    *((hidden_columns, name) for name in ("state_sql", "with_state_sql")),
    (plan_table, "pinned_text"),
    (inputs, "with_relations"),
    (Renderer, "query"),
]
"""What writes SQL from the reading of a query, or looks for what was written so."""


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RefreshPlan]:
    there = {
        TABLE: Upstream(
            TABLE,
            (("city", "string"), ("at", "timestamp")),
            ("city",),
            Consumed("t", "1"),
            {"new": "SELECT * FROM t AT 1"},
            True,
        ),
        VIEW: View(VIEW, (("city", "string"), ("at", "timestamp")), "SELECT city, at FROM t", TABLE),
    }
    table = SimpleNamespace(
        column_names=["city", "n", "at"], hidden=(), key=("city",), name=MODEL, columns=()
    )
    change = SimpleNamespace(history=list, properties={})
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: there.get(name))
    monkeypatch.setattr(plan_model, "load_change", lambda catalog, table: change)

    def plan(settings: str, *, exists: bool = False) -> RefreshPlan:
        monkeypatch.setattr(plan_model, "find_keyed", lambda catalog, name: table if exists else None)
        terms = RefreshParameters(settings, now=Clock("2026-01-01", "2026-01-01 00:00:00Z"))
        return plan_model.plan_refresh(cast(Any, NO_CATALOG), MODEL, CONFIG, SQL, None, terms=terms)

    return plan


@pytest.mark.parametrize("settings", OTHER_MEANING)
@pytest.mark.parametrize("exists", [False, True], ids=["built", "there"])
def test_nothing_is_written_from_a_reading_that_is_not_sparks(
    planned: Callable[..., RefreshPlan], monkeypatch: pytest.MonkeyPatch, settings: str, exists: bool
) -> None:
    for where, name in WRITERS:

        def refuse(*args: Any, called: str = name, **options: Any) -> Any:
            raise AssertionError(f"{called} is called before the settings are looked at")

        monkeypatch.setattr(where, name, refuse)
    plan = planned(settings, exists=exists)
    assert plan.reason is not None
    assert plan.reason == unsupported_setting(settings)
    assert plan.sql == SQL
    assert plan.action == ("full" if exists else "build")


def test_with_settings_that_are_analysed_the_query_reads_versions_and_has_one_time(
    planned: Callable[..., RefreshPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_model, "_with_state", lambda *args, **options: args[-1])
    plan = planned("spark.sql.session.timeZone=UTC")
    assert plan.reason is None
    assert "SELECT * FROM t AT 1" in plan.sql
    assert "now()" not in plan.sql
