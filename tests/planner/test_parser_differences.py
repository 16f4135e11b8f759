"""What sqlglot reads in another way than Spark is said in a way that both read alike, or there is no plan.

That both do is tested on Spark, in ``tests/spark/keyed/test_functions.py``.
"""

from __future__ import annotations

import pytest

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import InDuckDB

SCHEMAS: Schemas = {
    "a": [
        ("id", "int"),
        ("x", "int"),
        ("y", "int"),
        ("at", "timestamp"),
        ("day", "date"),
        ("l", "array<int>"),
    ],
    "b": [("id", "int"), ("aid", "int"), ("v", "int"), ("w", "string")],
    "e": [("id", "int"), ("items", "array<struct<price:int>>"), ("price", "int")],
}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("at - INTERVAL 1 DAY 2 HOURS", "`a`.`at` - (INTERVAL '1' DAY + INTERVAL '2' HOURS)"),
        ("at - INTERVAL 1 DAY + INTERVAL 2 HOURS", "`a`.`at` - INTERVAL '1' DAY + INTERVAL '2' HOURS"),
        (
            "2 * INTERVAL 1 DAY 2 HOURS 3 MINUTES",
            "2 * (INTERVAL '1' DAY + INTERVAL '2' HOURS + INTERVAL '3' MINUTES)",
        ),
        (
            "struct(x, a.Y, x + 1, 5 AS Five)",
            "NAMED_STRUCT('x', `a`.`x`, 'Y', `a`.`y`, 'col3', `a`.`x` + 1, 'Five', 5)",
        ),
        (
            "struct(struct(x AS Inside), 1)",
            "NAMED_STRUCT('col1', NAMED_STRUCT('Inside', `a`.`x`), 'col2', 1)",
        ),
        ("to_json((x, a.Y))", "TO_JSON(NAMED_STRUCT('x', `a`.`x`, 'Y', `a`.`y`))"),
        ("transform(l, v -> (v, 1))", "TRANSFORM(`a`.`l`, `_p0_0` -> NAMED_STRUCT('v', _p0_0, 'col2', 1))"),
        ("struct((x), (a.y))", "NAMED_STRUCT('x', `a`.`x`, 'y', `a`.`y`)"),
        ("CASE WHEN x > 1 THEN (x, y) END", "THEN NAMED_STRUCT('x', `a`.`x`, 'y', `a`.`y`) END"),
        ("((x, y), 1)", "NAMED_STRUCT('col1', NAMED_STRUCT('x', `a`.`x`, 'y', `a`.`y`), 'col2', 1)"),
        ("(x, y).y", "NAMED_STRUCT('x', `a`.`x`, 'y', `a`.`y`).`y`"),
        ("transform(l, day -> dateadd(day, 1, at))", "`_p0_0` -> DATEADD(day, 1, `a`.`at`)"),
        ("transform(l, v -> struct(v))", "TRANSFORM(`a`.`l`, `_p0_0` -> NAMED_STRUCT('v', _p0_0))"),
        ("CAST(NULL AS STRUCT<Foo: INT>)", "CAST(NULL AS STRUCT<`Foo`: INT>)"),
        ("(x | y) << 2", "SHIFTLEFT((`a`.`x` | `a`.`y`), 2)"),
    ],
)
def test_equivalent_spellings_have_one_plan(sql: str, said: str) -> None:
    text = full_sql(analyse_query(f"SELECT id, {sql} AS c FROM a", SCHEMAS), InDuckDB())
    assert said in " ".join(text.split())


@pytest.mark.parametrize(
    ("having", "said"),
    [
        ("count_if(x > 0) > 0", "COUNT(CASE WHEN `a`.`x` > 0 THEN 1 END)"),
        ("sum(x) FILTER (WHERE x > 0) > 0", "SUM(CASE WHEN `a`.`x` > 0 THEN `a`.`x` END)"),
        ("max(x) > 0", "MAX(`a`.`x`)"),
    ],
)
def test_a_column_in_an_aggregate_of_having_is_that_of_from(having: str, said: str) -> None:
    sql = f"SELECT -x AS x, count(*) AS n FROM a GROUP BY -x HAVING {having}"
    assert said in full_sql(analyse_query(sql, SCHEMAS), InDuckDB())


def test_a_column_may_be_called_like_a_function() -> None:
    schemas: Schemas = {"a": [("id", "int"), ("version", "int")]}
    text = full_sql(analyse_query("SELECT id, struct(version, a.id) AS c FROM a", schemas), InDuckDB())
    assert "NAMED_STRUCT('version', `a`.`version`, 'id', `a`.`id`)" in text


