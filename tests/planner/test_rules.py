"""What each rule promises: which rows of which state it asks for, and when there is no incremental plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dbt_arctic.planner.algebra.operators import Scan, ScannedColumn
from dbt_arctic.planner.delta.plan import Incremental, affected_sql, analyse_query, plan_incremental, rows_sql
from dbt_arctic.planner.frontend.computed_times import may_be_time
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import unique_keys
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.planner.typing.inference import Types
from tests.planner.oracle import InDuckDB
from tests.planner.random_tables import KEYS

SCHEMAS = {
    "a": [("id", "int"), ("x", "int"), ("y", "bigint"), ("z", "double"), ("d", "decimal(10,2)")],
    "b": [("id", "int"), ("aid", "int"), ("v", "int"), ("w", "string")],
    "c": [("k", "int"), ("m", "int"), ("n", "array<double>")],
}


def planned(sql: str, key: str, changed: str = "abc", accept: frozenset[str] = frozenset()) -> Incremental:
    facts = Facts({table: UpstreamFacts(table in changed, KEYS[table]) for table in SCHEMAS})
    return plan_incremental(analyse_query(sql, SCHEMAS), key.split(), facts, accept)


def reads(sql: str, key: str, changed: str = "abc") -> list[str]:
    """The upstreams, with their states, that the affected keys are computed from."""
    plan = planned(sql, key, changed)
    return (
        []
        if plan.affected is None
        else sorted(set(re.findall("`([abc](?:@[a-z]+)?)` AS", affected_sql(plan, InDuckDB()))))
    )


def rows(sql: str, key: str) -> str:
    return " ".join(rows_sql(planned(sql, key), InDuckDB(), "affected").split())


def reason(sql: str) -> Reason:
    with pytest.raises(CannotPlan) as error:
        planned(sql, analyse_query(sql, SCHEMAS).columns[0][0])
    return error.value.reason


JOINED = "FROM a {} JOIN b ON b.aid = a.id"


@pytest.mark.parametrize(
    ("sql", "key", "changed", "states"),
    [
        # A scan: the log names the keys, and before-images are looked up for other columns only.
        ("SELECT id, x FROM a", "id", "a", ["a@keys"]),
        ("SELECT id, x FROM a", "x", "a", ["a@changed"]),
        ("SELECT k FROM c", "k", "c", ["c@changed"]),
        ("SELECT id FROM a", "id", "bc", []),
        # An inner join: what the condition makes equal need not be looked up on the other side.
        (f"SELECT a.id {JOINED.format('')}", "id", "ab", ["a@keys", "b@changed"]),
        # The other side in either state, without its old state: rows now, and rows gone.
        (f"SELECT a.x {JOINED.format('')}", "x", "ab", ["a", "a@changed", "a@minus", "b@changed"]),
        # What has not changed is read once.
        (f"SELECT a.x {JOINED.format('')}", "x", "b", ["a", "b@changed"]),
        (f"SELECT a.x, b.v {JOINED.format('')}", "x v", "b", ["a", "b@changed"]),
        # A left join: rows that meet a changed row of the null side.
        (f"SELECT a.id {JOINED.format('LEFT')}", "id", "ab", ["a@keys", "b@changed"]),
        (f"SELECT a.x {JOINED.format('LEFT')}", "x", "ab", ["a", "a@changed", "a@minus", "b@changed"]),
        # A column of the null side is NULL or not by the state: exact states.
        (f"SELECT b.v {JOINED.format('LEFT')}", "v", "b", ["a", "b", "b@changed", "b@old"]),
        (f"SELECT b.id {JOINED.format('RIGHT')}", "id", "ab", ["a@keys", "b", "b@keys", "b@minus"]),
        # A full join: either side is a null side.
        (f"SELECT a.id {JOINED.format('FULL')}", "id", "a", ["a", "a@keys", "a@old", "b"]),
        # Subqueries, whatever their polarity: outer rows that meet a changed inner row.
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE aid = a.id)", "id", "b", ["b@changed"]),
        ("SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE v = x)", "id", "b", ["a", "b@changed"]),
        ("SELECT x FROM a WHERE x IN (SELECT v FROM b)", "x", "b", ["b@changed"]),
        ("SELECT id, (SELECT max(v) FROM b WHERE aid = a.id) AS m FROM a", "id", "b", ["b@changed"]),
        # Groups: those of changed rows.
        ("SELECT x, count(*) AS n FROM a GROUP BY x", "x", "a", ["a@changed"]),
        ("SELECT x, count(*) AS n FROM a GROUP BY x HAVING count(*) > 1", "x", "a", ["a@changed"]),
        ("SELECT x, count(*) AS n FROM a GROUP BY ROLLUP (x)", "x", "a", ["a@changed"]),
        # The value of an aggregate as a key: touched groups in both states.
        ("SELECT count(*) AS n FROM a GROUP BY x", "n", "a", ["a", "a@changed", "a@old"]),
        ("SELECT DISTINCT x FROM a", "x", "a", ["a@changed"]),
        # One group: a constant key.
        ("SELECT 1 AS id, count(*) AS n FROM a", "id", "a", ["a@keys"]),
        # Windows: the partitions of changed rows; their rows, and not what a function makes of them.
        ("SELECT x, sum(y) OVER (PARTITION BY x) AS s FROM a", "x", "a", ["a@changed"]),
        ("SELECT id, sum(y) OVER (PARTITION BY x) AS s FROM a", "id", "a", ["a", "a@changed", "a@minus"]),
        ("SELECT rank() OVER (PARTITION BY x ORDER BY y) AS r FROM a", "r", "a", ["a", "a@changed", "a@old"]),
        # Unions and set operations: changed rows of each part.
        ("SELECT x FROM a UNION ALL SELECT v FROM b", "x", "ab", ["a@changed", "b@changed"]),
        ("SELECT x FROM a UNION ALL SELECT v FROM b", "x", "b", ["b@changed"]),
        ("SELECT x FROM a EXCEPT SELECT v FROM b", "x", "b", ["b@changed"]),
        ("SELECT x FROM a INTERSECT SELECT v FROM b", "x", "ab", ["a@changed", "b@changed"]),
        # LATERAL VIEW: what changed rows make.
        ("SELECT e FROM a LATERAL VIEW explode(array(x, y)) l AS e", "e", "a", ["a@changed"]),
        ("SELECT id, e FROM a LATERAL VIEW explode(array(x, y)) l AS e", "id", "a", ["a@keys"]),
        # A condition on changed rows themselves narrows them.
        ("SELECT id FROM a WHERE x > 1", "id", "a", ["a@changed"]),
    ],
)  # fmt: skip
def test_what_is_read_for_the_affected_keys(sql: str, key: str, changed: str, states: list[str]) -> None:
    assert reads(sql, key, changed) == states


def test_a_condition_is_evaluated_on_changed_rows() -> None:
    sql = affected_sql(planned("SELECT x FROM a WHERE x > 1 AND d < 5", "x"), InDuckDB())
    assert "`a`.`x` > 1" in sql
    assert "`a`.`d` < 5" in sql


@pytest.mark.parametrize(
    ("sql", "key", "below"),
    [
        # A restriction goes down to the scans that the keys come from.
        ("SELECT x, count(*) AS n FROM a GROUP BY x", "x", "`a`.`x` <=> `_q`.`key_0` GROUP BY"),
        ("SELECT id, x + 1 AS y FROM a WHERE x > 1", "id", "`a`.`id` <=> `_q`.`key_0`"),
        ("SELECT x + 1 AS y FROM a", "y", "(`a`.`x` + 1) <=> `_q`.`key_0`"),
        # Along an equality of a join to the other side.
        (f"SELECT a.id, v {JOINED.format('LEFT')}", "id", "`b_2`.`aid` <=> `_q_3`.`key_0`"),
        # Whole partitions only.
        ("SELECT x, sum(y) OVER (PARTITION BY x) AS s FROM a", "x", "`a`.`x` <=> `_q`.`key_0` )"),
        ("SELECT id, sum(y) OVER (PARTITION BY x) AS s FROM a", "id", "FROM `a` AS `a` ) AS `_q` LEFT SEMI"),
        # A total has rows of all groups.
        ("SELECT x, count(*) AS n FROM a GROUP BY ROLLUP (x)", "x", "FROM `a` AS `a` GROUP BY"),
        # Neither side of a full join.
        (f"SELECT a.id, v {JOINED.format('FULL')}", "id", "FROM `a` AS `a` FULL JOIN `b` AS `b`"),
        ("SELECT x FROM a EXCEPT SELECT v FROM b", "x", "`b`.`v` <=>"),
        ("SELECT x FROM a UNION ALL SELECT v FROM b", "x", "`b`.`v` <=>"),
        # A subquery along its link; if unknown differs from false, only along its correlation.
        ("SELECT x FROM a WHERE x IN (SELECT v FROM b)", "x", "`b`.`v` <=> `_q_2`.`key_0`"),
        ("SELECT x FROM a WHERE NOT (x IN (SELECT v FROM b) OR y > 1)", "x", "FROM `b` AS `b` ) OR"),
        (
            "SELECT x FROM a WHERE x NOT IN (SELECT v FROM b)",
            "x",
            "NOT IN ( SELECT `b`.`v` AS `_value` FROM `b` AS `b` )",
        ),
        ("SELECT x, x IN (SELECT v FROM b) AS y FROM a", "x", "FROM `b` AS `b` ) AS"),
    ],
)
def test_where_rows_are_restricted(sql: str, key: str, below: str) -> None:
    assert below in rows(sql, key)


@pytest.mark.parametrize(
    ("sql", "changed", "guards"),
    [
        ("SELECT id FROM a WHERE x > (SELECT max(v) FROM b)", "ab", 1),
        ("SELECT id FROM a WHERE x > (SELECT max(v) FROM b)", "a", 0),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b)", "b", 1),
        ("SELECT id FROM a WHERE x NOT IN (SELECT v FROM b)", "b", 1),
        ("SELECT id FROM a WHERE x IN (SELECT v FROM b)", "b", 0),
        ("SELECT id FROM a WHERE x IN (SELECT v FROM b) OR x > 1", "b", 0),
        # Unknown differs from false here, so NULLs of the subquery matter.
        ("SELECT id FROM a WHERE NOT (x IN (SELECT v FROM b) OR x > 1)", "b", 1),
        ("SELECT id, x IN (SELECT v FROM b) AS known FROM a", "b", 1),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE aid = a.x)", "b", 0),
    ],
)
def test_guards(sql: str, changed: str, guards: int) -> None:
    assert len(planned(sql, "id", changed).guards) == guards


@pytest.mark.parametrize(
    ("sql", "code", "line"),
    [
        ("SELECT id,\n rand() AS r FROM a", "random", 2),
        ("SELECT id,\n current_user() AS u FROM a", "session", 2),
        ("SELECT id FROM a\nWHERE d < current_date()", "time", 2),
        ("SELECT id,\n\n my_function(x) AS f FROM a", "unknown-function", 3),
        ("SELECT x,\n approx_count_distinct(y) AS n FROM a GROUP BY x", "approximate", 2),
        ("SELECT x,\n first(y) AS n FROM a GROUP BY x", "order-dependent", 2),
        ("SELECT x,\n collect_list(y) AS n FROM a GROUP BY x", "order-dependent", 2),
        ("SELECT x,\n sum(z) AS s FROM a GROUP BY x", "float-sum", 2),
        ("SELECT x, sum(CAST(d AS double)) AS s FROM a GROUP BY x", "float-sum", 1),
        ("SELECT x, sum(x / 2) AS s FROM a GROUP BY x", "float-sum", 1),
        ("SELECT x, sum(extract(hour FROM to_date(w)) / 7) AS s FROM a, b GROUP BY x", "float-sum", 1),
        ("SELECT x, sum(CAST(w AS TIMESTAMP)) AS s FROM a, b GROUP BY x", "float-sum", 1),
        ("SELECT x, sum(d * 1.5e0) AS s FROM a GROUP BY x", "float-sum", 1),
        ("SELECT x, avg(CAST(y AS DOUBLE)) AS s FROM a GROUP BY x", "float-sum", 1),
        ("SELECT x, stddev(x) AS s FROM a GROUP BY x", "float-sum", 1),
        ("SELECT aid, sum(w) AS s FROM b GROUP BY aid", "float-sum", 1),
        ("SELECT k, sum(e) AS s FROM c LATERAL VIEW explode(n) l AS e GROUP BY k", "float-sum", 1),
        ("SELECT x, sum(z) OVER (PARTITION BY x) AS s FROM a", "float-sum", 1),
        ("SELECT id, (SELECT sum(z) FROM a AS o WHERE o.x = b.aid) AS s FROM b", "float-sum", 1),
        ("SELECT id FROM b WHERE v > (SELECT avg(z) FROM a WHERE a.x = b.aid)", "float-sum", 1),
        ("SELECT id, row_number() OVER (PARTITION BY x ORDER BY y) AS n FROM a", "ties", 1),
        ("SELECT n, row_number() OVER (ORDER BY k, m) AS r FROM c", "ties", 1),
        ("SELECT id, first_value(d) OVER (PARTITION BY x ORDER BY y) AS n FROM a", "ties", 1),
        ("SELECT id, sum(x) OVER (ORDER BY y ROWS UNBOUNDED PRECEDING) AS n FROM a", "ties", 1),
        ("SELECT id, v FROM a JOIN (SELECT aid, lag(v) OVER (ORDER BY v) AS v FROM b) ON aid = x", "ties", 1),
        ("SELECT b.id, row_number() OVER (ORDER BY a.id) AS n FROM a JOIN b ON aid = x", "ties", 1),
        ("SELECT id, last_value(d) OVER (PARTITION BY x ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND "
         "UNBOUNDED FOLLOWING) AS n FROM a", "ties", 1),
        ("SELECT id FROM a WHERE DATE '2026-01-01' >= DATE 'today'", "time", 1),
        ("SELECT id FROM b WHERE CAST(' Yesterday UTC' AS DATE) > DATE '2026-01-01'", "time", 1),
        ("SELECT id FROM b WHERE 'now' > w", "time", 1),
        ("SELECT id FROM b WHERE CAST(concat('to', 'day') AS DATE) > DATE '2026-01-01'", "time", 1),
        ("SELECT id FROM b WHERE DATE '2026-01-01' < lower(' TO') || ('Day ')", "time", 1),
        ("SELECT id FROM b WHERE CAST(w AS DATE) IN (replace('toxday', 'x', ''))", "time", 1),
        ("SELECT id FROM b WHERE CAST(CASE WHEN v > 1 THEN w END AS TIMESTAMP) > '12' || ':30'", "time", 1),
        ("SELECT id FROM b WHERE CAST(substring('xnow', 2) AS TIMESTAMP) > CAST(w AS DATE)", "time", 1),
        ("SELECT id FROM (SELECT id, CASE WHEN x > 1 THEN 'today' ELSE 'tomorrow' END AS due FROM a) t "
         "WHERE CAST(due AS DATE) > DATE '2026-01-01'", "time", 1),
        ("SELECT id FROM (SELECT id, 'today' AS due FROM a UNION SELECT id, w FROM b) t "
         "WHERE due > DATE '2026-01-01'", "time", 1),
        ("SELECT id, CASE WHEN x > 1 THEN 'today' ELSE CURRENT_DATE END AS due FROM a", "time", 1),
        ("SELECT id FROM b WHERE CASE WHEN v > 1 THEN 'now' ELSE w END = CAST(w AS DATE)", "time", 1),
        ("SELECT id FROM a WHERE y > unix_timestamp()", "time", 1),
        ("SELECT session_window(ts, '5 minutes') AS w, count(*) AS n FROM (SELECT CAST(w AS TIMESTAMP) AS ts "
         "FROM b) GROUP BY session_window(ts, '5 minutes')", "unsupported", 1),
        ("SELECT id FROM a WHERE EXISTS (SELECT max(v) FROM b WHERE aid = a.x)", "correlated", 1),
        ("SELECT a.id FROM a, c RIGHT JOIN b ON v = k", "unsupported", 1),
        ("SELECT id FROM a UNION SELECT w FROM b", "unsupported", 1),
        ("SELECT id FROM a ORDER BY id LIMIT 3", "limit", 1),
        ("SELECT id FROM a WHERE x = (SELECT v FROM b ORDER BY aid LIMIT 1)", "ties", 1),
        ("SELECT id FROM a WHERE (x, y) IN (SELECT v, aid FROM b)", "unsupported", 1),
        ("SELECT id FROM a WHERE (SELECT max(v) FROM b) IN (SELECT k FROM c)", "unsupported", 1),
        ("SELECT id FROM a TABLESAMPLE (10 PERCENT)", "unsupported", 1),
        ("WITH t AS (SELECT id, x FROM a) SELECT id, xxhash64(*) AS h FROM t", "unsupported", 1),
        ("SELECT id, struct(*) AS s FROM (SELECT a.id, k FROM a JOIN c ON x = k) t", "unsupported", 1),
        ("SELECT x AS id, count(DISTINCT *) AS n FROM a GROUP BY x", "unsupported", 1),
        ("SELECT id FROM a WHERE x IN (SELECT v FROM b WHERE w IN (SELECT k FROM c WHERE m = a.y))",
         "correlated", 1),
        ("SELECT id FROM a WHERE x > (SELECT max(v) FROM b WHERE aid = a.id GROUP BY w)", "correlated", 1),
        ("SELECT id FROM a WHERE NOT (x IN (SELECT v FROM b WHERE aid = a.id) AND y > 1)", "not-in", 1),
    ],
)  # fmt: skip
def test_there_is_no_incremental_plan(sql: str, code: str, line: int) -> None:
    found = reason(sql)
    assert (found.code, found.line) == (code, line)
    assert found.what


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT FROM WHERE", "not-parsed"),
        ("DELETE FROM a", "not-a-query"),
        ("SELECT 1 AS one FROM unknown", "unknown-relation"),
        ("SELECT nothing FROM a", "not-resolved"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r", "recursive"),
    ],
)
def test_what_is_not_understood(sql: str, code: str) -> None:
    with pytest.raises(CannotPlan) as error:
        analyse_query(sql, SCHEMAS)
    assert error.value.reason.code == code


def test_a_view_of_whatever_columns_there_are_has_those_that_spark_gave_it() -> None:
    views = {"v": parse("SELECT * FROM c")}
    three = {**SCHEMAS, "v": [("k", "int"), ("m", "int"), ("n", "array<double>")]}
    assert [name for name, _ in analyse_query("SELECT * FROM v", three, views=views).columns] == [
        "k",
        "m",
        "n",
    ]
    two = {**SCHEMAS, "v": [("k", "int"), ("m", "int")]}
    with pytest.raises(CannotPlan) as error:
        analyse_query("SELECT * FROM v", two, views=views)
    assert error.value.reason.code == "not-resolved"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x, sum(d * 2) AS s, avg(x) AS m, avg(d) AS e, sum(y) AS t, max(z) AS u FROM a GROUP BY x",
        "SELECT x, sum(CASE WHEN z > 1 THEN d ELSE 0 END) AS s FROM a GROUP BY x",
        "SELECT aid, sum(coalesce(v, 0) + length(w)) AS s FROM b GROUP BY aid",
        "SELECT x, sum(n) AS s FROM (SELECT x, count(*) AS n FROM a GROUP BY x) t GROUP BY x",
        "SELECT x, sum(CAST(z AS decimal(20, 4))) AS s FROM a GROUP BY x",
        # The key ends the order, through a filter, a projection, and a join that keeps it.
        "SELECT id, row_number() OVER (PARTITION BY x ORDER BY y, id) AS n FROM a WHERE y > 1",
        "SELECT i, lag(y) OVER (ORDER BY y, i) AS n FROM (SELECT id AS i, y FROM a) t",
        "SELECT b.id, row_number() OVER (ORDER BY b.id) AS n FROM b LEFT JOIN a ON a.id = b.aid",
        "SELECT a.id, row_number() OVER (ORDER BY b.id, a.id) AS n FROM b JOIN a ON a.x = b.aid",
        "SELECT x, row_number() OVER (ORDER BY x) AS n FROM (SELECT x, count(*) AS c FROM a GROUP BY x) t",
        # Rows that are equal in the order have the same value.
        "SELECT id, rank() OVER (PARTITION BY x ORDER BY y) AS n, sum(y) OVER (ORDER BY x) AS s FROM a",
        # A text is a time only where it is cast to one.
        "SELECT id, CASE WHEN x > 1 THEN 'today' ELSE 'tomorrow' END AS due FROM a",
        "SELECT id FROM b WHERE w = 'now' OR w IN ('today', 'new')",
        "SELECT id FROM b WHERE w = replace('toxday', 'x', '') OR w = concat('to', 'days')",
        "SELECT id FROM b WHERE CAST(w AS DATE) > DATE '2026-01-01' - INTERVAL '1' DAY",
        "SELECT id FROM b WHERE CAST(w AS TIMESTAMP) > make_timestamp(2026, 1, 1, 1, 1, 1, 'UTC')",
        "SELECT id FROM b WHERE CAST('to' || w AS DATE) > CAST(concat('2026-01', '-01') AS DATE)",
        "SELECT id, bought FROM (SELECT id, 'today' AS bought FROM a UNION ALL SELECT v, w FROM b) t",
        "SELECT id FROM b WHERE CASE WHEN v > 1 THEN 'now' ELSE w END = w",
        # The greatest value is the same whichever row it is taken from.
        "SELECT id FROM a WHERE x = (SELECT v FROM b ORDER BY v DESC LIMIT 1)",
    ],
)
def test_what_rows_determine(sql: str) -> None:
    assert planned(sql, analyse_query(sql, SCHEMAS).columns[0][0]).affected is not None


def test_the_types_of_columns_are_only_needed_for_a_computed_constant() -> None:
    def types() -> Types:
        raise AssertionError

    query = parse("SELECT w || 'x', '2026-' || '01' AS m FROM b WHERE 'now' > lower(w)")
    assert not any(may_be_time(value, types) for value in query.walk())
    with pytest.raises(AssertionError):
        any(may_be_time(value, types) for value in parse("SELECT replace('x', 'y')").walk())


LAGGED = "SELECT k, m, lag(n) OVER (PARTITION BY k ORDER BY m) AS l FROM c"


@pytest.mark.parametrize(
    ("sql", "key", "ties"),
    [
        # The model's key says that no two rows are equal in the order, and is checked when they are written.
        (LAGGED, "k m", False),
        (f"SELECT k AS o, m + 1 AS p, l FROM ({LAGGED}) AS q", "o p", False),
        # Not by other columns, and not of rows that are not written.
        (LAGGED, "k l", True),
        (f"SELECT k, m, l FROM ({LAGGED}) AS q WHERE l > 1", "k m", True),
        (f"SELECT k, m, max(l) AS l FROM ({LAGGED}) AS q GROUP BY k, m", "k m", True),
        # What rows are ordered by is the same in rows that are equal in it, up to an end of the partition.
        ("SELECT id, min(y) OVER (ORDER BY y ROWS UNBOUNDED PRECEDING) AS m FROM a", "id", False),
        ("SELECT id, first_value(y) OVER (PARTITION BY x ORDER BY d, y) AS m FROM a", "id", False),
        ("SELECT id, lead(y) OVER (PARTITION BY x ORDER BY y) AS m FROM a", "id", True),
        ("SELECT id, min(y) OVER (ORDER BY y ROWS 1 PRECEDING) AS m FROM a", "id", True),
        ("SELECT id, sum(x) OVER (ORDER BY x ROWS UNBOUNDED PRECEDING) AS m FROM a", "id", True),
        ("SELECT id, max(y) FILTER (WHERE d > 1) OVER (ORDER BY y ROWS UNBOUNDED PRECEDING) AS m FROM a",
         "id", True),
    ],
)  # fmt: skip
def test_whether_an_order_decides(sql: str, key: str, ties: bool) -> None:
    if not ties:
        assert planned(sql, key).affected is not None
        return
    with pytest.raises(CannotPlan) as error:
        planned(sql, key)
    assert error.value.reason.code == "ties"


def test_advice_about_ties_names_the_part_of_a_union() -> None:
    window = "SELECT v, id, row_number() OVER (ORDER BY id) AS n FROM ({}) AS q"
    united = "SELECT id, x AS v FROM a UNION ALL SELECT {} FROM {}"
    assert "part 2 of the UNION ALL" in reason(window.format(united.format("k, m", "c"))).fix
    assert "another constant in each part" in reason(window.format(united.format("id, v", "b"))).fix


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT x, sum(z) AS s FROM a GROUP BY x", "float_sum"),
        ("SELECT x, stddev(z) AS s FROM a GROUP BY x", "float_sum"),
        ("SELECT id AS x, row_number() OVER (ORDER BY y) AS s FROM a", "ties"),
        ("SELECT x, first(y) AS s FROM a GROUP BY x", "order_dependent"),
        ("SELECT x, approx_count_distinct(y) AS s FROM a GROUP BY x", "approximate"),
    ],
)
def test_a_user_may_accept_a_cause(sql: str, code: str) -> None:
    assert planned(sql, "x", accept=frozenset({code})).affected is not None
    assert reason(sql).code == code.replace("_", "-")


def test_columns_that_spark_orders_otherwise_are_not_taken_for_each_other() -> None:
    found = analyse_query("SELECT id, x FROM a", SCHEMAS, ["X", "id"])
    assert found.is_named
    assert found.columns == (("id", "id"), ("X", "x"))
    one = analyse_query("SELECT id, x + 1 FROM a", SCHEMAS, ["(x + 1)", "id"])
    assert one.is_named
    assert [name for name, _ in one.columns] == ["id", "(x + 1)"]
    assert not analyse_query("SELECT id, x + 1, x + 2 FROM a", SCHEMAS, ["id", "(x + 1)", "(x + 2)"]).is_named
    with pytest.raises(CannotPlan, match="another order"):
        analyse_query("SELECT id, x + 1, x + 2 FROM a", SCHEMAS, ["(x + 1)", "id", "(x + 2)"])


def test_a_key_that_is_no_column() -> None:
    with pytest.raises(CannotPlan) as error:
        planned("SELECT id FROM a", "other")
    assert error.value.reason.code == "no-key"


def test_aggregates_of_aggregates_end_somewhere() -> None:
    sql = "SELECT x AS k, count(*) AS n FROM a GROUP BY x"
    for place in range(8):
        sql = f"SELECT n AS k, count(*) AS n FROM ({sql}) t{place} GROUP BY n"
    assert reason(sql).code == "too-large"


def test_two_names_of_one_column_are_two_groups_of_a_cube() -> None:
    sql = "SELECT p, q, count(*) AS n FROM (SELECT id AS p, id AS q FROM a) t GROUP BY CUBE (p, q)"
    assert "GROUPING SETS ((`_q`.`p__2`, `_q`.`q__2`), (`_q`.`q__2`), (`_q`.`p__2`), ())" in rows(sql, "n")


def test_a_subquery_of_a_select_list_does_not_get_into_a_group() -> None:
    inner = "SELECT id, (SELECT max(v) FROM b WHERE aid = x) AS m FROM a"
    sql = f"SELECT m, count(*) AS n FROM ({inner}) t GROUP BY m"
    assert "GROUP BY `_q`.`m` )" in rows(sql, "n")


@pytest.mark.parametrize(
    ("sql", "key", "changed", "states"),
    [
        # Keys of changed rows, and no others: the log has these rows, and the table is not read.
        ("SELECT id, x FROM a", "id", "a", ["a@plus"]),
        ("SELECT id, x FROM a WHERE y > 1", "id", "a", ["a@plus"]),
        ("SELECT a.id, a.x, b.v FROM a JOIN b ON b.id = a.x", "id", "a", ["a@plus", "b"]),
        ("SELECT a.id, b.v FROM a LEFT JOIN b ON b.id = a.x", "id", "a", ["a@plus", "b"]),
        ("SELECT id, x, count(*) AS n FROM a GROUP BY id, x", "id x", "a", ["a@plus"]),
        ("SELECT id, count(*) AS n FROM a GROUP BY id", "id", "a", ["a@plus"]),
        # Changed rows of another table name rows that did not change themselves.
        ("SELECT a.id, a.x, b.v FROM a JOIN b ON b.id = a.x", "id", "ab", ["a", "b"]),
        ("SELECT a.id, a.x, b.v FROM a JOIN b ON b.id = a.x", "id", "b", ["a", "b"]),
        # So do those of the same partition, and of the same value.
        ("SELECT id, sum(y) OVER (PARTITION BY x) AS s FROM a", "id", "a", ["a"]),
        ("SELECT x, count(*) AS n FROM a GROUP BY x", "x", "a", ["a"]),
        ("SELECT id + 1 AS id, x FROM a", "id", "a", ["a"]),
        # No key: several rows alike, of which the log has some.
        ("SELECT k, m FROM c", "k", "c", ["c"]),
        # Another look at the table, by something else than its key.
        ("SELECT a.id, t.y FROM a JOIN a AS t ON t.x = a.x WHERE a.y = 1", "id", "a", ["a", "a"]),
    ],
)  # fmt: skip
def test_rows_that_the_log_has_are_not_looked_up(sql: str, key: str, changed: str, states: list[str]) -> None:
    text = rows_sql(planned(sql, key, changed), InDuckDB(), "affected")
    assert sorted(re.findall("(?:FROM|JOIN) `([abc](?:@[a-z]+)?)` AS", text)) == states


def test_without_a_log_nothing_is_taken_from_it() -> None:
    facts = Facts({table: UpstreamFacts(table == "a", KEYS[table], logged=False) for table in SCHEMAS})
    plan = plan_incremental(analyse_query("SELECT id, x FROM a", SCHEMAS), ["id"], facts)
    assert "`a` AS" in rows_sql(plan, InDuckDB(), "affected")


@pytest.mark.parametrize(
    ("sql", "key", "changed", "logged"),
    [
        ("SELECT id, x FROM a", "id", "a", ("a", ("id",))),
        ("SELECT a.id AS n, b.v FROM a LEFT JOIN b ON b.id = a.x", "n", "a", ("a", ("id",))),
        # A condition leaves some out; another table adds some; other columns are looked up.
        ("SELECT id, x FROM a WHERE y > 1", "id", "a", None),
        ("SELECT a.id, b.v FROM a JOIN b ON b.id = a.x", "id", "ab", None),
        ("SELECT x, count(*) AS n FROM a GROUP BY x", "x", "a", None),
        ("SELECT id + 1 AS n, x FROM a", "n", "a", None),
    ],
)
def test_whether_the_affected_keys_are_those_of_a_log(
    sql: str, key: str, changed: str, logged: tuple[str, tuple[str, ...]] | None
) -> None:
    plan = planned(sql, key, changed)
    assert plan.logged == logged
    restricted = "affected" in rows_sql(plan, InDuckDB(), "affected")
    assert restricted == (logged is None), "what the log has need not be looked for among its keys"


@pytest.mark.parametrize(
    ("sql", "key", "unique"),
    [
        ("SELECT id, x FROM a", "id", True),
        ("SELECT id, x FROM a WHERE y > 1", "id x", True),
        ("SELECT x AS n, count(*) AS c FROM a GROUP BY x", "n", True),
        ("SELECT a.id, b.v FROM a JOIN b ON b.id = a.x", "id", True),
        ("SELECT a.id, b.v FROM a LEFT JOIN b ON b.id = a.x", "id", True),
        ("SELECT a.id, b.id AS bid FROM a JOIN b ON b.v = a.x", "id bid", True),
        ("SELECT id, sum(y) OVER (PARTITION BY x) AS s FROM a", "id", True),
        # Of a key only a part, or no key; a row that meets several; one that is made of another.
        ("SELECT x, y FROM a", "x", False),
        ("SELECT k, m FROM c", "k", False),
        ("SELECT x AS n, y, count(*) AS c FROM a GROUP BY x, y", "n", False),
        ("SELECT a.id, b.v FROM a JOIN b ON b.v = a.x", "id", False),
        ("SELECT a.id, b.v FROM a LEFT JOIN b ON b.aid = a.id", "id", False),
        ("SELECT a.id, b.v FROM a LEFT JOIN b ON b.id > a.x", "id", False),
        ("SELECT id, x FROM a UNION ALL SELECT id, v FROM b", "id", False),
        ("SELECT id % 7 AS id, x FROM a", "id", False),
        ("SELECT x, count(*) AS c FROM a GROUP BY ROLLUP (x)", "x", False),
    ],
)
def test_whether_no_two_rows_can_share_a_key(sql: str, key: str, unique: bool) -> None:
    assert planned(sql, key).unique is unique


@pytest.mark.parametrize(
    ("stored", "unique", "same"),
    [
        ("int", True, True),
        ("decimal(10,0)", True, False),
        ("decimal(10,2)", True, False),
        ("string", False, False),
        ("double", False, False),
    ],
)
def test_columns_that_are_compared_after_a_cast_do_not_stand_for_each_other(
    stored: str, unique: bool, same: bool
) -> None:
    """`'1'` and `'01'` are both 1, so that a row may meet two of them; 1 and 1.00 have other texts."""
    schemas = {"a": [("id", "int"), ("x", "bigint")], "b": [("code", stored), ("v", "int")]}
    facts = Facts({"a": UpstreamFacts(True, ("id",)), "b": UpstreamFacts(True, ("code",))})
    joined = "FROM a JOIN b ON b.code = a.x"
    assert (
        plan_incremental(analyse_query(f"SELECT a.id, b.v {joined}", schemas), ["id"], facts).unique is unique
    )
    grouped = analyse_query(f"SELECT b.code AS k, count(*) AS n {joined} GROUP BY b.code", schemas)
    plan = plan_incremental(grouped, ["k"], facts)
    assert ("`a`.`x` AS" in affected_sql(plan, InDuckDB())) is same
    looked_up = analyse_query(
        "SELECT x, count(*) AS n FROM a WHERE x IN (SELECT code FROM b) GROUP BY x", schemas
    )
    text = " ".join(rows_sql(plan_incremental(looked_up, ["x"], facts), InDuckDB(), "affected").split())
    assert ("`b`.`code` <=>" in text) is unique


def test_rows_of_both_states_have_no_key() -> None:
    facts = Facts({"a": UpstreamFacts(True, ("id",), has_weights=True)})
    scan = Scan("a", "a", (ScannedColumn("a_id", "id"),))
    assert unique_keys(scan, facts) == {frozenset({"a_id"})}
    assert not unique_keys(replace(scan, state="weighted"), facts)
    assert not unique_keys(replace(scan, state="changed"), facts)
