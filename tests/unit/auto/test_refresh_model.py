"""What a refresh over an auxiliary view reports if the query over the view fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.auto import refresh_model
from dbt_arctic.auto.fallbacks import WITHOUT_STATE
from dbt_arctic.errors import StatementError
from dbt_arctic.store.context import Outcome, StageRun

STATE, MODEL = StageRun("lake.s.m__state", "rows"), StageRun("lake.s.m", "query")


@pytest.mark.parametrize("fails", ["state", "query"])
def test_the_stages_of_a_refreshed_state_are_listed_before_those_of_the_fallback(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refreshed(refresh: Any, name: Any, config: Any, plan: Any) -> Outcome:
        if fails == "state":
            raise StatementError("it failed")
        return Outcome("kept", 1, "", stages=(STATE,), fell_back=("a guard",))

    def planned(*facts: Any) -> Any:
        raise StatementError("it failed")

    monkeypatch.setattr(refresh_model, "_of_table", refreshed)
    monkeypatch.setattr(refresh_model, "plan_over_state", planned)
    monkeypatch.setattr(
        refresh_model,
        "_without",
        lambda *given, drops: Outcome("alone", 2, "", stages=(MODEL,), fell_back=(WITHOUT_STATE,)),
    )
    context = SimpleNamespace(catalog=None, query_schema=None)
    refresh = SimpleNamespace(context=context, name=None, config=None)
    plan = SimpleNamespace(action="by keys", state=SimpleNamespace(name=None, config=None, plan=None))
    outcome = refresh_model._over_state(cast(Any, refresh), cast(Any, plan))
    assert outcome.message == "alone"
    assert outcome.stages == ((MODEL,) if fails == "state" else (STATE, MODEL))
    assert outcome.fell_back == ((WITHOUT_STATE,) if fails == "state" else ("a guard", WITHOUT_STATE))
