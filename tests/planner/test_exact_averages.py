"""Averages of BIGINT below joins and in subqueries: recomputed exactly, or with an error."""

from __future__ import annotations

import duckdb
import pytest

from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, full_sql, plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB

SCHEMAS = {
    "t": [("id", "bigint"), ("g", "bigint"), ("f", "double")],
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
        "SELECT id, avg(g) OVER (PARTITION BY g ORDER BY id) AS m FROM t",
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
    texts = ["NULL" if one is None else f"'{one}'" for one in values]
    rows = " UNION ALL ".join(f"SELECT 1L AS g, CAST({text} AS BIGINT) AS v" for text in texts)
    sql = form.format(t=f"({rows}) AS t")
    checked = with_exact_averages(analyse_query(sql, SCHEMAS), in_any_mode=True)
    database = Database()
    if expected == "error":
        with pytest.raises(duckdb.Error, match="last digits depend on the order"):
            database.rows(full_sql(checked, InDuckDB()))
    else:
        assert database.rows(full_sql(checked, InDuckDB())) == [(expected,)]
