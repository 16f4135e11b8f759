"""A reason names its line in the query and what to write instead, and the advice can be followed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from dbt_arctic.auto.advice import advise
from dbt_arctic.auto.execute_table import require_incremental
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.plan import Full, Header
from dbt_arctic.auto.upstreams import Upstream, View
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view
from dbt_arctic.planner.delta.plan import Incremental, analyse_query, plan_incremental
from dbt_arctic.planner.frontend.parse import named, parse
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.frontend.source_text import with_relations
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.refresh.config import parse_config
from tests.planner.random_tables import KEYS
from tests.planner.test_rules import SCHEMAS

PAGE = Path(__file__).parents[2] / "docs/reference/planner.md"
PLAIN = "SELECT id FROM a"
HERE = "-- here"
YESTERDAY, NOW = (Clock(f"2026-01-0{day}", f"2026-01-0{day} 00:00:00Z") for day in (1, 2))
FIRST = "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY x ORDER BY id) AS n FROM a) t WHERE n = 1"
GENERATED = "SELECT id, e FROM a LATERAL VIEW explode(array(x)) l AS e"
FIRST_OF_EACH = "SELECT a.id, l.v FROM a, LATERAL (SELECT v FROM b WHERE aid = a.id ORDER BY id LIMIT 1) l"
GREATEST = "JOIN (SELECT aid, max(v) AS v FROM b GROUP BY aid) t ON t.aid = a.id"
EVERYTHING = Facts({table: UpstreamFacts(True, KEYS[table]) for table in SCHEMAS})
NESTED = "SELECT x AS k,\n count(*) AS n FROM a GROUP BY x -- here"
for place in range(8):
    NESTED = f"SELECT n AS k, count(*) AS n FROM (\n{NESTED}\n) t{place} GROUP BY n"

CASES = [
    # Names and text.
    ("not-parsed", "SELECT id\nFROM a WHERE WHERE x > 1 -- here", PLAIN),
    ("not-parsed", "SELECT id\nFROM a WHERE x > 'one", PLAIN),
    ("not-a-query", "DELETE\nFROM a -- here", PLAIN),
    ("not-resolved", "SELECT id,\n nothing -- here\nFROM a", "SELECT a.id, a.x FROM a"),
    ("not-resolved", "SELECT p\nFROM a AS t(p, q) -- here", "SELECT p FROM a AS t(p, q, r, s, u)"),
    ("unknown-relation", "SELECT id\nFROM a JOIN\nunknown ON true -- here", PLAIN),
    ("qualified-column", "SELECT t.id,\n shop.b.v -- here\nFROM a AS t JOIN shop.b ON true",
     "SELECT t.id, u.v FROM a AS t JOIN b AS u ON u.aid = t.id"),
    ("not-replaced", "SELECT id FROM a\nWHERE d < current_date /* today */ () -- here",
     "SELECT id FROM a WHERE d < current_date()"),
    # The rows do not determine the result.
    ("random", "SELECT id,\n x +\n rand() AS r -- here\nFROM a", PLAIN),
    ("time", "SELECT id,\n current_date() AS t -- here\nFROM a", "SELECT id, DATE '2026-01-01' AS t FROM a"),
    ("time", "SELECT id,\n current_date AS t -- here\nFROM a", "SELECT id, DATE '2026-01-01' AS t FROM a"),
    ("time", "SELECT id FROM a\nWHERE y > unix_timestamp() -- here", "SELECT id FROM a WHERE y > 1"),
    ("session", "SELECT id,\n current_user AS u -- here\nFROM a", "SELECT id, 'someone' AS u FROM a"),
    ("unknown-function", "SELECT id,\n mine(x) AS u -- here\nFROM a", "SELECT id, abs(x) AS u FROM a"),
    ("approximate", "SELECT x,\n approx_count_distinct(y) AS n -- here\nFROM a GROUP BY x",
     "SELECT x, count(DISTINCT y) AS n FROM a GROUP BY x"),
    ("order-dependent", "SELECT x,\n first(y) AS n -- here\nFROM a GROUP BY x",
     "SELECT x, min(y) AS n FROM a GROUP BY x"),
    ("float-sum", "SELECT x,\n sum(z) AS s -- here\nFROM a GROUP BY x",
     "SELECT x, sum(CAST(z AS decimal(20, 4))) AS s FROM a GROUP BY x"),
    ("ties", "SELECT id,\n row_number() OVER (ORDER BY x) AS n -- here\nFROM a",
     "SELECT id, row_number() OVER (ORDER BY x, id) AS n FROM a"),
    ("ties", "SELECT id FROM a\nWHERE x = (SELECT v FROM b\nORDER BY aid\nLIMIT 1) -- here",
     "SELECT id FROM a WHERE x = (SELECT v FROM b ORDER BY aid, id LIMIT 1)"),
    # There is no rule.
    ("limit", "SELECT id\nFROM a\nORDER BY id\nLIMIT 3 -- here", FIRST),
    ("limit", "SELECT id\nFROM a\nORDER BY id\nOFFSET 3 -- here", FIRST),
    ("limit", "(SELECT id FROM a)\nUNION ALL\n(SELECT id FROM b)\nORDER BY id\nLIMIT 3 -- here", FIRST),
    ("too-large", NESTED, "SELECT x AS k, count(*) AS n FROM a GROUP BY x"),
    ("recursive", "WITH RECURSIVE r AS ( -- here\nSELECT 1 AS n UNION ALL SELECT n + 1 FROM r)\n"
     "SELECT n FROM r",
     "SELECT a.id, p.id AS over, q.id AS top FROM a LEFT JOIN a AS p ON p.id = a.x "
     "LEFT JOIN a AS q ON q.id = p.x"),
    ("not-in", "SELECT id FROM a\nWHERE NOT (x IN (SELECT v FROM b WHERE aid = a.id) AND y > 1) -- here",
     "SELECT id FROM a WHERE NOT (EXISTS (SELECT 1 FROM b WHERE aid = a.id AND v = a.x) AND y > 1)"),
    ("correlated", "SELECT id FROM a\nWHERE x = (SELECT v FROM b -- here\n"
     "WHERE aid = a.id ORDER BY v LIMIT 1)",
     f"SELECT a.id FROM a {GREATEST} AND t.v = a.x"),
    ("correlated", "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON c.k = b.v\n"
     "AND c.m = a.x) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON c.k = b.v WHERE c.m = a.x)"),
    ("correlated", "SELECT id FROM a WHERE EXISTS (\nSELECT 1 FROM b\nWHERE v = a.x -- here\n"
     "OR v IN (SELECT k FROM c))",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN (SELECT DISTINCT k FROM c) t ON t.k = b.v "
     "WHERE b.v = a.x OR t.k IS NOT NULL)"),
    ("correlated", "SELECT id FROM a\nWHERE x >\n(SELECT max(v) FROM b -- here\nWHERE aid = a.id GROUP BY w)",
     f"SELECT a.id FROM a {GREATEST} AND a.x > t.v"),
    ("correlated", "SELECT id FROM a\nWHERE EXISTS (SELECT max(v) FROM b WHERE aid = a.x) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE aid = a.x)"),
    ("unsupported", "SELECT id\nFROM a -- here\nTABLESAMPLE (10 PERCENT)",
     "SELECT id FROM a WHERE pmod(xxhash64(id), 10) = 0"),
    ("unsupported", "SELECT *\nFROM (SELECT id, x, y FROM a)\nPIVOT (any_value(y) FOR x IN (1, 2)) -- here",
     "SELECT id, sum(CASE WHEN x = 1 THEN y END) AS one, sum(CASE WHEN x = 2 THEN y END) AS two "
     "FROM a GROUP BY id"),
    ("unsupported", "SELECT id\nFROM a -- here\nUNPIVOT ((v, w) FOR n IN ((x, y) AS k))",
     "SELECT id, n, v, w FROM a LATERAL VIEW stack(1, 'k', x, y) l AS n, v, w"),
    ("unsupported", "SELECT id\nFROM a VERSION AS OF 3 -- here", PLAIN),
    ("unsupported", "SELECT id\nFROM a TIMESTAMP AS OF '2026-01-01' -- here", PLAIN),
    ("unsupported", "SELECT id, -- here\n x INTO q FROM a", PLAIN),
    ("unsupported", "SELECT id FROM a\n|> WHERE x > 1 -- here",
     "SELECT id FROM (SELECT * FROM a) t WHERE x > 1"),
    ("unsupported", "SELECT id, row_number() OVER (PARTITION BY x ORDER BY id) AS n\nFROM a\n"
     "QUALIFY n = 1 -- here", FIRST),
    ("unsupported", "SELECT\nDISTINCT ON (x) -- here\nid FROM a", FIRST),
    ("unsupported", "SELECT\nTRANSFORM(id) -- here\nUSING 'shuf' AS id FROM a", PLAIN),
    ("unsupported", "SELECT id,\nexplode(array(x)) -- here\nFROM a", GENERATED),
    ("correlated", "SELECT a.id FROM a, LATERAL (\nSELECT DISTINCT v -- here\nFROM b WHERE aid > a.id) l",
     "SELECT a.id, l.v FROM a, LATERAL (SELECT v FROM b WHERE aid = a.id GROUP BY v) l"),
    ("correlated", "SELECT a.id FROM a, LATERAL (\nSELECT max(v) -- here\nFROM b WHERE aid = a.id "
     "HAVING count(*) > 1) l",
     "SELECT a.id, l.m FROM a, LATERAL (SELECT max(v) AS m FROM b WHERE aid = a.id GROUP BY aid) l"),
    ("correlated", "SELECT a.id FROM a,\nLATERAL (SELECT max(v) FROM b WHERE aid = a.id -- here\nLIMIT 1) l",
     "SELECT a.id, l.m FROM a, LATERAL (SELECT max(v) AS m FROM b WHERE aid = a.id) l"),
    ("correlated", "SELECT a.id FROM a LEFT JOIN LATERAL (\nSELECT v + a.x -- here\n"
     "FROM b WHERE aid = a.id) l",
     "SELECT a.id, l.v + a.x AS m FROM a LEFT JOIN LATERAL (SELECT v FROM b WHERE aid = a.id) l"),
    ("correlated", "SELECT a.id FROM a, LATERAL (\nSELECT v + a.x -- here\n"
     "FROM b WHERE aid = a.id GROUP BY v) l",
     "SELECT a.id, l.v + a.x AS m FROM a, LATERAL (SELECT v FROM b WHERE aid = a.id GROUP BY v) l"),
    ("correlated", "SELECT a.id FROM a, LATERAL (SELECT v FROM b WHERE aid = a.id\nORDER BY v - a.x -- here\n"
     "LIMIT 1) l", FIRST_OF_EACH),
    ("correlated", "SELECT a.id FROM a, LATERAL (\nSELECT v FROM b WHERE aid < a.id -- here\n"
     "ORDER BY id LIMIT 1) l",
     FIRST_OF_EACH),
    ("correlated", "SELECT a.id FROM a, LATERAL (SELECT v FROM b WHERE\nw = a.id -- here\n"
     "ORDER BY id LIMIT 1) l",
     FIRST_OF_EACH),
    ("correlated", "SELECT a.id FROM a, LATERAL (\nSELECT v FROM b WHERE aid = a.id LIMIT 1) l -- here",
     FIRST_OF_EACH),
    ("correlated", "SELECT a.id FROM a\n"
     "LEFT JOIN LATERAL (SELECT max(v) AS m FROM b WHERE aid = a.id) l -- here\nON l.m > 1",
     "SELECT a.id, CASE WHEN l.m > 1 THEN l.m END AS m FROM a, "
     "LATERAL (SELECT max(v) AS m FROM b WHERE aid = a.id) l"),
    ("unsupported", "SELECT a.id FROM a JOIN\nLATERAL explode(array(x)) l(e) -- here\nJOIN b ON b.id = l.e",
     GENERATED),
    ("unsupported", "SELECT id, e FROM a\nLATERAL VIEW mine(x) l AS e -- here", GENERATED),
    ("unsupported", "SELECT id FROM a\nLATERAL VIEW inline(array(struct(x))) l -- here",
     "SELECT id, e FROM a LATERAL VIEW inline(array(struct(x))) l AS e"),
    ("unsupported", "SELECT a.id FROM a\nJOIN range(10) r ON r.id = a.x -- here",
     "SELECT id, r FROM a LATERAL VIEW explode(sequence(0, 9)) l AS r"),
    ("unsupported", "SELECT col FROM\nexplode(array(1, 2)) -- here", GENERATED),
    ("unsupported", "SELECT x FROM a -- here\nUNION ALL BY NAME SELECT x FROM a",
     "SELECT x FROM a UNION ALL SELECT v FROM b"),
    ("unsupported", "SELECT id FROM a\nUNION SELECT w FROM b -- here",
     "SELECT id FROM a UNION SELECT CAST(w AS INT) FROM b"),
    ("unsupported", "SELECT z AS id FROM a INTERSECT\nSELECT id FROM b -- here",
     "SELECT CAST(z AS INT) AS id FROM a INTERSECT SELECT id FROM b"),
    ("unsupported", "SELECT array(x, 1.5) AS id FROM a INTERSECT\nSELECT array(id, w) AS id FROM b -- here",
     "SELECT CAST(x AS STRING) AS id FROM a INTERSECT SELECT w FROM b"),
    ("unsupported", "SELECT id FROM a\nWHERE x > ALL (SELECT v FROM b) -- here",
     "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE NOT a.x > v)"),
    ("unsupported", "SELECT id FROM a\nWHERE x = ANY (SELECT v FROM b) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.x = v)"),
    ("unsupported", "SELECT id FROM a\nWHERE (x, y) IN (SELECT v, aid FROM b) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE v = a.x AND aid = a.y)"),
    ("unsupported", "SELECT x,\nsum(\n(SELECT max(v) FROM b -- here\n"
     "WHERE aid = a.id)) AS s FROM a GROUP BY x",
     "SELECT x, sum(m) AS s FROM (SELECT x, (SELECT max(v) FROM b WHERE aid = a.id) AS m FROM a) t "
     "GROUP BY x"),
    ("unsupported", "SELECT id,\n sum(x) OVER (w ORDER BY id) AS s -- here\nFROM a\n"
     "WINDOW w AS (PARTITION BY y)",
     "SELECT id, sum(x) OVER (PARTITION BY y ORDER BY id) AS s FROM a"),
    ("not-resolved", "SELECT id,\n sum(x) OVER w AS s -- here\nFROM a\nWINDOW W AS (PARTITION BY y)",
     "SELECT id, sum(x) OVER w AS s FROM a WINDOW w AS (PARTITION BY y)"),
    ("unsupported", "SELECT id,\n sum(x) OVER w AS s\nFROM a\n"
     "WINDOW w AS (PARTITION BY y), w AS (ORDER BY id) -- here",
     "SELECT id, sum(x) OVER w AS s FROM a WINDOW w AS (PARTITION BY y)"),
    ("unsupported", "SELECT id\nFROM a\nWINDOW w AS (PARTITION BY x)\n"
     "ORDER BY sum(y) OVER w, id -- here\nLIMIT 3",
     "SELECT id FROM a ORDER BY sum(y) OVER (PARTITION BY x), id LIMIT 3"),
    ("unsupported", "SELECT x,\n grouping(x) AS g -- here\nFROM a GROUP BY x",
     "SELECT x, 0 AS g FROM a GROUP BY x"),
    ("unsupported", "SELECT DISTINCT x FROM a\nORDER BY y -- here\nLIMIT 3",
     "SELECT DISTINCT x, y FROM a ORDER BY y, x LIMIT 3"),
    ("unsupported", "SELECT a.id FROM a JOIN b\nON b.aid = a.id\nAND b.v IN (SELECT k FROM c) -- here",
     "SELECT a.id FROM a JOIN (SELECT * FROM b WHERE v IN (SELECT k FROM c)) t ON t.aid = a.id"),
    ("unsupported", "SELECT count(*) AS n,\nwindow(CAST(w AS TIMESTAMP), '1 hour') AS t -- here\n"
     "FROM b GROUP BY 2",
     "SELECT count(*) AS n, date_trunc('hour', CAST(w AS TIMESTAMP)) AS t FROM b GROUP BY 2"),
    ("unsupported", "SELECT count(*) AS n,\n"
     "session_window(CAST(w AS TIMESTAMP), '1 hour') AS t -- here\nFROM b "
     "GROUP BY 2",
     "SELECT id, sum(begins) OVER (PARTITION BY x ORDER BY id) AS n FROM (SELECT id, x, CASE WHEN "
     "id - lag(id) "
     "OVER (PARTITION BY x ORDER BY id) > 5 THEN 1 ELSE 0 END AS begins FROM a) t"),
    ("unsupported", "SELECT a.id FROM a\nRIGHT JOIN b ON b.aid = a.id\nJOIN c USING (k) -- here",
     "SELECT a.id FROM a RIGHT JOIN b ON b.aid = a.id JOIN c ON c.k = b.v"),
    ("unsupported", "SELECT a.id FROM a, c\nRIGHT JOIN b ON v = k -- here",
     "SELECT t.id FROM (SELECT a.id, c.k FROM a, c) t RIGHT JOIN b ON v = k"),
    ("unsupported", "SELECT id FROM a WHERE EXISTS (SELECT aid AS x FROM b\nWHERE x = 1) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT aid AS x FROM b WHERE a.x = 1)"),
    ("unsupported", "SELECT a.id, count(*) AS v FROM a JOIN b ON aid = a.id GROUP BY a.id\n"
     "HAVING bit_and(v) > 1 -- here",
     "SELECT a.id, count(*) AS v FROM a JOIN b ON aid = a.id GROUP BY a.id HAVING bit_and(b.v) > 1"),
    ("unsupported", "SELECT id FROM a\nWHERE x IN ((SELECT v FROM b)) -- here",
     "SELECT id FROM a WHERE x IN (SELECT v FROM b)"),
    ("unsupported", "SELECT id FROM a\nWHERE (SELECT max(v) FROM b) IN (SELECT k FROM c) -- here",
     "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM c WHERE k = a.x)"),
    ("unsupported", "SELECT id,\n array(x, y)[0] AS e -- here\nFROM a",
     "SELECT id, element_at(array(x, y), 1) AS e, (array(x, y))[0] AS f FROM a"),
    ("unsupported", "SELECT id,\n x & y << 1 AS e -- here\nFROM a", "SELECT id, x & (y << 1) AS e FROM a"),
    ("unsupported", "SELECT id,\n x << 1 || 'a' AS e -- here\nFROM a",
     "SELECT id, (x << 1) || 'a' AS e FROM a"),
    ("unsupported", "SELECT x, y,\n grouping_id() AS g -- here\nFROM a GROUP BY x, ROLLUP (y)",
     "SELECT x, y, grouping_id(x, y) AS g FROM a GROUP BY x, ROLLUP (y)"),
    ("unsupported", "SELECT k,\n arrays_zip(n, n) AS z -- here\nFROM c",
     "SELECT k, zip_with(n, n, (x, y) -> struct(x AS a, y AS b)) AS z FROM c"),
    ("unsupported", "SELECT id, d FROM a JOIN\n(VALUES (current_timestamp())) AS t(s) ON true -- here",
     "SELECT id, s FROM a JOIN (SELECT 1 AS s UNION ALL SELECT 2) AS t ON true"),
    ("unsupported", "SELECT id,\n struct(array(x)) AS s, struct(n[0]) AS t -- here\nFROM a JOIN c ON x = k",
     "SELECT id, struct(n[0] AS f) AS t FROM a JOIN c ON x = k"),
    ("unsupported", "SELECT k,\n transform(n, one -> ONE + 1) AS t -- here\nFROM c",
     "SELECT k, transform(n, one -> one + 1) AS t FROM c"),
    ("unsupported", "SELECT id FROM b\nWHERE w COLLATE UTF8_LCASE = 'x' -- here",
     "SELECT id FROM b WHERE lower(w) = 'x'"),
    ("unsupported", "SELECT id,\n s * 2 AS t -- here\n"
     "FROM (SELECT id, d AS s FROM a UNION ALL SELECT id, v * 1.5 FROM b) u",
     "SELECT id, s * 2 AS t FROM (SELECT id, d AS s FROM a UNION ALL SELECT id, CAST(v AS decimal(10,2)) "
     "FROM b) u"),
    ("unsupported", "SELECT id,\n xxhash64(*) AS h -- here\nFROM a",
     "SELECT id, xxhash64(id, x) AS h FROM a"),
]  # fmt: skip

NOWHERE = {"setting", "no-key"}
"""A setting is in the profile, a key in the model's config."""


