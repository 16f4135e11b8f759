"""What a plan makes of a text says what the text says, also where it stands in other brackets or under a name
that something else has.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlglot import exp

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.limit_queries import judge_limited
from tests.planner.oracle import Database, InDuckDB, Verdict, judge
from tests.planner.random_queries import Case
from tests.planner.random_tables import SCHEMAS, TYPED

OF_NAMES = [
    "SELECT t1.id AS o1, t1.x - t1.y AS o2 FROM a AS t1 ORDER BY -o2, o1 LIMIT 3",
    "SELECT t1.id AS o1, t1.x - t1.y AS o2 FROM a AS t1 ORDER BY 2 * o2 DESC, o1 LIMIT 3",
    "SELECT t1.id AS o1, t1.x > 1 OR t1.y > 1 AS o2 FROM a AS t1 ORDER BY NOT o2, o1 LIMIT 3",
]
IN_BRACKETS = (
    "SELECT t1.id AS o1, t1.y AS o2 FROM a AS t1 WHERE t1.x >= ((SELECT t2.v FROM b AS t2 "
    "WHERE t2.v IS NOT NULL ORDER BY t2.v, t2.id LIMIT 2) {} 1)"
)
OF_FLOATS = [
    "SELECT t1.id AS o1, 0.1e0 + t1.y AS o2, 0.2e0 + o2 AS o3 FROM a AS t1",
    "SELECT t1.id AS o1, t1.y * 0.1e0 AS o2, 0.7e0 * o2 AS o3 FROM a AS t1",
    "SELECT t1.id AS o1, 0.1e0 + t1.y AS o2, o2 AS o4, 0.2e0 + o4 AS o3 FROM a AS t1",
]


def columns(sql: str) -> tuple[str, ...]:
    return tuple(name for name in ("o1", "o2", "o4", "o3") if f"AS {name}" in sql)


def verdicts(
    database: Database, sql: str, judged: Callable[[Database, Case], Verdict] = judge
) -> list[Verdict]:
    cases = [Case(seed, sql, columns(sql), ("o1",), frozenset()) for seed in range(15)]
    found = [judged(database, case) for case in cases]
    wrong = [one.why for one in found if one.outcome == "wrong"]
    assert not wrong, wrong[0]
    return found


def test_comments_say_nothing() -> None:
    sql = "SELECT coalesce(t1.x, 7) AS o1, count(*) AS o2 FROM a AS t1 GROUP BY coalesce(t1.x, 7)"
    written = (
        sql.replace("t1.x,", "t1.x /* a `b' */,", 1)
        .replace("AS o2", "AS o2 -- it's\n")
        .replace("7)", "7 --\n)")
    )
    case = Case(1, sql, columns(sql), ("o1",), frozenset(), written=written)
    assert judge(Database(), case).outcome == "incremental"


HIDDEN = [
    # An alias of what only the condition of a join sees, as a column is named: `n.k` is of the relation.
    "SELECT {t}.id AS o1, {t}.x AS o2 FROM a AS {t} LEFT {join} JOIN c AS {u} ON {t}.id = {u}.k",
    "SELECT {t}.id AS o1 FROM a AS {t} LEFT {join} JOIN (SELECT k, n FROM c) AS {u} "
    "ON {t}.id = {u}.k AND {u}.n > 0",
]


def test_a_column_that_is_called_all() -> None:
    sql = "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1"
    limited = f"SELECT * FROM ({sql}) AS q ORDER BY o2, o1 LIMIT 3"
    written = limited.replace("o2", "`all`")
    for key in ("o1", "all"):
        case = Case(3, limited, ("o1", "all"), (key,), frozenset(), written=written)
        assert judge_limited(Database(), case).outcome == "incremental"
    analyse_query("SELECT id FROM a ORDER BY ALL", SCHEMAS)


@pytest.mark.parametrize("join", ["SEMI", "ANTI"])
@pytest.mark.parametrize("sql", HIDDEN)
@pytest.mark.parametrize("alias", ["n", "X", "id"])
def test_a_relation_that_only_a_condition_sees(sql: str, alias: str, join: str) -> None:
    drawn = sql.format(t="t1", u="t2", join=join).replace("FROM c)", "FROM c AS t3)")
    written = sql.format(t="t1", u=alias, join=join)
    case = Case(1, drawn, columns(drawn), ("o1",), frozenset(), written=written)
    assert judge(Database(), case).outcome == "incremental"


def test_such_a_relation_gets_no_name_that_another_has() -> None:
    schemas: Schemas = {"k_": [("k", "int")], "u": [("k", "int")]}
    text = full_sql(
        analyse_query("SELECT k_.k FROM k_ LEFT SEMI JOIN u AS k ON k_.k = k.k", schemas), InDuckDB()
    )
    assert "= `k__`.`k`" in text


def test_a_field_is_not_taken_for_such_a_relation() -> None:
    schemas: Schemas = {"a": [("id", "int"), ("s", "struct<k:int>")], "c": [("k", "int")]}
    sql = "SELECT a.id FROM a LEFT SEMI JOIN c AS s ON a.id = s.k"
    text = full_sql(analyse_query(sql, schemas), InDuckDB())
    assert "`s`.`k`" not in text
    assert "= `s_`.`k`" in text


_TEXT = "CAST(t1.x AS STRING)"
IN_SPARKS_WORDS = [
    (
        f"SELECT t1.id AS o1, {_TEXT} LIKE ANY ('1', '2%') AS o2, "
        f"{_TEXT} NOT LIKE ALL ('1', '2') AS o3 FROM a AS t1",
        f"SELECT t1.id AS o1, ({_TEXT} LIKE '1' OR {_TEXT} LIKE '2%') AS o2, "
        f"({_TEXT} NOT LIKE '1' AND {_TEXT} NOT LIKE '2') AS o3 FROM a AS t1",
    ),
    (
        f"SELECT t1.id AS o1, NOT {_TEXT} LIKE SOME ('1') AS o2 FROM a AS t1",
        f"SELECT t1.id AS o1, NOT {_TEXT} LIKE '1' AS o2 FROM a AS t1",
    ),
    (
        "SELECT t1.id AS o1, t2.id AS o2 FROM (a AS t1 JOIN b AS t2 ON t1.id = t2.aid)",
        "SELECT t1.id AS o1, t2.id AS o2 FROM a AS t1 JOIN b AS t2 ON t1.id = t2.aid",
    ),
    (
        "SELECT t1.id AS o1, t3.k AS o2 FROM a AS t1 "
        "LEFT JOIN ((b AS t2 JOIN c AS t3 ON t2.v = t3.k)) ON t1.id = t2.aid",
        "SELECT t1.id AS o1, t3.k AS o2 FROM a AS t1 "
        "LEFT JOIN b AS t2 JOIN c AS t3 ON t2.v = t3.k ON t1.id = t2.aid",
    ),
    ("SELECT id AS o1, y AS o2 FROM (a)", "SELECT t1.id AS o1, t1.y AS o2 FROM a AS t1"),
]


@pytest.mark.parametrize(("written", "drawn"), IN_SPARKS_WORDS)
def test_what_is_said_rewrite_extensions(written: str, drawn: str) -> None:
    for seed in range(5):
        case = Case(seed, drawn, columns(drawn), ("o1",), frozenset(), written=written)
        assert judge(Database(), case).outcome == "incremental"


def test_any_is_an_aggregate_where_it_has_no_subquery() -> None:
    text = full_sql(analyse_query("SELECT x, any(y > 1) = true AS s FROM a GROUP BY x", SCHEMAS), InDuckDB())
    assert "ANY(`a`.`y` > 1)" in text
    with pytest.raises(CannotPlan, match="ANY of a subquery"):
        analyse_query("SELECT id FROM a WHERE x = ANY (SELECT v FROM b)", SCHEMAS)


@pytest.mark.parametrize(
    ("generator", "names"),
    [
        ("explode(m) e", ["key", "value"]),
        ("posexplode(m) e", ["pos", "key", "value"]),
        ("explode(n) e", ["col"]),
        ("posexplode(split(t, ',')) e", ["pos", "col"]),
    ],
)
def test_what_a_generator_makes_without_names(generator: str, names: list[str]) -> None:
    schemas: Schemas = {"a": [("m", "map<string,int>"), ("n", "array<int>"), ("t", "string")]}
    read = ", ".join(f"e.{name}" for name in names)
    text = full_sql(analyse_query(f"SELECT {read} FROM a LATERAL VIEW {generator}", schemas), InDuckDB())
    assert f"AS {', '.join(f'`{name}`' for name in names)}\n" in text


def test_a_generator_of_what_is_not_known_needs_names() -> None:
    with pytest.raises(CannotPlan, match="explode\\(\\) without column names"):
        analyse_query(
            "SELECT 1 AS one FROM a LATERAL VIEW explode(from_json(t, 'map<string,int>')) e",
            {"a": [("t", "string")]},
        )


READ: Schemas = {
    "t": [
        *(("id", "int"), ("s", "string"), ("b", "boolean"), ("c", "boolean"), ("d", "int"), ("v", "variant")),
        *(("at", "timestamp"), ("interval", "int"), ("fetch", "int")),
    ],
}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("coalesce(s, -1::STRING)", "COALESCE(`t`.`s`, CAST(-1 AS STRING))"),
        ("- 1L::STRING::INT", "CAST(CAST(-1L AS STRING) AS INT)"),
        ("- -1.5D::STRING", "-CAST(-1.5D AS STRING)"),
        ("-(1)::STRING", "-CAST((1) AS STRING)"),
        ("-d::STRING", "-CAST(`t`.`d` AS STRING)"),
        ("5 -1::INT", "5 - CAST(1 AS INT)"),
        ("concat(+s, 'x')", "CONCAT(POSITIVE(`t`.`s`), 'x')"),
        ("d + +1", "`t`.`d` + POSITIVE(1)"),
        ("(DATE '2020-01-05')::TIMESTAMP", "CAST((CAST('2020-01-05' AS DATE)) AS TIMESTAMP)"),
        ("b IS DISTINCT FROM c > d", "`t`.`b` IS DISTINCT FROM (`t`.`c` > `t`.`d`)"),
        ("b <=> (c > d)", "`t`.`b` IS NOT DISTINCT FROM (`t`.`c` > `t`.`d`)"),
        ("timediff(HOUR, at, at)", "TIMEDIFF(HOUR, `t`.`at`, `t`.`at`)"),
        ("at + INTERVAL '1 day 2 hours'", "INTERVAL '1 day 2 hours'"),
        ("at + INTERVAL +1 DAY", "`t`.`at` + INTERVAL '1' DAY"),
        ("at + INTERVAL +'1' DAY", "`t`.`at` + INTERVAL '1' DAY"),
    ],
)
def test_a_sign_and_a_cast_are_applied_in_the_order_of_spark(value: str, written: str) -> None:
    text = full_sql(analyse_query(f"SELECT id, {value} AS o FROM t", READ), InDuckDB())
    assert written in " ".join(text.split())


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT id || DATE '2020-01-05'::TIMESTAMP AS o FROM t", "DATE '2020-01-05' with :: behind it"),
        ("SELECT TIMESTAMP '2020-01-01 10:00:00'::DATE AS o FROM t", "with :: behind it"),
        ("SELECT CAST(s AS TIMESTAMP WITHOUT TIME ZONE) AS o FROM t", "TIMESTAMP WITHOUT TIME ZONE"),
        ("SELECT b <=> c IN (false) AS o FROM t", "a comparison next to another one"),
        ("SELECT b <=> c > d AS o FROM t", "a comparison next to another one"),
        ("SELECT b = NOT (c) IS NULL AS o FROM t", "a comparison next to another one"),
        ("SELECT id FROM t WHERE d = 3 -- see c:\\dir\\\n OR d = 0", "at the end of a comment"),
        ("-- see c:\\dir\\\nSELECT id FROM t", "at the end of a comment"),
        ("SELECT (v:a) AS o FROM t", "a path into a variant"),
        ("SELECT at + (INTERVAL 1 DAY -2 HOURS) AS o FROM t", "an interval, in parentheses"),
        ("SELECT id FROM t WHERE interval + 1 > d", "interval, the name of a column"),
        ("SELECT id FROM t WHERE interval - 1 > d", "interval, the name of a column"),
        ("SELECT id FROM t ORDER BY id FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ("SELECT abs(distinct) AS o FROM t", "DISTINCT of nothing"),
        ("SELECT id, (select) AS o FROM t", "SELECT of nothing"),
        ("SELECT id FROM t; SELECT 1", "several statements"),
        ("SELECT id FROM t ORDER BY ALL LIMIT 3", "ORDER BY ALL"),
        (";", "no statement"),
    ],
)
def test_what_is_read_otherwise_has_no_plan(sql: str, says: str) -> None:
    with pytest.raises(CannotPlan, match=re.escape(says)):
        analyse_query(sql, READ)


@pytest.mark.parametrize("end", [";", "; -- end", ";;", " -- c:\\dir\\", " -- a\\b\n WHERE d = 0"])
def test_what_may_stand_at_the_end(end: str) -> None:
    analyse_query(f"SELECT id, t.interval AS i FROM t{end}", READ)


@pytest.mark.parametrize("sql", OF_NAMES)
def test_what_is_ordered_by_names_of_the_select(sql: str) -> None:
    assert any(one.outcome == "incremental" for one in verdicts(Database(), sql, judge_limited))


def test_a_value_in_brackets_with_something_behind_them() -> None:
    verdicts(Database(), IN_BRACKETS.format("LIMIT"))
    # DuckDB takes both for one clause.
    text = " ".join(full_sql(analyse_query(IN_BRACKETS.format("OFFSET"), SCHEMAS), InDuckDB()).split())
    assert "LIMIT 2 ) AS `_q` OFFSET 1 )" in text


@pytest.mark.parametrize("sql", OF_FLOATS)
def test_a_name_in_a_sum_of_floats_is_one_operand(sql: str) -> None:
    assert any(one.outcome == "incremental" for one in verdicts(Database(TYPED), sql))


EVENTS: Schemas = {
    "customer": [("id", "int"), ("name", "string"), ("current_day", "date"), ("p", "boolean")],
    "events": [("eid", "int"), ("cid", "int"), ("customer", "struct<id:int,name:string>"), ("f", "boolean")],
    "pairs": [("a", "int"), ("b", "int"), ("d", "decimal(10,2)")],
    "people": [("id", "int"), ("user", "string"), ("version", "int")],
}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT customer.id FROM customer LEFT ANTI JOIN events e ON e.cid = customer.id",
        "WITH c AS (SELECT * FROM customer) SELECT c.id, c.name FROM c "
        "WHERE EXISTS (SELECT 1 FROM events e WHERE e.cid = c.id)",
        "WITH c AS (SELECT * FROM customer) "
        "SELECT name, (SELECT count(*) FROM events e WHERE e.cid = c.id) AS n FROM c",
    ],
)
def test_no_relation_is_called_as_a_column_of_another(sql: str) -> None:
    """In a subquery, ``customer.id`` is the field of the events' customer before it is a customer's id."""
    text = full_sql(analyse_query(sql, EVENTS), InDuckDB())
    assert "`customer`.`id`" not in text
    assert "`id`" in text


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("(SELECT id FROM customer ORDER BY id) LIMIT 3", "parentheses"),
        ("((SELECT id FROM customer ORDER BY id) LIMIT 3)", "parentheses"),
        (
            "WITH customer AS (SELECT id FROM x.customer WHERE id > 1) (SELECT id FROM customer) ORDER BY 1",
            "parentheses",
        ),
        (
            "SELECT id, current_day AS current_date FROM customer WHERE current_day < current_date",
            "current_date",
        ),
        ("SELECT id, current_date AS current_date FROM customer", "current_date"),
        (
            "SELECT id, current_day AS `current_date` FROM customer WHERE `current_date` > '2026-01-01'",
            "current_date",
        ),
        ("SELECT id, name AS user FROM customer WHERE name = user", "user"),
        ("SELECT id, name AS user, coalesce(user, 'x') AS shown FROM customer", "user"),
        ("SELECT eid, e.customer.* FROM events e UNION ALL SELECT id, id, name FROM customer", "columns"),
        ("SELECT a, 2 AS b, count(*) AS n FROM pairs GROUP BY a, 2 WITH ROLLUP", "constant"),
        (
            "SELECT id, s.* FROM (SELECT t.id, e.id FROM customer t JOIN customer e ON e.id = t.id) s",
            "column: id",
        ),
        ("SELECT id FROM customer WHERE p = p IN (SELECT f FROM events)", "comparison"),
        ("SELECT a, '1' || a + 1 AS c FROM pairs", "||"),
        ("SELECT a, count(*, 1) AS n FROM pairs GROUP BY a", "\\*"),
        ("SELECT 'x' AS t, count(*) AS n FROM pairs GROUP BY ROLLUP(1)", "ROLLUP"),
    ],
)
def test_what_has_no_plan(sql: str, says: str) -> None:
    with pytest.raises(CannotPlan) as told:
        analyse_query(sql, EVENTS)
    assert says.replace("\\", "") in told.value.reason.what


@pytest.mark.parametrize(
    "sql",
    [
        "(SELECT id FROM customer)",
        "((SELECT id FROM customer) ORDER BY id)",
        "SELECT id FROM customer WHERE p = (name IS NULL)",
        "WITH s AS (SELECT * FROM people), r AS (SELECT id, lower(user) AS user FROM s WHERE user > 'a') "
        "SELECT * FROM r",
        "SELECT id, cast(version AS int) AS version FROM (SELECT * FROM people) AS s WHERE version > 1",
        "SELECT a, last_value(b) IGNORE NULLS OVER (PARTITION BY b ORDER BY a) AS v FROM pairs",
        "SELECT user AS user_name, a FROM (SELECT name AS user, id AS a FROM customer) AS q WHERE user > 'x'",
        "SELECT a, '1' || (a + 1) AS c FROM pairs",
        "SELECT id, current_date() AS today FROM customer",
        "SELECT id FROM (SELECT id, current_day AS now FROM customer) AS q WHERE now > '2026-01-01'",
        "SELECT id, upper(user) AS user FROM customer LATERAL VIEW explode(array(name)) e AS user "
        "WHERE user = 'x'",
        "SELECT version AS user FROM (people) WHERE user = 'x'",
    ],
)
def test_what_has_one(sql: str) -> None:
    assert analyse_query(sql, EVENTS)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "SELECT a, 'x' AS kind, b, CAST(sum(d) / 3 AS STRING) AS third FROM pairs GROUP BY 1, 2, 3",
            "/ 3 AS",
        ),
        ("SELECT a, 'x' AS kind, round(sum(d), 2) AS r FROM pairs GROUP BY a, 2", ", 2)"),
        (
            "SELECT a, 'x' AS kind, CAST(sum(d) AS DECIMAL(12, 2)) AS r FROM pairs GROUP BY 1, 2",
            "DECIMAL(12, 2)",
        ),
    ],
)
def test_a_number_is_no_group_that_has_the_same(sql: str, says: str) -> None:
    assert says in " ".join(full_sql(analyse_query(sql, EVENTS), InDuckDB()).split())


def test_a_column_keeps_no_brackets() -> None:
    """What is compared with it would not be looked up."""
    sql = "SELECT id, version || '-x' AS version FROM people WHERE version = 5"
    assert "`people`.`version` = 5" in full_sql(analyse_query(sql, EVENTS), InDuckDB())


@pytest.mark.parametrize(
    ("value", "stored", "written"),
    [
        ("struct(n AS userId)", "struct<userId:int>", "AS STRUCT<userId: INT>)"),
        ("d * 2", "decimal(14,2)", "AS DECIMAL(14, 2))"),
        ("d", "decimal(12,2)", "AS DECIMAL(12, 2))"),
        ("n", "bigint", "AS BIGINT)"),
        ("n", "int", ""),
        ("upper(s)", "string", ""),
        ("s", "string", ""),
    ],
)
def test_a_column_of_a_view_has_the_type_that_is_stored(value: str, stored: str, written: str) -> None:
    schemas: Schemas = {
        "t": [("n", "int"), ("d", "decimal(10,2)"), ("s", "string")],
        "v": [("x", stored)],
    }
    views = {"v": parse(f"SELECT {value} AS x FROM t")}
    text = full_sql(analyse_query(parse("SELECT x FROM v"), schemas, None, views), InDuckDB())
    assert written in text
    assert ("CAST(" in text) == bool(written)


OF_TWO = "SELECT id, d AS x FROM t UNION ALL SELECT id, e AS x FROM t"


@pytest.mark.parametrize(
    ("view", "stored", "casts"),
    [
        (OF_TWO, "decimal(12,2)", ["CAST(`t`.`d` AS DECIMAL(12, 2))"]),
        (f"WITH q AS ({OF_TWO}) SELECT id, x FROM q", "decimal(12,2)", ["CAST(`t`.`d` AS DECIMAL(12, 2))"]),
        (OF_TWO.replace(" ALL", ""), "decimal(12,2)", ["CAST(`t`.`d` AS DECIMAL(12, 2))"]),
        (OF_TWO.replace("UNION ALL", "EXCEPT"), "decimal(12,2)", ["CAST(`t`.`d` AS DECIMAL(12, 2))"]),
        (
            f"{OF_TWO} UNION ALL SELECT id, NULL FROM t UNION ALL SELECT id, 0 FROM t",
            "decimal(12,2)",
            [
                "CAST(`t`.`d` AS DECIMAL(12, 2))",
                "CAST((NULL) AS DECIMAL(12, 2))",
                *("CAST(CAST(0", "AS DECIMAL(12, 2))"),
            ],
        ),
        (
            "SELECT id, n AS x FROM t UNION ALL SELECT id, n + id FROM t",
            "bigint",
            # The sum is a BIGINT, and needs no cast.
            ["CAST(`t`.`n` AS BIGINT)"],
        ),
        (OF_TWO.replace("e AS", "n AS"), "decimal(12,2)", ["CAST(`t`.`d` AS DEC", "CAST(`t_2`.`n` AS DEC"]),
    ],
)
def test_each_part_of_a_union_has_the_type_that_is_stored(view: str, stored: str, casts: list[str]) -> None:
    """Some functions cannot be applied to a column of several types, but can to a column of one type."""
    columns = [("id", "bigint"), ("n", "int"), ("d", "decimal(10,2)"), ("e", "decimal(12,2)")]
    schemas: Schemas = {"t": columns, "v": [("id", "bigint"), ("x", stored)]}
    for sql in ("SELECT id, x / 3 AS y FROM v", "SELECT x, count(*) AS n FROM v GROUP BY x"):
        text = full_sql(analyse_query(parse(sql), schemas, None, {"v": parse(view)}), InDuckDB())
        assert [one for one in casts if one not in text] == []
        assert text.count("CAST(") == len(casts)


@pytest.mark.parametrize(
    ("type_", "value", "stored"),
    [
        ("double", "a", "float"),
        ("timestamp", "a", "date"),
        ("array<double>", "a", "array<float>"),
        ("bigint", "id / a", "decimal(23,13)"),
        ("bigint", "a * 2", "double"),
    ],
)
@pytest.mark.parametrize("operator", ["UNION", "EXCEPT", "INTERSECT ALL"])
def test_values_that_more_precision_may_distinguish_are_cast_after_the_comparison(
    type_: str, value: str, stored: str, operator: str
) -> None:
    schemas: Schemas = {"t": [("id", "bigint"), ("a", type_)], "v": [("id", "bigint"), ("x", stored)]}
    views = {"v": parse(f"SELECT id, {value} AS x FROM t {operator} SELECT -id, {value} FROM t")}
    text = full_sql(analyse_query(parse("SELECT id, x FROM v"), schemas, None, views), InDuckDB())
    cast = text.index(f" AS {exp.DataType.build(stored).sql(dialect='spark')})")
    assert cast < text.index("UNION ALL" if operator == "UNION" else operator)


def test_a_comparison_inside_of_a_union_is_one_of_what_is_compared_there() -> None:
    """Of large numbers as doubles, two would be one."""
    schemas: Schemas = {"t": [("id", "bigint"), ("d", "double")], "v": [("x", "double")]}
    views = {"v": parse("SELECT id AS x FROM t UNION SELECT -id FROM t UNION ALL SELECT d * 2 FROM t")}
    with pytest.raises(CannotPlan, match="UNION"):
        analyse_query(parse("SELECT count(*) AS n FROM v"), schemas, None, views)


def test_names_of_fields_are_no_other_type_of_a_view() -> None:
    type_ = "struct<userId:int,Net:decimal(10,2)>"
    schemas: Schemas = {"t": [("id", "bigint"), ("st", type_)], "v": [("id", "bigint"), ("st", type_)]}
    sql = "SELECT id, st FROM v WHERE id < 5 UNION ALL SELECT id, st FROM t WHERE id >= 5"
    text = full_sql(analyse_query(parse(sql), schemas, None, {"v": parse("SELECT * FROM t")}), InDuckDB())
    assert "CAST" not in text


def test_a_view_may_show_an_untyped_null() -> None:
    schemas: Schemas = {"t": [("n", "int")], "v": [("n", "int"), ("nothing", "void")]}
    views = {"v": parse("SELECT n, NULL AS nothing FROM t")}
    for sql in ("SELECT n FROM v", "SELECT n, nothing FROM v"):
        assert "CAST" not in full_sql(analyse_query(parse(sql), schemas, None, views), InDuckDB())


def test_one_column_may_be_shown_by_a_view_in_two_types() -> None:
    schemas: Schemas = {"t": [("n", "int")], "v": [("a", "bigint"), ("b", "string"), ("c", "int")]}
    views = {"v": parse("SELECT n AS a, n AS b, n AS c FROM t")}
    text = full_sql(analyse_query(parse("SELECT a, b, c FROM v"), schemas, None, views), InDuckDB())
    assert "CAST(`t`.`n` AS BIGINT)" in text
    assert "CAST(`t`.`n` AS STRING)" in text
    assert text.count("CAST(") == 2


def test_a_view_may_have_a_type_that_nothing_is_cast_to() -> None:
    schemas: Schemas = {"t": [("n", "int")], "v": [("x", "array<void>")]}
    with pytest.raises(CannotPlan, match="array<void>"):
        analyse_query(
            parse("SELECT 1 AS one FROM v"), schemas, None, {"v": parse("SELECT array() AS x FROM t")}
        )
