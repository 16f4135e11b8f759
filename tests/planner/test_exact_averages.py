"""Averages of integers: recomputed exactly, or with an error."""

from __future__ import annotations

import duckdb
import pytest

from dbt_arctic.planner.algebra.operators import Aggregate
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view, state_sql
from dbt_arctic.planner.delta import exact_averages
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, full_sql, plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB

SCHEMAS = {
    "t": [("id", "bigint"), ("g", "bigint"), ("f", "double"), ("n", "int"), ("k", "smallint")],
    "o": [("id", "bigint"), ("g", "bigint")],
}
FACTS = Facts({name: UpstreamFacts(True, ("id",)) for name in SCHEMAS})

LIMIT = 2**53

BELOW = "SELECT o.id, q.m FROM o LEFT JOIN (SELECT g, avg(id) AS m FROM t GROUP BY g) AS q ON q.g = o.g"
CORRELATED = "SELECT o.id, (SELECT avg(t.id) FROM t WHERE t.g = o.g) AS m FROM o"


@pytest.mark.parametrize("sql", [BELOW, CORRELATED, "SELECT id, avg(g) AS m FROM t GROUP BY id"])
def test_affected_rows_are_recomputed_with_a_check(sql: str) -> None:
    query = analyse_query(sql, SCHEMAS)
    assert plan_summary_delta(query, ["id"], FACTS) is None
    made = plan_incremental(query, ["id"], FACTS)
    assert made.rows is not None
    checked = full_sql(with_exact_averages(query, in_any_mode=True), InDuckDB())
    assert "AVG" not in checked
    assert f">= {LIMIT} THEN RAISE_ERROR" in checked
    # Where the user accepts other last digits, nothing is checked.
    accepting = plan_incremental(query, ["id"], FACTS, frozenset({"float_sum"}))
    assert accepting.rows is not None
    assert accepting.rows != made.rows


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, avg(f) AS m FROM t GROUP BY id",
        "SELECT id, avg(f) OVER (PARTITION BY g ORDER BY id) AS m FROM t",
        "SELECT g AS id, avg(DISTINCT id) AS m FROM t GROUP BY g",
        "SELECT o.id, (SELECT avg(t.f) FROM t WHERE t.g = o.g) AS m FROM o",
    ],
)
def test_other_averages_are_refused(sql: str) -> None:
    with pytest.raises(CannotPlan, match="floats"):
        plan_incremental(analyse_query(sql, SCHEMAS), ["id"], FACTS)


@pytest.mark.parametrize(
    "form",
    [
        "SELECT avg(v) AS m FROM {t} GROUP BY g",
        "SELECT mean(v) AS m FROM {t} GROUP BY g",
        "SELECT avg(v) FILTER (WHERE g = 1) AS m FROM {t} GROUP BY g",
        "SELECT DISTINCT avg(v) OVER (PARTITION BY g) AS m FROM {t}",
        "SELECT (SELECT avg(t.v) FROM {t} WHERE t.g = o.g) AS m FROM (SELECT 1L AS g) AS o",
    ],
)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([LIMIT - 1], float(LIMIT - 1)),
        ([LIMIT - 3, -2], (LIMIT - 5) / 2),
        ([None, 3, 4], 3.5),
        ([None], None),
        ([LIMIT], "error"),
        ([LIMIT - 1, -1], "error"),
        # Without ANSI mode, sums of BIGINT would wrap around: to zero, here.
        ([2**62] * 4, "error"),
        ([-(2**63)], "error"),
    ],
)
def test_an_average_is_exact_or_an_error(form: str, values: list[int | None], expected: object) -> None:
    _compare(form, "BIGINT", values, expected)


