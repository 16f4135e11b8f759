"""What a refresh over an auxiliary view reports if one of its statements fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.auto import refresh_model
from dbt_arctic.auto.fallbacks import WITHOUT_HIDDEN, WITHOUT_STATE
from dbt_arctic.auto.plan import CannotUseView, HiddenColumns, StatePlan
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.errors import ArcticError, DuplicateKey, NullKey, SparkEnded, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.refresh_outcome import Outcome

STATE, MODEL = Name("lake", "s", "m__state"), Name("lake", "s", "m")


FAILURES: dict[str, type[ArcticError]] = {
    "!": StatementError,
    "?": DuplicateKey,
    "#": NullKey,
    "~": SparkEnded,
}
"""The error with which a stage fails, by its last character."""


class Execution:
    """Executes plans, which are lists of stages, and records which state is dropped."""

    def __init__(self) -> None:
        self.dropped: list[int] = []
        self.trace = Trace(MODEL.identifier)
        context = SimpleNamespace(catalog=None, query_schema=None)
        config = KeyedConfig("m", ("k",))
        self.refresh = SimpleNamespace(
            context=context, name=MODEL, config=config, owner="", comment="", column_comments=None
        )
        self.refresh.trace = self.trace

    def plan(self, context: Any, target: Any, plan: Any, trace: Trace) -> Outcome:
        for stage in plan.sql.split():
            with trace.timed(stage.rstrip("".join(FAILURES))):
                if stage[-1] in FAILURES:
                    raise FAILURES[stage[-1]]("it failed")
        return Outcome(target.name.identifier, 1, "")

    def over_state(self, state: str) -> Any:
        """Refresh the model over a state."""
        kept = instance_of(StatePlan, name=STATE, config=None, plan=planned(state))
        plan = SimpleNamespace(action="incremental", state=kept)
        return refresh_model._over_state(cast(Any, self.refresh), cast(Any, plan))

    def of_table(self, plan: Any) -> Any:
        """Refresh the model's own table."""
        return refresh_model._of_table(cast(Any, self.refresh), MODEL, self.refresh.config, plan)

    @property
    def listed(self) -> list[str]:
        return [f"{one.relation} {one.stage}" for one in self.trace.stages]


def instance_of(kind: type[Any], **fields: Any) -> Any:
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def planned(stages: str, hidden: Any = None) -> Any:
    return SimpleNamespace(action="incremental", sql=stages, hidden=hidden, reason=None)


HIDDEN = HiddenColumns(("h",), cast(Any, None), rebuild=False, has_few_rows=False)


@pytest.fixture
def execution(monkeypatch: pytest.MonkeyPatch) -> Execution:
    made = Execution()
    monkeypatch.setattr(refresh_model, "execute_plan", made.plan)
    monkeypatch.setattr(refresh_model, "plan_without_state", lambda *given: planned("query"))
    monkeypatch.setattr(refresh_model, "plan_without_hidden", lambda *given: planned("keys rows"))
    monkeypatch.setattr(refresh_model, "_reads_little", lambda *given: True)
    monkeypatch.setattr(refresh_model, "drop_states", lambda *given: made.dropped.append(given[-1]))
    monkeypatch.setattr(StatePlan, "is_inside", False)
    monkeypatch.setattr(StatePlan, "place", 1)
    return made


def over(monkeypatch: pytest.MonkeyPatch, plan: Any) -> None:
    def plan_over_state(*given: Any) -> Any:
        if isinstance(plan, Exception):
            raise plan
        return plan

    monkeypatch.setattr(refresh_model, "plan_over_state", plan_over_state)


@pytest.mark.parametrize(
    ("state", "model", "listed", "dropped"),
    [
        ("guard rows!", None, ["m__state guard", "m__state rows", "m query"], []),
        ("rows#", None, ["m__state rows", "m query"], [1]),
        ("rows?", None, ["m__state rows", "m query"], [1]),
        ("rows", planned("keys rows!"), ["m__state rows", "m keys", "m rows", "m query"], []),
        ("rows", planned("rows#"), ["m__state rows", "m rows", "m query"], [1]),
        ("rows", StatementError("Spark does not accept it"), ["m__state rows", "m query"], []),
        ("rows", CannotUseView("other types", drops=True), ["m__state rows", "m query"], [1]),
        ("rows", CannotUseView(), ["m__state rows", "m query"], []),
    ],
    ids=[
        "the view fails",
        "the view has a NULL as a key",
        "the view has duplicate keys",
        "the query over the view fails",
        "the query over the view has a NULL as a key",
        "the query over the view cannot be planned",
        "the query over the view has other types",
        "the view is refreshed by another run",
    ],
)
def test_a_model_is_refreshed_without_a_state_that_cannot_be_kept_or_read(
    state: str,
    model: Any,
    listed: list[str],
    dropped: list[int],
    execution: Execution,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over(monkeypatch, model)
    outcome = execution.trace.of(execution.over_state(state))
    assert outcome.message == "m"
    assert execution.listed == listed
    assert outcome.fell_back == (WITHOUT_STATE,)
    assert execution.dropped == dropped


def test_duplicate_keys_of_the_model_itself_are_not_the_fault_of_its_state(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    over(monkeypatch, planned("rows?"))
    failure = execution.over_state("rows")
    assert isinstance(failure.error, DuplicateKey)
    assert execution.listed == ["m__state rows", "m rows"]
    assert execution.trace.fell_back == []


@pytest.mark.parametrize("state", ["rows~", "rows"])
def test_no_fallback_follows_the_end_of_spark(
    state: str, execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    over(monkeypatch, planned("rows~"))
    with pytest.raises(SparkEnded):
        execution.over_state(state)
    assert execution.trace.fell_back == []


def test_a_fallback_that_fails_too_fails_the_refresh(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_model, "plan_without_state", lambda *given: planned("query!"))
    failure = execution.over_state("rows!")
    assert isinstance(failure.error, StatementError)
    assert execution.listed == ["m__state rows", "m query"]


def test_the_stages_with_hidden_columns_are_listed_before_those_without(execution: Execution) -> None:
    outcome = execution.trace.of(execution.of_table(planned("guard changes!", HIDDEN)))
    assert [one.stage for one in outcome.stages] == ["guard", "changes", "keys", "rows"]
    assert outcome.fell_back == (WITHOUT_HIDDEN,)


@pytest.mark.parametrize(
    ("stages", "error"), [("keys rows!", StatementError), ("keys rows#", NullKey)], ids=["same SQL", "a NULL"]
)
def test_hidden_columns_that_are_not_the_cause_are_not_given_up(
    stages: str, error: type[ArcticError], execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_model, "plan_without_hidden", lambda *given: planned("keys rows!"))
    failure = execution.of_table(planned(stages, HIDDEN))
    assert isinstance(failure.error, error)
    assert execution.listed == ["m keys", "m rows"]
    assert execution.trace.fell_back == []
