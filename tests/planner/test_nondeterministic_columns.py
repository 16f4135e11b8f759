"""What two runs of a query may have otherwise: the columns that an undetermined value comes to, no others."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.nondeterministic_columns import Nondeterministic, nondeterministic

SCHEMAS = {
    "a": [("id", "int"), ("x", "int"), ("y", "bigint"), ("z", "double"), ("d", "decimal(10,2)")],
    "b": [("id", "int"), ("aid", "int"), ("v", "int"), ("w", "string")],
}
DEDUPLICATED = (
    "SELECT x, x + 1 AS next, y FROM (SELECT *, row_number() OVER (PARTITION BY x ORDER BY d) AS n FROM a)"
)


def parts_of(sql: str, now: Clock | None = None) -> Nondeterministic:
    facts = Facts({name: UpstreamFacts(False, ("id",)) for name in SCHEMAS})
    return nondeterministic(analyse_query(sql, SCHEMAS, now=now, last=now), facts)


@pytest.mark.parametrize(
    ("sql", "columns", "digits"),
    [
        ("SELECT id, x, row_number() OVER (PARTITION BY x ORDER BY y, id) AS n FROM a", "", ""),
        ("SELECT x, sum(z) AS s, max(z) AS m, count(*) AS n FROM a GROUP BY x", "", "s"),
        ("SELECT x, s * 2 AS t, n FROM (SELECT x, avg(z) AS s, count(z) AS n FROM a GROUP BY x)", "", "t"),
        ("SELECT x, sum(z) AS s FROM a GROUP BY x HAVING sum(z) > 1", "", "s"),
        ("SELECT x, first(y) AS f, sum(z) AS s, sum(d) AS t FROM a GROUP BY x", "f", "s"),
        ("SELECT x, sum(f) AS t FROM (SELECT x, y, first(z) AS f FROM a GROUP BY x, y) GROUP BY x", "t", ""),
        (
            "SELECT x, avg(floor(z)) AS s, avg(ceil(z / 3)) AS t, sum(floor(z)) AS u FROM a GROUP BY x",
            "",
            "s t",
        ),
        ("SELECT id, rand() + x AS r, y FROM a", "r", ""),
        # Equal rows may be numbered in any order, but not in two.
        ("SELECT x, y, row_number() OVER (PARTITION BY x ORDER BY y) AS n FROM a", "", ""),
        (
            "SELECT x, y, row_number() OVER (PARTITION BY x ORDER BY y) AS n, "
            "row_number() OVER (PARTITION BY x ORDER BY abs(y)) AS m FROM a",
            "m n",
            "",
        ),
        ("SELECT id, min(z) OVER (PARTITION BY x ORDER BY z ROWS UNBOUNDED PRECEDING) AS n FROM a", "n", ""),
        ("SELECT x, sum(z) AS s FROM a GROUP BY x EXCEPT SELECT id, sum(z) FROM a GROUP BY id", "", "s"),
        (
            "SELECT b.id, v, f FROM b LEFT JOIN (SELECT x, first(y) AS f FROM a GROUP BY x) t ON x = aid",
            "f",
            "",
        ),
        ("SELECT id, (SELECT first(y) FROM a WHERE a.x = b.aid) AS f, v FROM b", "f", ""),
        ("SELECT x AS k, first(y) AS f FROM a GROUP BY x UNION ALL SELECT id, v FROM b", "f", ""),
        ("SELECT id, x, current_user() AS who FROM a", "who", ""),
        ("SELECT id, mine(x) AS m, y FROM a", "m", ""),
        # Each group has a first row, whichever it is; what the group shares is the same in all.
        (f"{DEDUPLICATED} WHERE n = 1", "y", ""),
        (f"{DEDUPLICATED} WHERE n <= 2 AND x > 3", "y", ""),
        ("SELECT count(*) AS n, max(x) AS m FROM (SELECT x FROM a WHERE rand() > 0.5)", "n m", ""),
    ],
)
def test_columns_that_are_open(sql: str, columns: str, digits: str) -> None:
    open_ = parts_of(sql)
    assert (sorted(open_.columns), sorted(open_.digits)) == (sorted(columns.split()), sorted(digits.split()))
    assert open_.rows is None


@pytest.mark.parametrize(
    ("sql", "code", "counted"),
    [
        ("SELECT id, x FROM a WHERE rand() > 0.5", "random", False),
        ("SELECT id, x FROM a ORDER BY x LIMIT 3", "ties", True),
        ("SELECT z FROM a ORDER BY z LIMIT 3", "ties", True),
        ("SELECT id, x FROM (SELECT * FROM a ORDER BY x LIMIT 3) WHERE x > 1", "ties", False),
        (f"{DEDUPLICATED} WHERE n = 1 AND y > 3", "ties", False),
        (f"{DEDUPLICATED} WHERE n + rand() > 3", "ties", False),
        (
            "SELECT f, count(*) AS n FROM (SELECT first(y) AS f FROM a GROUP BY x) GROUP BY f",
            "order-dependent",
            False,
        ),
        (
            "SELECT b.id FROM b JOIN (SELECT first(y) AS f FROM a GROUP BY x) t ON f = aid",
            "order-dependent",
            False,
        ),
        ("SELECT id FROM b WHERE v IN (SELECT first(y) FROM a GROUP BY x)", "order-dependent", False),
        ("SELECT id FROM b WHERE EXISTS (SELECT 1 FROM a WHERE rand() > 0.5 AND a.x = b.v)", "random", False),
        (
            "SELECT f FROM (SELECT x, first(y) AS f FROM a GROUP BY x) EXCEPT SELECT v FROM b",
            "order-dependent",
            False,
        ),
    ],
)
def test_rows_that_are_open(sql: str, code: str, counted: bool) -> None:
    open_ = parts_of(sql)
    assert open_.rows is not None
    assert (open_.rows.code, open_.counted) == (code, counted)
    assert {name for name, _ in analyse_query(sql, SCHEMAS).columns} == set(open_.columns)


@pytest.mark.parametrize(
    "sql", ["SELECT id, current_date() AS at FROM a", "SELECT id FROM a WHERE now() > '2026-01-01'"]
)
def test_a_time_that_is_known_leaves_nothing_open(sql: str) -> None:
    assert parts_of(sql).reason is not None
    assert parts_of(sql, Clock("2026-11-22", "2026-11-22 10:00:00Z")) == Nondeterministic()
