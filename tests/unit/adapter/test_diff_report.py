"""Which comparisons exceed a threshold, and what the exit code is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from dbt_arctic.adapter.diff_report import ColumnDifference, DiffReport, ModelDiff, Threshold
from dbt_arctic.errors import ConfigError

ORDERS = ModelDiff("orders", "lake.ci.orders", "lake.prod.orders", "compared", rows=1000, base_rows=900)


@pytest.mark.parametrize(
    ("limit", "differing", "exit_code"),
    [("0", 0, 0), ("0", 1, 1), ("2", 2, 0), ("2", 3, 1), ("0.1%", 1, 0), ("0.1%", 2, 1), ("0%", 1, 1)],
)
def test_a_threshold_is_the_most_rows_that_may_differ(limit: str, differing: int, exit_code: int) -> None:
    for kind in ("changed", "only_here", "only_there"):
        found = replace(ORDERS, **{kind: differing})  # type: ignore[arg-type]
        report = DiffReport("ci", "prod", (found, ORDERS), Threshold.parse(limit))
        assert report.exit_code == exit_code
        assert report.exceeding == ([found] if exit_code else [])


def test_without_a_threshold_differences_are_no_failure() -> None:
    assert DiffReport("ci", "prod", (replace(ORDERS, changed=5),)).exit_code == 0


@pytest.mark.parametrize("text", ["", "few", "-1", "1.5", "1%%", "0,1%"])
def test_a_limit_is_a_number_or_a_share(text: str) -> None:
    with pytest.raises(ConfigError, match="neither a number of rows nor a share"):
        Threshold.parse(text)


def test_what_was_not_compared_exceeds_every_threshold() -> None:
    any_number = Threshold.parse("1000000")
    for found in (
        replace(ORDERS, state="not compared"),
        replace(ORDERS, not_compared=("at",)),
        replace(ORDERS, schema=(ColumnDifference("lost", "", "int"),)),
    ):
        assert DiffReport("ci", "prod", (found,), any_number).exit_code == 1
    failed = replace(ORDERS, state="failed")
    assert DiffReport("ci", "prod", (failed,)).exit_code == 2
    for column in (ColumnDifference("added", "int", ""), ColumnDifference("wider", "bigint", "int")):
        assert DiffReport("ci", "prod", (replace(ORDERS, schema=(column,)),), any_number).exit_code == 0
    for state in ("new", "not built", "clone"):
        found = replace(ORDERS, state=state)  # type: ignore[arg-type]
        assert DiffReport("ci", "prod", (found, ORDERS), any_number).exit_code == 0
        # If no model is built, nothing was compared.
        nothing = 2 if state == "not built" else 0
        assert DiffReport("ci", "prod", (found,), any_number).exit_code == nothing


def test_a_share_is_of_the_rows_of_both_relations() -> None:
    found = replace(ORDERS, rows=0, base_rows=200, only_there=200)
    assert found.share == Decimal(1)
    other = replace(ORDERS, rows=100, base_rows=200, only_here=100, only_there=200)
    assert other.share == Decimal(1), "no row is in both"
    assert replace(ORDERS, rows=100, base_rows=100, changed=1).share == Decimal("0.01")
    assert replace(ORDERS, rows=0, base_rows=0).share == 0


def test_the_summary_counts_models_by_what_happened() -> None:
    new = replace(ORDERS, model="added", state="new")
    other_type = replace(ORDERS, model="typed", schema=(ColumnDifference("id", "int", "bigint"),))
    report = DiffReport(
        "ci", "prod", (ORDERS, other_type, new, replace(ORDERS, changed=9)), Threshold(rows=5)
    )
    assert report.summary == "diff of ci with prod: 3 compared, 3 differ, 1 new, 1 over the threshold"