@pytest.mark.parametrize(
    ("form", "values", "expected"),
    [
        (form, *case)
        for form in (
            "SELECT avg(v) AS m FROM {t} GROUP BY g",
            "SELECT DISTINCT try_avg(v) OVER (PARTITION BY g) AS m FROM {t}",
            "SELECT (SELECT mean(t.v) FROM {t} WHERE t.g = o.g) AS m FROM (SELECT 1L AS g) AS o",
        )
        for case in (
            ([99], 99.0),
            ([None, -98, 1], -48.5),
            ([None], None),
            ([100], "error"),
            ([-99, 1], "error"),
            # Its absolute value is not an INT.
            ([-(2**31)], "error"),
            # Without ANSI mode, more rows could make the sum of absolute values wrap around.
            ([1, 1, 1, 0, 0], "error"),
            ([1, 1, 1, 0], 0.75),
        )
    ],
)
def test_an_average_of_int_is_exact_or_an_error(
    form: str, values: list[int | None], expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With smaller limits: to exceed the real one takes four million rows."""
    monkeypatch.setattr(exact_averages, "_EXACT_BELOW", 100)
    monkeypatch.setattr(exact_averages, "_ROWS_OF_INT", 5)
    _compare(form, "INT", values, expected)


def test_the_limits_of_an_average_of_int_are_those_of_its_type() -> None:
    smallest = -(2**31)
    assert exact_averages._EXACT_BELOW == 2**53
    assert abs(smallest) * (exact_averages._ROWS_OF_INT - 1) < 2**63
    # Distinct values: the smallest, and its neighbours.
    assert sum(abs(smallest + place) for place in range(8)) / 8 * exact_averages._DISTINCT_INT <= 2**53


@pytest.mark.parametrize(("values", "expected"), [([5, 5, 6], 5.5), ([1, 2, 3, 3], "error"), ([None], None)])
def test_an_average_of_distinct_values_is_exact_as_long_as_these_are_few(
    values: list[int | None], expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_averages, "_DISTINCT_INT", 3)
    _compare("SELECT avg(DISTINCT v) AS m FROM {t} GROUP BY g", "INT", values, expected)


@pytest.mark.parametrize(
    ("value", "is_checked"),
    [
        ("n", True),
        ("n + 1", True),
        ("coalesce(n, 0)", True),
        ("CASE WHEN n > 3 THEN n END", True),
        ("CASE WHEN n > 3 THEN 40000 ELSE 0 END", True),
        ("CASE WHEN n > 3 THEN 1 ELSE 0 END", False),
        ("IF(n > 3, 100, -1)", False),
        ("coalesce(IF(n > 3, 1, NULL), 0)", False),
        ("CAST(n > 3 AS INT)", False),
        ("CAST(f AS INT)", True),
        ("month(DATE '2026-01-01')", False),
        ("k", False),
        ("CAST(k AS INT)", True),
    ],
)
def test_only_what_may_be_inexact_is_checked(value: str, is_checked: bool) -> None:
    sql = f"SELECT g AS id, avg({value}) AS m FROM t GROUP BY g"
    query = analyse_query(sql, SCHEMAS)
    assert ("RAISE_ERROR" in full_sql(with_exact_averages(query), InDuckDB())) is is_checked
    assert plan_incremental(query, ["id"], FACTS).rows is not None


def test_averages_of_one_value_store_one_sum_and_one_count() -> None:
    query = with_exact_averages(
        analyse_query("SELECT g, avg(n) AS m, avg(k) AS o FROM t GROUP BY g", SCHEMAS)
    )
    made = find_auxiliary_view(query, ["g"], {})
    assert made is not None
    assert isinstance(made.state, Aggregate)
    called = [call.sql("spark").replace("`", "") for _, call in made.state.aggregates]
    assert called == [
        "COUNT(*)",
        *("SUM(t_k)", "COUNT(t_k)"),
        *("SUM(t_n)", "COUNT(t_n)", "SUM(ABS(CAST(t_n AS BIGINT)))"),
    ]


@pytest.mark.parametrize("column", ["n", "id"])
@pytest.mark.parametrize("in_any_mode", [False, True])
def test_the_sums_of_an_average_are_maintained(column: str, in_any_mode: bool) -> None:
    """Their text is read again: one count of values belongs to both sums."""
    query = analyse_query(f"SELECT g, avg({column}) AS m FROM t GROUP BY g", SCHEMAS)
    made = find_auxiliary_view(with_exact_averages(query, in_any_mode=in_any_mode), ["g"], {})
    assert made is not None
    stored = analyse_query(state_sql(made, {"t": "t"}), SCHEMAS)
    assert plan_summary_delta(stored, made.key, FACTS) is not None


def test_a_window_of_an_average_keeps_its_name_in_a_reason() -> None:
    sql = "SELECT id, avg(n) OVER (ORDER BY g ROWS 3 PRECEDING) AS m FROM t"
    with pytest.raises(CannotPlan, match=r"avg\(\)") as error:
        plan_incremental(analyse_query(sql, SCHEMAS), ["id"], FACTS)
    assert error.value.reason.code == "ties"


def _compare(form: str, type_: str, values: list[int | None], expected: object) -> None:
    texts = ["NULL" if one is None else f"'{one}'" for one in values]
    rows = " UNION ALL ".join(f"SELECT 1L AS g, CAST({text} AS {type_}) AS v" for text in texts)
    sql = form.format(t=f"({rows}) AS t")
    checked = with_exact_averages(analyse_query(sql, SCHEMAS), in_any_mode=True)
    database = Database()
    if expected == "error":
        with pytest.raises(duckdb.Error, match="last digits depend on the order"):
            database.rows(full_sql(checked, InDuckDB()))
    else:
        assert database.rows(full_sql(checked, InDuckDB())) == [(expected,)]