def test_a_tuple_that_is_grouped_by_is_the_one_that_is_selected() -> None:
    sql = "SELECT (x, y) AS k, count(*) AS n FROM a GROUP BY (x, y)"
    assert "NAMED_STRUCT" in full_sql(analyse_query(sql, SCHEMAS), InDuckDB())
    assert analyse_query("SELECT x, y, count(*) AS n FROM a GROUP BY GROUPING SETS ((x, y), (x))", SCHEMAS)


def test_a_parameter_has_a_name_of_its_own() -> None:
    sql = "SELECT id, filter(items, i -> i.price > price AND exists(l, i -> i > id)) AS f FROM e AS i"
    text = full_sql(analyse_query(sql.replace("l,", "array(1),"), SCHEMAS), InDuckDB())
    assert "`_p1_0` -> `_p1_0`.`price` > `i`.`price`" in text
    assert "`_p0_0` -> `_p0_0` > `i`.`id`" in text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id FROM a FULL JOIN b USING (id) LEFT JOIN e USING (id)",
        "SELECT a.id FROM a RIGHT JOIN b USING (id) JOIN e USING (id)",
        "SELECT x FROM a NATURAL FULL JOIN b NATURAL JOIN e",
        "FROM a |> WHERE x > 1 |> SELECT id",
        "SELECT id, sum(x) AS x FROM a GROUP BY id |> WHERE x > 100",
        "SELECT id FROM (SELECT id FROM a |> LIMIT 10 |> WHERE id > 3) AS q",
        "SELECT id FROM a WHERE EXISTS (SELECT v + 1 AS y FROM b WHERE y > 3)",
        "SELECT id FROM a WHERE x IN (SELECT v AS y FROM b WHERE y > 3 UNION SELECT 1)",
        "SELECT id FROM a WHERE NOT EXISTS (SELECT aid AS y FROM b WHERE y = 5 AND aid = a.id)",
        "SELECT -a.x AS x, count(*) AS n FROM a JOIN b ON v = y GROUP BY -a.x HAVING count_if(x > 0) > 0",
        "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM (SELECT v + 1 AS y FROM b WHERE y > 3) q)",
        "SELECT id FROM a WHERE EXISTS (WITH q AS (SELECT v + 1 AS y FROM b WHERE y > 3) SELECT 1 FROM q)",
        "SELECT id FROM a WHERE x NOT IN ((SELECT v FROM b WHERE id = 5))",
        "SELECT id, x << 1 || 'a' AS c FROM a",
        "SELECT id, struct(current_date) AS c FROM a",
        "SELECT id FROM a CROSS JOIN (VALUES (current_date())) AS p(d) WHERE day >= d",
        "SELECT id FROM a CROSS JOIN (VALUES (current_date)) AS p(d) WHERE day >= d",
        "SELECT id FROM a CROSS JOIN (VALUES (DATE 'today')) AS p(d) WHERE day >= d",
        "SELECT id FROM a CROSS JOIN (VALUES (rand())) AS p(d)",
        "SELECT id FROM a CROSS JOIN (VALUES (unix_timestamp())) AS p(d)",
        "SELECT id, x | y << 2 AS c FROM a",
        "SELECT id, x ^ y >> 2 AS c FROM a",
        "SELECT id, array(1, 2)[0] AS c FROM a",
        "SELECT id, my.upper(w) AS c FROM b",
        "SELECT id, w COLLATE UTF8_LCASE AS c FROM b",
        "SELECT id, collate(w, 'UTF8_LCASE') AS c FROM b",
        "SELECT from_json(w, 'a STRING COLLATE UTF8_LCASE').a AS c FROM b GROUP BY 1",
        "SELECT from_csv(w, 'a STRING collate UTF8_LCASE').a AS c FROM b GROUP BY 1",
        "SELECT try_variant_get(parse_json(w), '$.a', 'STRING COLLATE UTF8_LCASE') AS c FROM b GROUP BY 1",
        "SELECT from_json(w, concat('a STRING COL', 'LATE UTF8_LCASE')).a AS c FROM b GROUP BY 1",
        "SELECT id, filter(l, v -> V > 1) AS c FROM a",
        "SELECT id, struct(max(x).y) AS c FROM a GROUP BY id",
        "SELECT id, arrays_zip(l, l) AS c FROM a",
        "SELECT id, y, grouping_id() AS g FROM a GROUP BY ROLLUP (id), y",
        "SELECT id, y, grouping_id() AS g FROM a GROUP BY ROLLUP (id), CUBE (y)",
    ],
)
def test_what_is_refused(sql: str) -> None:
    with pytest.raises(CannotPlan) as refused:
        analyse_query(sql, SCHEMAS)
    assert refused.value.reason.code in ("unsupported", "unknown-function")
    assert refused.value.reason.fix


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id FROM a LEFT JOIN b USING (id) FULL JOIN e USING (id)",
        "SELECT id FROM a WHERE EXISTS (SELECT v AS v FROM b WHERE v > 3)",
        "SELECT id FROM a WHERE EXISTS (SELECT v + 1 AS v FROM b WHERE b.v > 3)",
        "SELECT id FROM (SELECT id, x + 1 AS z FROM a WHERE x > 1) AS q WHERE z > 1",
        "SELECT x AS x, sum(x) AS s FROM a GROUP BY x HAVING count_if(x > 0) > 0",
        "SELECT y AS k, sum(x) AS x FROM a GROUP BY y HAVING sum(x) > 0",
        "SELECT id FROM a WHERE day = (SELECT max(day) AS day FROM a WHERE day < DATE '2024-01-01')",
        "SELECT id FROM a WHERE id IN (SELECT CAST(id AS BIGINT) AS id FROM b WHERE id > 0)",
        "SELECT id FROM a WHERE x IN (SELECT v FROM b)",
        "SELECT id FROM b WHERE w NOT IN (SELECT upper(w) AS w FROM b WHERE w LIKE 'a%')",
        "SELECT x, sum(y) AS y FROM a GROUP BY x HAVING sum(y) FILTER (WHERE id > 1) > 1",
        "WITH q AS (SELECT x + 1 AS z FROM a WHERE x > 1) SELECT z FROM q WHERE z > 1",
        "SELECT id FROM a JOIN (VALUES (1, 'x', NULL, -2, DATE '2024-01-01')) AS p(k, l, m, n, o) ON x = k",
        "SELECT id, y, grouping_id() AS g FROM a GROUP BY ROLLUP (id, y)",
        "SELECT id, y, grouping_id() AS g FROM a GROUP BY id, y WITH CUBE",
        "SELECT id, y, grouping_id() AS g FROM a GROUP BY id, y GROUPING SETS ((id), (y))",
        "SELECT id, y, grouping_id(id, y) AS g FROM a GROUP BY ROLLUP (id), y",
        "SELECT from_json(w, 'a STRING', map('mode', 'FAILFAST')).a AS c FROM b GROUP BY 1",
        "SELECT from_json(w, schema_of_json('{\"a\": 1}')).a AS c FROM b GROUP BY 1",
        "SELECT variant_get(parse_json(w), '$.a', 'STRING') AS c FROM b GROUP BY 1",
    ],
)
def test_what_is_fine(sql: str) -> None:
    assert analyse_query(sql, SCHEMAS)


