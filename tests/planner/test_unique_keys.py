"""What is said to identify the rows of a query does: no two rows of it have the same values there."""

from __future__ import annotations

from collections import Counter

import pytest

from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import is_unique, unique_keys
from dbt_arctic.planner.reasons import CannotPlan
from tests.extent import extent
from tests.planner.oracle import Database, InDuckDB
from tests.planner.random_queries import draw
from tests.planner.random_tables import KEYS, SCHEMAS, draw_tables

FACTS = Facts({table: UpstreamFacts(True, key) for table, key in KEYS.items()})
NUMBERED = "(SELECT t.*, row_number() OVER (PARTITION BY t.x ORDER BY t.id) AS rn FROM a AS t) AS q"
SUMMED = "(SELECT x, sum(y) AS m FROM a GROUP BY x) AS q"
SUMMED_TOO = "(SELECT v, sum(w) AS n FROM b GROUP BY v) AS g"
JOINED = "FROM a AS t1 JOIN b AS t2 ON t2.aid = t1.id"

CASES = {
    # The first of its kind.
    f"SELECT x, y, z FROM {NUMBERED} WHERE rn = 1": {"x"},
    f"SELECT y, x FROM {NUMBERED} WHERE 1 = rn AND y > 1": {"x"},
    f"SELECT o, y FROM (SELECT x AS o, y, rn FROM {NUMBERED}) AS r WHERE rn <= 1 OR (rn < 2)": None,
    f"SELECT o, y FROM (SELECT x AS o, y, rn AS n FROM {NUMBERED}) AS r WHERE (n < 2)": {"o"},
    "SELECT k, m FROM (SELECT c.*, row_number() OVER (PARTITION BY m, n ORDER BY k) AS r FROM c) "
    "WHERE r = 1": None,
    "SELECT k, n, m FROM (SELECT c.*, row_number() OVER (PARTITION BY m, n ORDER BY k) AS r FROM c) "
    "WHERE r = 1": {"m", "n"},
    "SELECT k FROM (SELECT c.k, row_number() OVER (ORDER BY k) AS r FROM c) WHERE r = 1": set(),
    f"SELECT x, y FROM {NUMBERED} WHERE rn = 2": None,
    "SELECT x, y FROM (SELECT x, y, rank() OVER (PARTITION BY x ORDER BY y) AS rn FROM a) WHERE rn = 1": None,
    "SELECT x, y FROM (SELECT x, y, row_number() OVER (PARTITION BY x + 1 ORDER BY y) AS rn FROM a) "
    "WHERE rn = 1": None,
    # What a key determines need not be grouped by.
    f"SELECT t1.id, t1.x, sum(t2.v) AS s {JOINED} GROUP BY t1.id, t1.x": {"id"},
    f"SELECT t1.x, t1.id, t1.y + 1 AS z {JOINED} GROUP BY t1.id, t1.x, t1.y + 1": {"id"},
    f"SELECT t1.id, t2.v, count(*) AS n {JOINED} GROUP BY t1.id, t2.v": {"id", "v"},
    f"SELECT t1.id, t1.x, count(*) AS n {JOINED.replace('JOIN', 'LEFT JOIN')} GROUP BY t1.id, t1.x": {"id"},
    f"SELECT t2.id, t2.v, count(*) AS n {JOINED.replace('JOIN', 'RIGHT JOIN')} GROUP BY t2.id, t2.v": {"id"},
    # Of a FULL JOIN, the keys of both sides, if one of them is never NULL.
    "SELECT t1.id, t2.id AS i, t1.x FROM a AS t1 FULL JOIN b AS t2 ON t2.aid = t1.id": {"id", "i"},
    f"SELECT q.x, g.v, n FROM {SUMMED} FULL JOIN {SUMMED_TOO} ON g.v = q.x": None,
    f"SELECT q.x, g.v, n FROM {SUMMED} FULL JOIN (SELECT * FROM {SUMMED_TOO} WHERE v > 0) AS g "
    "ON g.v = q.x": {"x", "v"},
    "SELECT coalesce(t1.id, t2.id) AS i FROM a AS t1 FULL JOIN b AS t2 ON t2.id = t1.id": {"i"},
    "SELECT CASE WHEN t2.id IS NOT NULL THEN t2.id ELSE t1.id END AS i, t1.x "
    "FROM a AS t1 FULL JOIN b AS t2 ON t2.id = t1.id": {"i"},
    "SELECT coalesce(t1.id, t2.id) AS i FROM a AS t1 FULL JOIN b AS t2 ON t2.id = t1.id AND t1.x > 1": None,
    "SELECT coalesce(t1.id, t2.aid) AS i FROM a AS t1 FULL JOIN b AS t2 ON t2.aid = t1.id": None,
    f"SELECT coalesce(x, v) AS k, n FROM {SUMMED} FULL JOIN {SUMMED_TOO} ON g.v = q.x": None,
    f"SELECT ifnull(v, x) AS k FROM (SELECT * FROM {SUMMED} WHERE x IS NOT NULL) AS q "
    f"FULL JOIN {SUMMED_TOO} ON g.v = q.x": {"k"},
    f"SELECT t1.id, t1.x, count(*) AS n {JOINED.replace('JOIN', 'FULL JOIN')} GROUP BY t1.id, t1.x": {
        "id",
        "x",
    },
    "SELECT g.x, g.n, count(*) AS m FROM (SELECT x, count(*) AS n FROM a GROUP BY x) AS g "
    "JOIN b ON b.v = g.n GROUP BY g.x, g.n": {"x"},
    # Two sets are distinguished by NULL in a column that is not in both.
    "SELECT id, x FROM a GROUP BY ROLLUP (id, x)": None,
    "SELECT x, id, sum(z) AS s FROM a GROUP BY x, ROLLUP (id)": {"x", "id"},
    "SELECT x, y, grouping(x) AS p, grouping(y) AS q FROM a GROUP BY ROLLUP (x, y)": {"x", "y", "p", "q"},
    "SELECT x, y, grouping(x) AS p, sum(z) AS s FROM a GROUP BY ROLLUP (x, y)": None,
    "SELECT x, y, grouping_id(x, y) AS p FROM a GROUP BY CUBE (x, y)": {"x", "y", "p"},
    "SELECT x, y, grouping_id(x, y) AS p FROM a GROUP BY GROUPING SETS ((x, y), (y, x))": None,
    "SELECT x, y, count(*) AS n FROM a WHERE x > 0 AND y IS NOT NULL GROUP BY CUBE (x, y)": {"x", "y"},
    "SELECT x, y, count(*) AS n FROM a WHERE x > 0 GROUP BY CUBE (x, y)": None,
    # Rows have another number each, and parts another constant.
    f"SELECT y, x, rn FROM {NUMBERED}": {"x", "rn"},
    f"SELECT x, rn FROM {NUMBERED.replace('row_number', 'rank')}": None,
    "SELECT i, s FROM (SELECT id AS i, 'a' AS s FROM a UNION ALL SELECT id, 'b' FROM b) AS q": {"i", "s"},
    "SELECT i, s FROM (SELECT id AS i, 'a' AS s FROM a UNION ALL SELECT id, 'a' FROM b) AS q": None,
    "SELECT i, s FROM (SELECT id AS i, 'a' AS s FROM a UNION ALL SELECT k, 'b' FROM c) AS q": None,
    # No row of a table is in two parts, if one has what the other has not.
    **{
        f"SELECT i, s FROM (SELECT id AS i, x AS s FROM a WHERE {one} UNION ALL "
        f"SELECT id, y FROM a WHERE {other}) AS q": {"i"} if differs else None
        for one, other, differs in (
            ("x > 1", "NOT x > 1", True),
            ("x > 1", "x <= 1", True),
            ("NOT (x <> 1)", "x <> 1", True),
            ("x IS NULL", "x IS NOT NULL", True),
            ("y < 2 AND x = 1", "z > 0 AND NOT (x = 1)", True),
            ("(x = 1) = true", "(x = 1) <> true", True),
            ("(x = 1) = false", "x = 1", True),
            ("x > 1", "x > 2", False),
            ("x > 1", "y <= 1", False),
            ("x > 1", "coalesce(x <= 1, true)", False),
            ("x > (SELECT max(y) FROM a)", "x <= (SELECT min(y) FROM a)", False),
        )
    },
    "SELECT i, s FROM (SELECT id AS i, x AS s FROM a WHERE x > 1 UNION ALL "
    "SELECT id, v FROM b WHERE v <= 1) AS q": None,
    "SELECT s FROM (SELECT x AS s FROM a WHERE x > 1 UNION ALL SELECT y FROM a WHERE x <= 1) AS q": None,
    "SELECT i, s FROM (SELECT id AS i, x AS s FROM a WHERE x > 1 UNION ALL "
    "SELECT x, id FROM a WHERE x <= 1) AS q": None,
    # Through joins, windows and groups, with what each part needs to be unique.
    "SELECT i, j FROM (SELECT t1.id AS i, t2.id AS j FROM a AS t1 JOIN b AS t2 ON t2.aid = t1.id "
    "WHERE t1.x > 0 UNION ALL SELECT t1.id, row_number() OVER (ORDER BY t1.id) FROM a AS t1 "
    "WHERE t1.x <= 0) AS q": {"i", "j"},
    "SELECT i, n FROM (SELECT t1.id AS i, count(*) AS n FROM a AS t1 WHERE x > 0 GROUP BY t1.id "
    "UNION ALL SELECT t1.id, t1.y FROM a AS t1 LEFT SEMI JOIN b AS t2 ON t2.aid = t1.id WHERE NOT t1.x > 0) "
    "AS q": None,
    # The condition is about the side that may be missing.
    "SELECT i, n FROM (SELECT t2.id AS i, t2.v AS n FROM b AS t2 JOIN a AS t1 ON t1.id = t2.aid AND t1.x > 0 "
    "UNION ALL SELECT t2.id, t2.w FROM b AS t2 LEFT JOIN a AS t1 ON t1.id = t2.aid AND NOT t1.x > 0) "
    "AS q": None,
    "SELECT i, j FROM (SELECT t2.id AS i, t1.id AS j FROM b AS t2 LEFT JOIN a AS t1 ON t1.id = t2.aid "
    "AND t1.x > 0 UNION ALL SELECT t2.id, t1.id FROM b AS t2 LEFT JOIN a AS t1 ON t1.id = t2.aid "
    "AND NOT t1.x > 0) AS q": None,
    "SELECT i, j FROM (SELECT t2.id AS i, t1.id AS j FROM b AS t2 LEFT JOIN a AS t1 ON t1.id = t2.aid "
    "WHERE t2.v > 0 UNION ALL SELECT t2.id, t2.v FROM b AS t2 WHERE t2.v <= 0) AS q": {"i"},
    # Of three parts, each excludes each.
    "SELECT id FROM (SELECT id FROM a WHERE x > 1 AND y > 1 UNION ALL SELECT id FROM a "
    "WHERE x > 1 AND y <= 1 UNION ALL SELECT id FROM a WHERE x <= 1) AS q": {"id"},
    "SELECT id FROM (SELECT id FROM a WHERE x > 1 UNION ALL SELECT id FROM a WHERE x <= 1 "
    "UNION ALL SELECT id FROM a WHERE y > 1) AS q": None,
}

