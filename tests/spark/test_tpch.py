"""A round or two of ``make tpch``: its queries are incremental models, and equal to their queries.

Whatever a refresh sends was printed of its plan before. The short form has one of the queries and one model
of the example project for a round; all 22 run on DuckDB in ``tests/planner``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tpch import models
from benchmarks.tpch.__main__ import arguments, models_of, run
from benchmarks.tpch.data import generate
from benchmarks.tpch.example import example_models
from benchmarks.tpch.lake import Lake
from benchmarks.tpch.report import last_line
from dbt_arctic.auto import execute_table, few_rows, nested_view, refresh_model
from dbt_arctic.auto.plan import CannotUseView, Full, OverState, RefreshPlan, StatePlan
from dbt_arctic.auto.plan_model import plan_over_state
from dbt_arctic.auto.refresh_request import Schema
from dbt_arctic.auto.stages import Stage, stages_of
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.store.refresh_outcome import Outcome
from tests.extent import extent
from tests.planner import printed_plan, tpch_data

ROUNDS = extent(1, 2)
FEW = ("q06",)
"""Sums of one table: what is tried here is the benchmark itself."""
QUERIES = extent(FEW, tuple(tpch_data.QUERIES))
EXAMPLE = extent(("dwd_orders",), tuple(example_models()))


@dataclass
class StatementCheck:
    """Compares what a refresh sends with what was printed of its plan.

    ``compared`` counts plans by kind. ``fallbacks`` has the models with a refresh that another plan ended.
    """

    ran: list[str] = field(default_factory=list)
    carried_out: list[RefreshPlan] = field(default_factory=list)
    planned: list[RefreshPlan] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    fallbacks: set[str] = field(default_factory=set)

    def noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        execute, run_refresh = (
            SessionCursor.execute,
            models.run_refresh,
        )

        def noting(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
            self.ran.append(sql)
            execute(cursor, sql, bindings)

        def staged(plan: RefreshPlan) -> list[Stage]:
            self.carried_out.append(plan)
            return stages_of(plan)

        def run(context: Any, name: Any, config: Any, plan: RefreshPlan, **more: Any) -> Outcome:
            self.ran, self.carried_out, planned = [], [], [plan]
            if isinstance(plan, OverState):
                planned = [] if plan.action == "nothing" else [plan.state.plan]
            self.planned = planned
            outcome = run_refresh(context, name, config, plan, **more)
            self._compare(name.identifier, planned, {one.stage for one in outcome.stages if one.rows == 0})
            return outcome

        def over(catalog: CatalogReader, state: StatePlan, schema: Schema) -> RefreshPlan | CannotUseView:
            found = plan_over_state(catalog, state, schema)
            self.planned += [found] if isinstance(found, RefreshPlan) else []
            return found

        monkeypatch.setattr(refresh_model, "plan_over_state", over)
        monkeypatch.setattr(SessionCursor, "execute", noting)
        monkeypatch.setattr(execute_table, "stages_of", staged)
        monkeypatch.setattr(models, "run_refresh", run)

    def _compare(self, model: str, planned: Sequence[RefreshPlan], empty: Collection[str]) -> None:
        """:param empty: stages without rows, and so without a statement of those that read them."""
        built = [plan for plan in planned if plan.action == "build"]
        plans = [*built, *self.carried_out]
        if [type(plan) for plan in plans] != [type(plan) for plan in planned if plan.action != "nothing"]:
            assert isinstance(plans[-1], Full), f"{model} was planned as {planned}, and ended as {plans}"
            self.fallbacks.add(model)
            return
        # What several models read is read once; then the text is that of the plan over what is kept.
        shown = [
            mine if mine.inputs == made.inputs else made
            for mine, made in zip((one for one in planned if one.action != "nothing"), plans, strict=True)
        ]
        printed = [
            one
            for plan in shown
            for stage, one in zip(stages_of(plan), printed_plan.of_plan(plan), strict=True)
            if stage.reads not in empty
        ]
        assert printed_plan.differing(printed, self.ran) == [], model
        for plan in shown:
            self.compared[type(plan).__name__] = self.compared.get(type(plan).__name__, 0) + 1


@pytest.mark.timeout(1800)
def test_every_query_of_tpch_is_incremental_and_right(
    connection: SessionConnection,
    schema: str,
    warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What large tables get is tried on small ones.
    monkeypatch.setattr(nested_view, "WORTH_ROWS", 1)
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
    statements = StatementCheck()
    statements.noted(monkeypatch)
    generate(tmp_path, 0.01)
    lake = Lake(connection, EmbeddedCatalog("lake", str(warehouse)), 2, schema)
    for setting in ("spark.sql.shuffle.partitions = 2", "spark.sql.codegen.wholeStage = false"):
        lake.run(f"SET {setting}")
    given = arguments(
        ["--scale", "0.01", "--rounds", str(ROUNDS), "--compact-every", str(ROUNDS), "--buckets", "2"]
    )
    known = models_of(given)
    queries = [known[name] for name in QUERIES]
    every = [*queries, *(known[name] for name in EXAMPLE)]
    run(lake, every, given, tmp_path)
    ways = {model.query: {(one.strategy, one.reason) for one in model.rounds} for model in queries}
    others = {name for name, found in ways.items() if not any(how == "incremental" for how, _ in found)}
    # What all their rows depend on has changed: what suppliers ask in all, and whether any is complained of.
    assert others <= {"q11", "q16"}, ways
    assert all(
        found == {("skip", "unchanged"), ("full", "guard")} for name, found in ways.items() if name in others
    )
    counts = f"{len(QUERIES)} queries, {len(QUERIES) - len(others)} incremental, {ROUNDS} rounds"
    assert last_line(queries, ROUNDS) == f"tpch: {counts}, 0 differences"
    assert {"Build", "ByKeys", "BySummaryDelta"} <= statements.compared.keys()
    by_guards = {
        one.query for one in every if any((r.strategy, r.reason) == ("full", "guard") for r in one.rounds)
    }
    assert statements.fallbacks <= by_guards, "a plan that was printed is the one that runs"
