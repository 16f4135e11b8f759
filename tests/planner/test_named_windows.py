"""Named windows are parsed like windows that are written out; a query that Spark refuses has no plan.

Spark 4.1 was tried: it has no QUALIFY, no window that refines another one, and distinguishes ``W`` from
``w``.
"""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import InDuckDB
from tests.planner.random_tables import SCHEMAS

BY_X = "PARTITION BY x ORDER BY y, id"


def read(sql: str) -> str:
    return full_sql(analyse_query(sql, SCHEMAS), InDuckDB())


@pytest.mark.parametrize(
    ("named", "written"),
    [
        (f"SELECT id, rank() OVER w AS n FROM a WINDOW w AS ({BY_X})", f"rank() OVER ({BY_X})"),
        (f"SELECT id, rank() OVER (w) AS n FROM a WINDOW w AS ({BY_X})", f"rank() OVER ({BY_X})"),
        (f"SELECT id, rank() OVER v AS n FROM a WINDOW v AS w, w AS ({BY_X})", f"rank() OVER ({BY_X})"),
        (f"SELECT id, rank() OVER v AS n FROM a WINDOW w AS ({BY_X}), v AS w", f"rank() OVER ({BY_X})"),
        (
            f"SELECT id, sum(x) OVER `a b` AS n FROM a WINDOW `a b` AS ({BY_X} ROWS 1 PRECEDING), w AS ()",
            f"sum(x) OVER ({BY_X} ROWS 1 PRECEDING)",
        ),
        (
            f"SELECT id, lag(x) IGNORE NULLS OVER w AS n FROM a WINDOW w AS ({BY_X}), W AS (ORDER BY x)",
            f"lag(x) IGNORE NULLS OVER ({BY_X})",
        ),
        ("SELECT id, count(*) OVER w AS n FROM a WINDOW w AS ()", "count(*) OVER ()"),
        # A relation and a column may have the name, too.
        ("SELECT id, sum(x) OVER x AS n FROM a WINDOW x AS (PARTITION BY x)", "sum(x) OVER (PARTITION BY x)"),
        # The clause may stand behind ORDER BY, where it says nothing else.
        (f"SELECT id, rank() OVER w AS n FROM a ORDER BY id WINDOW w AS ({BY_X})", f"rank() OVER ({BY_X})"),
    ],
)
def test_a_name_stands_for_its_window(named: str, written: str) -> None:
    assert read(named) == read(f"SELECT id, {written} AS n FROM a")


def test_a_window_over_groups_may_have_a_name() -> None:
    grouped = "SELECT x, count(*) AS c, {} AS n FROM a GROUP BY x HAVING count(*) > 1"
    named = grouped.format("rank() OVER w") + " WINDOW w AS (ORDER BY count(*), x)"
    assert read(named) == read(grouped.format("rank() OVER (ORDER BY count(*), x)"))


def test_each_query_has_names_of_its_own() -> None:
    query = "SELECT id, {} AS n FROM (SELECT id, x, {} AS m FROM a{}) AS q{}"
    named = query.format(
        "sum(m) OVER w", "rank() OVER w", " WINDOW w AS (ORDER BY id)", " WINDOW w AS (PARTITION BY x)"
    )
    written = query.format("sum(m) OVER (PARTITION BY x)", "rank() OVER (ORDER BY id)", "", "")
    assert read(named) == read(written)
    united = "SELECT id, {} AS n FROM a{} UNION ALL SELECT id, {} FROM b{}"
    windows = (" WINDOW w AS (PARTITION BY x)", " WINDOW w AS (PARTITION BY v)")
    named = united.format("sum(x) OVER w", windows[0], "sum(v) OVER w", windows[1])
    assert read(named) == read(
        united.format("sum(x) OVER (PARTITION BY x)", "", "sum(v) OVER (PARTITION BY v)", "")
    )


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT id, rank() OVER W AS n FROM a WINDOW w AS ({BY_X})", "does not define"),
        (f"SELECT id, rank() OVER `w` AS n FROM a WINDOW w AS ({BY_X})", "does not define"),
        ("SELECT id, rank() OVER w AS n FROM a", "does not define"),
        # Spark finds the window of the enclosing query, if the query is in FROM.
        (
            f"SELECT id FROM (SELECT id, rank() OVER w AS n FROM a) AS q WINDOW w AS ({BY_X})",
            "does not define",
        ),
        (f"SELECT id, rank() OVER w AS n FROM a WINDOW w AS ({BY_X}), w AS ()", "defined twice"),
        (
            f"SELECT id, rank() OVER u AS n FROM a WINDOW u AS v, v AS w, w AS ({BY_X})",
            "not a defined window",
        ),
        ("SELECT id, rank() OVER u AS n FROM a WINDOW u AS v", "not a defined window"),
        (
            "SELECT id, rank() OVER (w ORDER BY y, id) AS n FROM a WINDOW w AS (PARTITION BY x)",
            "refines another",
        ),
        (
            "SELECT id, sum(x) OVER (w ROWS 1 PRECEDING) AS n FROM a WINDOW w AS (ORDER BY y)",
            "refines another",
        ),
        ("SELECT id FROM a WINDOW w AS (PARTITION BY x), v AS (w ORDER BY y)", "refines another"),
        (f"SELECT id FROM a WINDOW w AS ({BY_X}) ORDER BY rank() OVER w LIMIT 2", "outside of a select"),
        ("SELECT id FROM a QUALIFY row_number() OVER (PARTITION BY x ORDER BY id) = 1", "QUALIFY"),
    ],
)
def test_what_spark_refuses_has_no_plan(sql: str, why: str) -> None:
    with pytest.raises(CannotPlan, match=why):
        read(sql)