def causes(sql: str) -> list[Reason]:
    """Why there is no plan: in the text as it is replaced, and in the query as it is understood."""
    found = []
    for look in (
        lambda: with_relations(sql, lambda written: written, NOW),
        lambda: followed(sql),
        lambda: followed(sql, NOW, YESTERDAY),
    ):
        try:
            look()
        except CannotPlan as error:
            found.append(error.reason)
    return found


def followed(sql: str, now: Clock | None = None, last: Clock | None = None) -> Incremental:
    """The plan of a query whose relations have got their full names, as those of a model have."""
    query = analyse_query(named(parse(sql), lambda written: written), SCHEMAS, now=now, last=last)
    return plan_incremental(query, [query.columns[0][0]], EVERYTHING)


def is_followed(sql: str) -> bool:
    """By keys, or by way of a state."""
    query = analyse_query(sql, SCHEMAS, now=NOW, last=NOW)
    has_state = find_auxiliary_view(query, [query.columns[0][0]], KEYS) is not None
    return has_state or followed(sql, NOW, YESTERDAY).affected is not None


def line_in(sql: str) -> int:
    """The line that ends in the mark; the last one where there is none."""
    lines = sql.splitlines()
    return next((place for place, line in enumerate(lines, 1) if line.endswith(HERE)), len(lines))