EVENTS: Schemas = {
    "a": [("id", "int"), ("k", "string"), ("props", "map<string,string>")],
    "b": [("id", "int"), ("k", "bigint"), ("a", "struct<id:int>")],
    "c": [("id", "int"), ("k", "date"), ("items", "array<struct<attrs:map<string,string>>>")],
}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("props.userId AS u FROM a", "`a_`.`props`.`userId`"),
        ("A.Props.userId AS u FROM a", "`a_`.`props`.`userId`"),
        ("ITEMS[0].attrs.userId AS u FROM c", "`c`.`items`[0].`attrs`.`userId`"),
        ("transform(items, e -> e.attrs.userId) AS u FROM c", "`_p0_0`.`attrs`.`userId`"),
        ("k FROM a JOIN b USING (k)", "`a_`.`k`"),
        ("k FROM a LEFT JOIN b USING (k) LEFT JOIN c USING (k)", "`a_`.`k`"),
        ("k FROM a RIGHT JOIN b USING (k)", "`b`.`k`"),
        ("k FROM a JOIN b USING (k) RIGHT JOIN c USING (k)", "`c`.`k`"),
        ("k FROM a JOIN b USING (k) FULL JOIN c USING (k)", "COALESCE(`a_`.`k`, `c`.`k`)"),
        ("coalesce(a.k, 'x') AS k FROM a JOIN b USING (k)", "COALESCE(`a_`.`k`, 'x')"),
    ],
)
def test_columns_and_fields_are_those_that_spark_takes(sql: str, said: str) -> None:
    selected = full_sql(analyse_query(f"SELECT {sql}", EVENTS), InDuckDB())
    assert said in " ".join(selected.split())


def test_a_struct_inside_hides_a_relation_outside() -> None:
    sql = "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM {} WHERE k = 5 AND {}.id = a.id)"
    with pytest.raises(CannotPlan) as refused:
        analyse_query(sql.format("b", "b"), EVENTS)
    assert refused.value.reason.code == "not-resolved"
    assert analyse_query(sql.format("c", "c").replace("k = 5 AND ", ""), EVENTS)
