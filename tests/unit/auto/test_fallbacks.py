"""What a plan says of the plans that may follow it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt_arctic.auto.fallbacks import WITHOUT_HIDDEN, WITHOUT_STATE, fallback_conditions
from dbt_arctic.auto.plan import ByKeys, Full, Nothing, OverState

FAILS = "a statement fails"


def plan_of(kind: type[Any], *, hidden: bool = False, **fields: Any) -> Any:
    plan = object.__new__(kind)
    fields["header"] = SimpleNamespace(hidden=object() if hidden else None)
    for name, value in fields.items():
        object.__setattr__(plan, name, value)
    return plan


def over(plan: Any) -> Any:
    return plan_of(
        OverState, state=None, first=plan, does="nothing" if isinstance(plan, Nothing) else "incremental"
    )


def test_each_condition_of_a_fallback_is_listed() -> None:
    assert fallback_conditions(plan_of(Full)) == []
    assert fallback_conditions(plan_of(Full, hidden=True)) == [WITHOUT_HIDDEN]
    assert fallback_conditions(plan_of(ByKeys)) == [FAILS]
    assert fallback_conditions(plan_of(ByKeys, hidden=True)) == [FAILS, WITHOUT_HIDDEN]
    assert fallback_conditions(over(plan_of(ByKeys))) == [FAILS, WITHOUT_STATE]
    assert fallback_conditions(over(plan_of(Full, hidden=True))) == [WITHOUT_HIDDEN, WITHOUT_STATE]
    assert fallback_conditions(over(over(plan_of(ByKeys)))) == [FAILS, WITHOUT_STATE]


def test_a_plan_that_does_nothing_has_no_fallback() -> None:
    assert fallback_conditions(plan_of(Nothing, hidden=True)) == []
    assert fallback_conditions(over(plan_of(Nothing))) == []