@pytest.mark.parametrize(("code", "sql", "instead"), CASES)
def test_a_reason_has_its_line_and_what_to_write_instead(code: str, sql: str, instead: str) -> None:
    found = [one for one in causes(sql) if one.code == code]
    assert found, causes(sql)
    assert {(one.line, one.view) for one in found} == {(line_in(sql), "")}
    assert all(one.fix for one in found)
    assert is_followed(instead)


def test_each_code_of_a_query_has_a_case() -> None:
    of_query = PAGE.read_text().partition("## Names and text")[2]
    codes = set(re.findall(r"^\| `([a-z-]+)` \|", of_query, re.MULTILINE))
    assert codes - NOWHERE == {code for code, _, _ in CASES}


# Causes in views, and guards

SHOP = Name("lake", "shop", "model")
VIEW = "lake.shop.v"
CONFIG = parse_config(
    "model", {"materialized": "incremental", "incremental_strategy": "auto", "unique_key": "id"}
)


def inputs(sql: str, views: dict[str, tuple[str, str]]) -> ModelInputs:
    """Of a model over the tables, and over views: the columns of each, and its text."""

    def full(tree: exp.Query) -> exp.Query:
        return named(tree, lambda written: f"lake.shop.{written}".lower())

    tables = {
        f"lake.shop.{table}": Upstream(
            Name("lake", "shop", table), tuple(columns), KEYS[table], Consumed("id", "1"), {}, True
        )
        for table, columns in SCHEMAS.items()
    }
    made = {
        f"lake.shop.{name}": View(
            Name("lake", "shop", name), tuple((column, "int") for column in columns.split()), text, SHOP
        )
        for name, (columns, text) in views.items()
    }
    trees = {name: full(parse(view.sql)) for name, view in made.items()}
    return ModelInputs(tables, made, trees, full(parse(sql)))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT id,\n x,\n rand() AS r -- here\nFROM a", "random"),
        ("SELECT id, x, y AS r\nFROM a\nTABLESAMPLE (10 PERCENT)", "unsupported"),
        ("SELECT id, x, y AS r FROM a\nWHERE nothing > 1 -- here", "not-resolved"),
        ("SELECT id, x, y AS r FROM a\nORDER BY y\nLIMIT 3 -- here", "ties"),
        ("SELECT id, x,\n sum(z) OVER (PARTITION BY x) AS r -- here\nFROM a", "float-sum"),
    ],
)
def test_a_cause_in_a_view_names_the_view_and_the_line_in_its_text(text: str, code: str) -> None:
    made = inputs("SELECT id,\n\n\n\n r FROM v", {"v": ("id x r", text)})
    (found,) = advise(made, CONFIG)
    line = line_in(text.replace("FROM a\nTABLE", "FROM a -- here\nTABLE"))
    assert (found.reason.code, found.reason.line, found.reason.view) == (code, line, VIEW)


