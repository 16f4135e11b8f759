"""A rule that accepts too much, or reads a construct as another one, is noticed by a random case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp

from dbt_arctic.planner.frontend import pivots_and_generators
from dbt_arctic.planner.frontend.pivots_and_generators import _PivotValue, _unpivoted
from dbt_arctic.planner.properties import determinism
from tests.planner.common_queries import draw_shaped
from tests.planner.extended_queries import draw_extended
from tests.planner.oracle import Database, judge
from tests.planner.random_queries import Case


def _always_one(value: exp.Expression, _: set[str]) -> _PivotValue:
    return _PivotValue(value.args["alias"].name if value.args.get("alias") else value.name, "1")


def _with_nulls(*given: Any) -> str | None:
    text = _unpivoted(*given)
    return text and text.split(" WHERE ")[0]


@pytest.mark.parametrize(
    ("module", "name", "wrong", "case"),
    [
        (determinism, "ties_decide_nothing", lambda *_: True, draw_shaped(117, "windows over equal rows")),
        (pivots_and_generators, "_pivot_value", _always_one, draw_extended(0)),
        (pivots_and_generators, "_unpivoted", _with_nulls, draw_extended(32)),
    ],
)
def test_mistakes_are_noticed(
    module: Any, name: str, wrong: Callable[..., Any], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database()
    assert judge(database, case).outcome != "wrong"
    monkeypatch.setattr(module, name, wrong)
    assert judge(database, case).outcome == "wrong"