GROUPED = "SELECT t1.x, '{}' AS s, t2.v, sum(t2.w) AS n FROM a AS t1 JOIN b AS t2 ON {} GROUP BY ALL"
DAYS = (
    "SELECT d, month(d) AS m, count(*) AS n FROM (SELECT make_date(2026, x + 1, z + 1) AS d FROM a) AS q "
    "GROUP BY d, month(d)"
)
UNIQUE = [
    # A constant, a column that another one is equal to, what a filter leaves of it.
    (GROUPED.format("k", "t2.aid = t1.id"), "x v", True),
    (GROUPED.format("k", "t2.v = t1.x"), "x", True),
    (GROUPED.format("k", "t2.v < t1.x"), "x", False),
    ("SELECT x, t, n FROM (SELECT x, CAST(y AS STRING) AS t, count(*) AS n FROM a GROUP BY 1, 2) "
     "WHERE t = '1'", "x", True),
    ("SELECT x, y, n FROM (SELECT x, y, count(*) AS n FROM a GROUP BY x, y) WHERE y >= 1", "x", False),
    # A number is equal to several texts.
    (
        "SELECT x, t, n FROM (SELECT x, CASE WHEN y > 1 THEN '01' ELSE '1' END AS t, count(*) AS n FROM a "
        "GROUP BY 1, 2) WHERE t = 1",
        "x",
        False,
    ),
    # The month of a day, though not its day from its month.
    (DAYS, "d", True),
    (DAYS, "m", False),
]  # fmt: skip