def test_a_cause_in_a_view_of_a_view_is_in_the_one_that_has_it() -> None:
    inner = "SELECT id,\n rand() AS r\nFROM a"
    made = inputs("SELECT id, r FROM w", {"v": ("id r", inner), "w": ("id r", "SELECT id, r FROM v")})
    (found,) = advise(made, CONFIG)
    assert (found.reason.line, found.reason.view) == (2, VIEW)
    assert "line 2 of the view lake.shop.v" in str(found.reason)


def test_a_cause_in_the_query_over_a_view_is_the_querys() -> None:
    made = inputs("SELECT id,\n\n rand() AS r FROM v", {"v": ("id", "SELECT id FROM a")})
    (found,) = advise(made, CONFIG)
    assert (found.reason.line, found.reason.view) == (3, "")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id,\nx - (\nSELECT max(v) FROM b) AS m -- here\nFROM a",
        "SELECT id,\nx - (\nSELECT max(v) -- here\nFROM b\nWHERE aid > 3) AS m FROM a",
        "WITH t AS (\nSELECT aid, sum(v) AS s FROM b GROUP BY aid\n)\n"
        "SELECT id, x - (\nSELECT max(s) -- here\nFROM t) AS m FROM a",
        "SELECT id, x - (\nSELECT count(*) - 2 -- here\nFROM b\nWHERE v > 3) AS m FROM a",
        "SELECT id FROM a WHERE EXISTS (\nSELECT 1 -- here\nFROM b\nWHERE v > 3)",
        "SELECT id, x - (\n\nSELECT max(s) -- here\nFROM totals) AS m FROM a",
        "SELECT id FROM a\nWHERE x NOT IN (\nSELECT v FROM b -- here\n)",
    ],
)
def test_a_value_that_all_rows_depend_on_is_reported_with_its_line(sql: str) -> None:
    totals = ("aid s", "SELECT aid,\n sum(v) AS s FROM b GROUP BY aid")
    (found,) = advise(inputs(sql, {"totals": totals}), CONFIG)
    assert not found.always
    assert (found.reason.code, found.reason.line, found.reason.view) == ("guard", line_in(sql), "")
    assert found.reason.fix


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM a WHERE x > (SELECT max(v) FROM b)",
        "SELECT id, CASE WHEN x > (SELECT max(v) FROM b) THEN 1 END AS m FROM a",
        # One row of sums, and exact averages.
        "SELECT 1 AS id, (SELECT count(*) FROM a) AS n, (SELECT max(v) FROM b) AS m",
        "SELECT x AS id, avg(CAST(y AS BIGINT)) AS m FROM a GROUP BY x",
    ],
)
def test_a_query_with_an_incremental_plan_has_no_advice(sql: str) -> None:
    assert advise(inputs(sql, {}), CONFIG) == []


