"""How large statements are that find affected keys: operators, where every table has changed.

Each shape has a rule that keeps its statement small, or auxiliary views. The first number is what there was
without.
"""

from __future__ import annotations

import pytest

from dbt_arctic.planner.algebra.operators import walk
from dbt_arctic.planner.auxiliary.view_selection import views_of
from dbt_arctic.planner.delta import plan
from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts

SCHEMAS = {
    "t": [
        ("id", "bigint"),
        ("g", "string"),
        ("v", "bigint"),
        ("at", "timestamp"),
        ("d", "date"),
        ("other_id", "bigint"),
    ],
    "o": [("id", "bigint"), ("name", "string"), ("v", "bigint"), ("at", "timestamp")],
    "u": [("tid", "bigint"), ("field", "string"), ("at", "timestamp"), ("v", "string"), ("uid", "bigint")],
}
KEYS = {"t": ("id",), "o": ("id",), "u": ("tid", "field", "at")}

YEARS = (
    "WITH y AS (SELECT t.id, g, year(t.d) AS yr, sum(t.v) AS s, 's' AS c FROM t JOIN o ON o.id = t.other_id "
    "GROUP BY t.id, g, year(t.d) UNION ALL SELECT o.id, name, year(o.at), sum(o.v), 'w' "
    "FROM o JOIN t ON t.other_id = o.id GROUP BY o.id, name, year(o.at)) "
)
COMPARED = "{0}.c = '{1}' AND {0}.yr = {2} AND {0}.id = s1.id"
EACH = " AND ".join(
    COMPARED.format(f"{channel}{place}", channel, 2000 + place) for channel in "sw" for place in (1, 2)
)

LINKED = (
    "WITH c AS (SELECT t.other_id AS k, o.name AS n, sum(t.v) AS s FROM t JOIN o ON o.id = t.other_id "
    "GROUP BY t.other_id, o.name) SELECT s0.k, s0.s + s5.s AS s FROM c s0, c s1, c s2, c s3, c s4, c s5 "
    "WHERE s0.k = s1.k AND s1.k = s2.k AND s2.k = s3.k AND s3.k = s4.k AND s4.k = s5.k AND s0.n = 'a'"
)
COUNTS = " CROSS JOIN ".join(
    f"(SELECT count(*) AS n FROM t JOIN o ON o.id = t.other_id WHERE t.v = {place}) x{place}"
    for place in range(8)
)
IN_SETS = (
    "SELECT g, name, field, sum(t.v) AS s FROM t JOIN o ON o.id = t.other_id JOIN u ON u.tid = t.id "
    "GROUP BY {} (g, name, field)"
)

SHAPES = {
    "parts that a constant excludes": (
        f"{YEARS}SELECT s1.id, s1.s, w1.s AS w FROM y AS s1, y AS s2, y AS w1, y AS w2 WHERE {EACH}",
        "id",
        186,
        94,
    ),
    "equalities are transitive": (LINKED, "k", 262, 114),
    "relations of one row, a constant key": (f"SELECT 1 AS one, x0.n FROM {COUNTS}", "one", 1890, 162),
    "relations of one row, a value as key": (f"SELECT x0.n, x1.n AS m FROM {COUNTS}", "n", 1178, 170),
    "ROLLUP": (IN_SETS.format("ROLLUP"), "g name field", 119, 41),
    "CUBE": (IN_SETS.format("CUBE"), "g name field", 236, 41),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_statement_stays_small(shape: str) -> None:
    sql, key, _, most = SHAPES[shape]
    facts = Facts({table: UpstreamFacts(True, KEYS[table]) for table in SCHEMAS})
    plan = plan_incremental(analyse_query(sql, SCHEMAS), key.split(), facts)
    assert plan.affected is not None
    assert sum(1 for _ in walk(plan.affected)) <= most


COLUMNS = [("id", "bigint"), ("item", "bigint"), ("shop", "bigint"), ("yr", "int"), ("wk", "int")]
SALES = {
    "sales": [*COLUMNS, ("n", "decimal(12,2)")],
    "web": [*COLUMNS, ("n", "decimal(12,2)")],
    "item": [("id", "bigint"), ("kind", "string"), ("brand", "string")],
}
OF_BOOKS = " UNION ALL ".join(
    f"SELECT {one}.yr, item.brand, {one}.n FROM {one} JOIN item ON item.id = {one}.item "
    "WHERE item.kind = 'books'"
    for one in ("sales", "web")
)
BRANDS = (
    "SELECT i.kind, i.brand, s.shop, s.yr, s.wk, sum(s.n) AS n, "
    "avg(sum(s.n)) OVER (PARTITION BY i.kind, i.brand, s.shop, s.yr) AS mean, "
    "rank() OVER (PARTITION BY i.kind, i.brand, s.shop ORDER BY s.yr, s.wk) AS place "
    "FROM sales AS s JOIN item AS i ON i.id = s.item GROUP BY i.kind, i.brand, s.shop, s.yr, s.wk"
)
BESIDE = "{0}.kind = v.kind AND {0}.brand = v.brand AND {0}.shop = v.shop AND {0}.place = v.place {1} 1"
WEEKS = "SELECT shop, yr, wk, sum(n) AS n FROM {} GROUP BY shop, yr, wk"
QUARTERS = " AND ".join(
    f"{one}.wk = {week} AND {one}.yr = 2000" for one, week in zip("abcdef", (1, 2, 3) * 2, strict=True)
)
SHOPS = "a.shop = b.shop AND b.shop = c.shop AND a.shop = d.shop AND d.shop = e.shop AND e.shop = f.shop"

OVER_VIEWS = {
    "channels united, this year beside last year": (
        f"WITH d AS (SELECT yr, brand, sum(n) AS n FROM ({OF_BOOKS}) AS x GROUP BY yr, brand) "
        "SELECT c.brand, c.yr, p.n AS before, c.n FROM d AS c JOIN d AS p ON p.brand = c.brand "
        "AND p.yr = c.yr - 1 WHERE c.n < p.n",
        "brand yr",
        634,
        [51],
    ),
    "windows over sums, beside their neighbours": (
        f"WITH v AS ({BRANDS}) SELECT v.*, p.n AS before, q.n AS after FROM v "
        f"JOIN v AS p ON {BESIDE.format('p', '-')} JOIN v AS q ON {BESIDE.format('q', '+')} "
        "WHERE v.yr = 2000",
        "kind brand shop yr wk",
        420,
        [96],
    ),
    "two channels, each three times": (
        f"WITH s AS ({WEEKS.format('sales')}), w AS ({WEEKS.format('web')}) "
        "SELECT a.shop, a.yr, b.n, c.n AS m, e.n AS o, f.n AS p "
        f"FROM s AS a, s AS b, s AS c, w AS d, w AS e, w AS f WHERE {QUARTERS} AND {SHOPS} "
        "AND e.n * a.n > b.n * d.n AND f.n * b.n > c.n * e.n",
        "shop yr",
        221,
        [189, 150],
    ),
}


@pytest.mark.parametrize("shape", OVER_VIEWS)
def test_statements_over_auxiliary_views_are_smaller(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sql, key, before, after = OVER_VIEWS[shape]
    query, keys = analyse_query(sql, SALES), dict.fromkeys(SALES, ("id",))
    views = views_of(query, key.split(), keys)
    monkeypatch.setattr(plan, "LARGEST", 10_000)
    facts = Facts({table: UpstreamFacts(True, one) for table, one in keys.items()})
    without = plan_incremental(query, key.split(), facts)
    assert without.affected is not None
    assert sum(1 for _ in walk(without.affected)) == before
    assert [one.size[0] for one in views] == after
