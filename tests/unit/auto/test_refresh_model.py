"""What a refresh over an auxiliary view reports if one of its statements fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.auto import refresh_model
from dbt_arctic.auto.fallbacks import WITHOUT_HIDDEN, WITHOUT_STATE
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Outcome

STATE, MODEL = Name("lake", "s", "m__state"), Name("lake", "s", "m")


class Execution:
    """Executes plans, which are lists of stages. A stage with an exclamation mark fails."""

    def __init__(self) -> None:
        self.trace = Trace(MODEL.identifier)
        context = SimpleNamespace(catalog=None, query_schema=None)
        config = KeyedConfig("m", ("k",))
        self.refresh = SimpleNamespace(
            context=context, name=MODEL, config=config, owner="", comment="", column_comments=None
        )
        self.refresh.trace = self.trace

    def plan(self, context: Any, target: Any, plan: Any, trace: Trace) -> Outcome:
        for stage in plan.sql.split():
            with trace.timed(stage.strip("!")):
                if stage.endswith("!"):
                    raise StatementError("it failed")
        return Outcome(target.name.identifier, 1, "")


def planned(stages: str, hidden: Any = None) -> Any:
    return SimpleNamespace(action="incremental", sql=stages, hidden=hidden, reason=None)


@pytest.fixture
def execution(monkeypatch: pytest.MonkeyPatch) -> Execution:
    made = Execution()
    monkeypatch.setattr(refresh_model, "execute_plan", made.plan)
    monkeypatch.setattr(refresh_model, "plan_without_state", lambda *given: planned("query"))
    monkeypatch.setattr(refresh_model, "plan_without_hidden", lambda *given: planned("keys rows"))
    monkeypatch.setattr(refresh_model, "_reads_little", lambda *given: True)
    monkeypatch.setattr(refresh_model, "drop_states", lambda *given: None)
    return made


@pytest.mark.parametrize(
    ("state", "model", "listed"),
    [
        ("guard rows!", "", ["m__state guard", "m__state rows", "m query"]),
        ("guard rows", "keys rows!", ["m__state guard", "m__state rows", "m keys", "m rows", "m query"]),
        ("guard rows", "", ["m__state guard", "m__state rows", "m query"]),
    ],
    ids=["the view fails", "the query over the view fails", "the query over the view has no plan"],
)
def test_the_stages_up_to_a_failure_and_the_fallback_are_listed(
    state: str, model: str, listed: list[str], execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_over_state(*given: Any) -> Any:
        if model:
            return planned(model)
        raise StatementError("Spark does not accept the query")

    monkeypatch.setattr(refresh_model, "plan_over_state", plan_over_state)
    kept = SimpleNamespace(name=STATE, config=None, plan=planned(state), is_inside=False, place=0)
    plan = SimpleNamespace(action="incremental", state=kept)
    outcome = execution.trace.of(refresh_model._over_state(cast(Any, execution.refresh), cast(Any, plan)))
    assert outcome.message == "m"
    assert [f"{one.relation} {one.stage}" for one in outcome.stages] == listed
    assert outcome.fell_back == (WITHOUT_STATE,)


def test_the_stages_with_hidden_columns_are_listed_before_those_without(execution: Execution) -> None:
    plan = planned("guard changes!", hidden=SimpleNamespace(has_few_rows=False))
    config = execution.refresh.config
    refresh = cast(Any, execution.refresh)
    outcome = execution.trace.of(refresh_model._of_table(refresh, MODEL, config, plan))
    assert [one.stage for one in outcome.stages] == ["guard", "changes", "keys", "rows"]
    assert outcome.fell_back == (WITHOUT_HIDDEN,)