@pytest.mark.parametrize(("value", "codes"), [("y", []), ("CAST(y AS DECIMAL(10, 2))", ["guard"])])
def test_a_sum_that_may_be_null_without_ansi_mode_is_no_part_of_a_total(value: str, codes: list[str]) -> None:
    sql = f"SELECT 1 AS id, (SELECT sum({value}) FROM a) AS n, (SELECT max(v) FROM b) AS m"
    for wraps, expected in ((False, []), (True, codes)):
        found = advise(replace(inputs(sql, {}), wrap_on_overflow=wraps), CONFIG)
        assert sorted({one.reason.code for one in found}) == expected


def test_a_refusal_of_a_strict_model_says_the_place() -> None:
    strict = replace(CONFIG, auto="strict")
    with pytest.raises(CannotPlan) as found:
        followed("SELECT id,\n rand() AS r FROM a")
    plan = Full(Header("model", found.value.reason, "", ModelInputs(), {}, {}))
    with pytest.raises(ConfigError) as error:
        require_incremental(plan, strict)
    assert "(line 2 of the compiled SQL)" in str(error.value)


@pytest.mark.parametrize("call", ["avg(f)", "sum(f)", "sum(f / 3)"])
def test_a_sum_of_floats_shows_the_cast_that_makes_it_exact(call: str) -> None:
    schemas = {"t": [("id", "int"), ("b", "bigint"), ("f", "double")]}
    facts = Facts({"t": UpstreamFacts(True, ("id",))})

    def planned(value: str) -> None:
        plan_incremental(analyse_query(f"SELECT id, {value} AS v FROM t GROUP BY id", schemas), ["id"], facts)

    with pytest.raises(CannotPlan) as found:
        planned(call)
    written = found.value.reason.fix.removeprefix("write ").split(", with ")[0]
    planned(written.replace("...", call.partition("(")[2][:-1]))
