"""Auxiliary views of a session without ANSI mode, in which integers wrap around and sums become NULL."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import dbt_arctic
from dbt_arctic.auto import inputs
from dbt_arctic.auto.auxiliary_view import _worthwhile_view, as_called, view_as_hidden_columns
from dbt_arctic.auto.inputs import ModelInputs, find_inputs
from dbt_arctic.auto.nested_view import worthwhile_nested_view
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView, state_sql
from dbt_arctic.refresh.config import parse_config

MODEL, TABLE = Name("lake", "shop", "m"), Name("lake", "shop", "t")
CONFIG = parse_config("m", {"unique_key": "g", "incremental_strategy": "auto"})
NO_CATALOG = SimpleNamespace(
    of=lambda name: NO_CATALOG, load_view=lambda *name: None, load_table=lambda *name: None
)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Any:
    columns = (("id", "bigint"), ("g", "int"), ("big", "bigint"), ("amount", "decimal(38,2)"), ("n", "int"))
    there = Upstream(TABLE, columns, ("id",), Consumed("t", "1"), {"new": "SELECT * FROM t AT 1"}, True)

    def found(sql: str, *, is_ansi: bool, rows: int | None = None) -> ModelInputs:
        monkeypatch.setattr(
            inputs, "inspect_upstream", lambda catalog, name, *more: replace(there, rows=rows)
        )
        settings = f"spark.sql.ansi.enabled={str(is_ansi).lower()}"
        made = find_inputs(cast(Any, NO_CATALOG), MODEL, sql, {}, settings=settings)
        assert made.reason is None
        return made

    return found


@pytest.mark.parametrize("is_ansi", [True, False])
def test_the_check_of_an_average_does_not_wrap_around(reads: Any, is_ansi: bool) -> None:
    """Four times 2^62 are zero then, and so was their average."""
    made = view_as_hidden_columns(
        reads("SELECT g, avg(big) AS m FROM t GROUP BY g", is_ansi=is_ansi), CONFIG, ["g", "m"]
    )
    assert made is not None
    text = state_sql(made, {"lake.shop.t": "t"})
    assert ("AS DECIMAL(20, 0)" in text) is not is_ansi
    assert "SUM(ABS(" in text


@pytest.mark.parametrize(
    ("added", "is_ansi", "has_view"),
    [("amount", True, True), ("amount", False, False), ("n", False, True)],
)
def test_a_sum_of_sums_of_which_one_is_null_is_not_taken_for_the_sum(
    reads: Any, added: str, is_ansi: bool, has_view: bool
) -> None:
    sql = f"SELECT g, count(DISTINCT n) AS d, sum({added}) AS s FROM t GROUP BY g"

    def view(found: ModelInputs) -> AuxiliaryView | None:
        query, facts = as_called(found, ["g", "d", "s"])
        return _worthwhile_view(query, facts, found, CONFIG, hides=False)

    assert (view(reads(sql, is_ansi=is_ansi)) is not None) is has_view


@pytest.mark.parametrize(
    ("added", "is_ansi", "has_view"),
    [("amount", True, True), ("amount", False, False), ("n", False, True)],
)
def test_a_total_of_sums_of_which_one_is_null_is_not_taken_for_the_total(
    reads: Any, added: str, is_ansi: bool, has_view: bool
) -> None:
    sql = f"SELECT g, sum({added}) / (SELECT sum({added}) FROM t) AS s FROM t GROUP BY g"
    found = reads(sql, is_ansi=is_ansi, rows=2_000_000)
    query, facts = as_called(found, ["g", "s"])
    view = worthwhile_nested_view(query, facts, found, CONFIG, None)
    assert (view is not None) is has_view


def test_no_query_is_analysed_without_saying_how_integers_overflow() -> None:
    """The default value of the parameter is for tests of the planner."""
    package = Path(dbt_arctic.__file__).parent
    calls = [
        call
        for path in package.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "analyse_query"
    ]
    assert calls
    for call in calls:
        assert "wrap_on_overflow" in [one.arg for one in call.keywords], ast.unparse(call)