@pytest.mark.parametrize("sql", CASES)
def test_what_identifies_a_row(sql: str) -> None:
    expected = CASES[sql]
    query = analyse_query(parse(sql), SCHEMAS)
    names = {identifier: name for name, identifier in query.columns}
    found = [{names[one] for one in key} for key in unique_keys(query.node, FACTS)]
    assert min(found, key=len, default=None) == expected


@pytest.mark.parametrize(("sql", "columns", "expected"), UNIQUE)
def test_what_identifies_a_row_by_what_it_determines(sql: str, columns: str, expected: bool) -> None:
    query = analyse_query(parse(sql), SCHEMAS)
    database, names = Database(SCHEMAS), dict(query.columns)
    wanted = [names[one] for one in columns.split()]
    assert is_unique(query.node, wanted, FACTS) is expected
    shown = ", ".join(f"`{one}`" for one in columns.split())
    rows = full_sql(query, InDuckDB())
    most = 0
    for attempt in range(20):
        database.load(*draw_tables(f"determined/{attempt}"))
        found = Counter(database.rows(f"SELECT {shown} FROM ({rows}) AS q"))
        most = max(most, *found.values(), 0)
    assert (most == 1) is expected


def test_it_does_in_random_rows() -> None:
    database, met = Database(SCHEMAS), 0
    drawn = [draw(seed).sql for seed in range(extent(150, 600))]
    for place, sql in enumerate([*CASES, *drawn]):
        try:
            query = analyse_query(parse(sql), SCHEMAS)
        except CannotPlan:
            continue
        keys = unique_keys(query.node, FACTS)
        columns = [identifier for _, identifier in query.columns]
        for attempt in range(4 if keys else 0):
            database.load(*draw_tables(f"unique {place}/{attempt}"))
            rows = database.rows(full_sql(query, InDuckDB()))
            for key in keys:
                found = Counter(tuple(row[columns.index(one)] for one in sorted(key)) for row in rows)
                assert max(found.values(), default=1) == 1, (sql, sorted(key))
                met += len(rows) > 1
    assert met > extent(100, 400)
