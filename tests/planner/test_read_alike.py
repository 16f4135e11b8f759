"""What a plan makes of a text says what the text says, also where it stands in other brackets or under a name
that something else has.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt_arctic.planner.parse import Schemas
from dbt_arctic.planner.plan import full_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.limited import judge_limited
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


@pytest.mark.parametrize("join", ["SEMI", "ANTI"])
@pytest.mark.parametrize("sql", HIDDEN)
@pytest.mark.parametrize("alias", ["n", "X", "id"])
def test_a_relation_that_only_a_condition_sees(sql: str, alias: str, join: str) -> None:
    drawn = sql.format(t="t1", u="t2", join=join).replace("FROM c)", "FROM c AS t3)")
    written = sql.format(t="t1", u=alias, join=join)
    case = Case(1, drawn, columns(drawn), ("o1",), frozenset(), written=written)
    assert judge(Database(), case).outcome == "incremental"


def test_a_field_is_not_taken_for_such_a_relation() -> None:
    schemas: Schemas = {"a": [("id", "int"), ("s", "struct<k:int>")], "c": [("k", "int")]}
    sql = "SELECT a.id FROM a LEFT SEMI JOIN c AS s ON a.id = s.k"
    text = full_sql(understand(sql, schemas), InDuckDB())
    assert "`s`.`k`" not in text
    assert "= `s_`.`k`" in text


@pytest.mark.parametrize("sql", OF_NAMES)
def test_what_is_ordered_by_names_of_the_select(sql: str) -> None:
    assert any(one.outcome == "incremental" for one in verdicts(Database(), sql, judge_limited))


def test_a_value_in_brackets_with_something_behind_them() -> None:
    verdicts(Database(), IN_BRACKETS.format("LIMIT"))
    # DuckDB takes both for one clause.
    text = " ".join(full_sql(understand(IN_BRACKETS.format("OFFSET"), SCHEMAS), InDuckDB()).split())
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
    text = full_sql(understand(sql, EVENTS), InDuckDB())
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
            "columns",
        ),
        ("SELECT id FROM customer WHERE p = p IN (SELECT f FROM events)", "comparison"),
        ("SELECT a, '1' || a + 1 AS c FROM pairs", "||"),
        ("SELECT a, count(*, 1) AS n FROM pairs GROUP BY a", "\\*"),
        ("SELECT 'x' AS t, count(*) AS n FROM pairs GROUP BY ROLLUP(1)", "ROLLUP"),
    ],
)
def test_what_has_no_plan(sql: str, says: str) -> None:
    with pytest.raises(CannotPlan) as told:
        understand(sql, EVENTS)
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
    ],
)
def test_what_has_one(sql: str) -> None:
    assert understand(sql, EVENTS)


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
    assert says in " ".join(full_sql(understand(sql, EVENTS), InDuckDB()).split())


def test_a_column_keeps_no_brackets() -> None:
    """What is compared with it would not be looked up."""
    sql = "SELECT id, version || '-x' AS version FROM people WHERE version = 5"
    assert "`people`.`version` = 5" in full_sql(understand(sql, EVENTS), InDuckDB())
