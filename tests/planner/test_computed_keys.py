"""Sums by keys that are computed from the groups, and aggregates with conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp

from dbt_arctic.keyed import summary_delta
from dbt_arctic.planner.auxiliary import single_rows
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    columns_in_model_table,
    find_auxiliary_view,
    with_state_sql,
)
from dbt_arctic.planner.auxiliary.null_groups import without_null_groups
from dbt_arctic.planner.delta import exact_averages
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.frontend import conditional_aggregates
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.spark.dialect import expression
from tests.extent import extent
from tests.planner.computed_keys import OPERATORS
from tests.planner.oracle import InDuckDB
from tests.planner.tally import tally

CASES = extent(60, 400)
SCHEMAS = {"t": [("id", "bigint"), ("g", "string"), ("d", "date"), ("n", "int"), ("f", "double")]}
FACTS = Facts({"t": UpstreamFacts(True, ("id",))})
COUNTED = "count(*) AS n, sum(n) AS s, count(n) AS c"


def test_sums_by_computed_keys_are_those_of_the_full_query() -> None:
    judged = tally(range(CASES), "computed keys")
    assert not judged.wrong, "\n\n".join(judged.wrong[:3])
    assert judged.incremental > 0.85 * CASES
    assert set(judged.full) <= {"a key that is not unique", "extreme", "float-sum", "guard", "too-large"}
    assert not judged.rare(OPERATORS, 0.05 * CASES)


@pytest.mark.parametrize(
    ("module", "name", "wrong", "seed"),
    [
        (summary_delta, "has_new_carried_values", lambda rows: "false AS `_arctic_moved`", 73),
        (single_rows, "_null", lambda type_: exp.Literal.number(0), 8),
        (summary_delta, "shared", lambda name, type_, rows: f"min(`{name}`) AS `{name}`", 182),
        (
            conditional_aggregates,
            "_where",
            lambda condition, value: exp.Case(ifs=[exp.If(this=exp.true(), true=value)]),
            5,
        ),
        (
            exact_averages,
            "_quotient",
            lambda inexact, total, count: expression(f"try_divide(CAST({total} AS DOUBLE), {count} + 1)"),
            242,
        ),
    ],
)
def test_mistakes_are_noticed(
    module: Any, name: str, wrong: Callable[..., Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not tally([seed], "computed keys").wrong
    monkeypatch.setattr(module, name, wrong)
    assert tally([seed], "computed keys").wrong


@pytest.mark.parametrize(
    ("columns", "groups", "carried"),
    [
        ("coalesce(g, '?') AS k, g", "g", ("g",)),
        ("md5(concat(g, CAST(d AS STRING))) AS k, d, g", "g, d", ("d", "g")),
        ("g AS k, d", "g, d", ("d",)),
        ("g AS k, upper(g) AS u, g AS again", "g", ()),
        # The groups of a key are not all selected, or the key is not a function of groups.
        ("coalesce(g, '?') AS k", "g", None),
        ("md5(concat(g, CAST(d AS STRING))) AS k, g", "g, d", None),
        ("concat(g, CAST(count(*) AS STRING)) AS k, g", "g", None),
        ("'x' AS k, g", "g", None),
    ],
)
def test_the_groups_of_a_computed_key_are_stored(
    columns: str, groups: str, carried: tuple[str, ...] | None
) -> None:
    query = analyse_query(f"SELECT {columns}, {COUNTED} FROM t GROUP BY {groups}", SCHEMAS)
    made = plan_summary_delta(query, ["k"], FACTS)
    assert (None if made is None else made.carried) == carried
    if made is not None and made.carried:
        assert len(made.group_columns) == len(groups.split(","))


def test_a_group_that_is_not_selected_becomes_a_hidden_column() -> None:
    sql = "SELECT md5(concat(g, CAST(d AS STRING))) AS k, d, sum(n) AS s FROM t GROUP BY g, d"
    made = find_auxiliary_view(analyse_query(sql, SCHEMAS), ["k"], {"t": ("id",)})
    assert made is not None
    stored = columns_in_model_table(made)
    assert stored is not None
    assert {name for name, shown in stored.items() if name == shown} == {"_rows", "_count_1", "_group_1"}


@pytest.mark.parametrize(
    ("sql", "key", "stored_by"),
    [
        # A group that is NULL has a key of its own.
        ("SELECT coalesce(g, '?') AS k, sum(n) AS s FROM t GROUP BY g HAVING sum(n) > 1", "k", ("_key_1",)),
        (
            "SELECT md5(concat(g, CAST(d AS STRING))) AS k, g, d, sum(n) AS s FROM t GROUP BY g, d "
            "ORDER BY s DESC, k LIMIT 9",
            "k",
            ("_key_1",),
        ),
        (
            "SELECT q.id, q.g, sum(t.n) AS s FROM t JOIN t AS q ON q.id = t.n GROUP BY q.id, q.g "
            "ORDER BY s, q.id LIMIT 9",
            "id",
            ("id", "g"),
        ),
        # The filter decides that the key is unique.
        ("SELECT g, d, sum(n) AS s FROM t GROUP BY g, d HAVING d = DATE '2026-01-01'", "g", ("g", "d")),
        ("SELECT g AS k, sum(n) AS s FROM t GROUP BY g HAVING sum(n) > 1", "k", ("g",)),
        (
            "SELECT * FROM (SELECT (n + 3) AS k, sum(n) AS s FROM t GROUP BY (n + 3)) AS q WHERE s > 1",
            "k",
            ("group",),
        ),
    ],
)
def test_a_state_is_stored_by_the_key_of_its_model(sql: str, key: str, stored_by: tuple[str, ...]) -> None:
    made = find_auxiliary_view(analyse_query(sql, SCHEMAS), [key], {"t": ("id",)})
    assert made is not None
    assert made.key == stored_by


@pytest.mark.parametrize(
    ("sql", "dropped"),
    [
        ("SELECT t.id, q.s FROM t JOIN ({}) AS q ON q.n = t.id", True),
        ("SELECT t.id, q.s FROM t LEFT JOIN ({}) AS q ON q.n = t.id", True),
        ("SELECT q.s, count(*) AS c FROM ({}) AS q WHERE q.n > 1 GROUP BY q.s", True),
        (
            "SELECT s, count(*) AS c FROM (SELECT n AS m, s FROM ({}) AS r) WHERE m IS NOT NULL GROUP BY s",
            True,
        ),
        ("SELECT t.id, q.s FROM t FULL JOIN ({}) AS q ON q.n = t.id", False),
        ("SELECT t.id, q.s FROM ({}) AS q LEFT JOIN t ON q.n = t.id", False),
        ("SELECT t.id, q.s FROM t JOIN ({}) AS q ON q.n <=> t.id", False),
        ("SELECT q.s, count(*) AS c FROM ({}) AS q GROUP BY q.s", False),
        ("SELECT q.s, count(*) AS c FROM ({}) AS q WHERE q.n > 1 OR q.s > 1 GROUP BY q.s", False),
    ],
)
def test_a_state_has_no_groups_that_the_query_drops(sql: str, dropped: bool) -> None:
    groups = "SELECT n, sum(id) AS s FROM t GROUP BY n"
    node = analyse_query(sql.format(groups), SCHEMAS).node
    made = without_null_groups(node, {"t": ("id",)})
    assert (made != node) == dropped
    # A group by a key is never NULL.
    by_key = analyse_query(
        sql.format(groups.replace("n,", "id AS n,").replace("BY n", "BY id")), SCHEMAS
    ).node
    assert without_null_groups(by_key, {"t": ("id",)}) == by_key


@pytest.mark.parametrize(
    ("call", "is_replaced"),
    [
        ("avg(id)", True),
        ("1 + avg(id * 2) FILTER (WHERE n > 1)", True),
        ("avg(CASE WHEN n > 1 THEN id END)", True),
        ("avg(n)", True),
        ("avg(CAST(n AS SMALLINT))", False),
        ("avg(f)", False),
        ("avg(CAST(id AS DECIMAL(20, 0)))", False),
        ("avg(DISTINCT id)", False),
    ],
)
def test_averages_of_integers_are_checked_sums(call: str, is_replaced: bool) -> None:
    query = analyse_query(f"SELECT g, {call} AS x FROM t GROUP BY g", SCHEMAS)
    checked = with_exact_averages(query)
    assert (checked is not query) == is_replaced
    if is_replaced:
        text = full_sql(checked, InDuckDB())
        assert "AVG" not in text
        assert "SUM(ABS(" in text
        assert ">= 9007199254740992 " in text
        assert " THEN RAISE_ERROR" in text


ORDERS = "(SELECT count(*) AS n, max(d) AS d FROM t WHERE n > 1) AS a"


@pytest.mark.parametrize(
    ("sql", "is_one"),
    [
        (f"SELECT 0 AS k, a.n, a.d, b.s FROM {ORDERS} CROSS JOIN (SELECT sum(n) AS s FROM t) AS b", True),
        ("SELECT 0 AS k, (SELECT count(*) FROM t) AS n, (SELECT sum(id) + 1 FROM t) AS s", True),
        (f"SELECT 0 AS k, a.n, (SELECT avg(n * 2) FROM t) AS s FROM {ORDERS}", True),
        # Several rows, an aggregate of another kind, a value of an unknown type, and a float.
        (f"SELECT t.id AS k, a.n, b.s FROM {ORDERS} CROSS JOIN (SELECT sum(n) AS s FROM t) AS b, t", False),
        (f"SELECT 0 AS k, a.n, b.s FROM {ORDERS} CROSS JOIN (SELECT median(n) AS s FROM t) AS b", False),
        (f"SELECT 0 AS k, a.n, b.s FROM {ORDERS} JOIN (SELECT max(n) AS s FROM t) AS b ON a.n > b.s", False),
        (f"SELECT 0 AS k, a.n, b.s FROM {ORDERS}, (SELECT sum(n) AS s FROM t HAVING sum(n) > 1) AS b", False),
        (f"SELECT 0 AS k, a.n, b.s FROM {ORDERS} CROSS JOIN (SELECT max(upper(g)) AS s FROM t) AS b", False),
        (f"SELECT 0 AS k, a.n, b.s FROM {ORDERS} CROSS JOIN (SELECT sum(f) AS s FROM t) AS b", False),
        ("SELECT 0 AS k, t.id, (SELECT count(*) FROM t) AS n, (SELECT sum(id) FROM t) AS s FROM t", False),
    ],
)
def test_aggregates_of_one_row_have_one_state(sql: str, is_one: bool) -> None:
    made = find_auxiliary_view(analyse_query(sql, SCHEMAS), ["k"], {"t": ("id",)})
    assert (made is not None) == is_one
    if made is None:
        return
    names = {"t": "t"}
    stored = columns_in_model_table(made)
    assert stored is not None
    text = with_state_sql(made, names, stored, dict.fromkeys(made.state.output, "bigint"))
    sums = plan_summary_delta(analyse_query(text, SCHEMAS), ["k"], FACTS)
    assert sums is not None
    assert sums.whole


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ("sum(n) FILTER (WHERE n > 1)", "sum(CASE WHEN n > 1 THEN n END)"),
        ("count(*) FILTER (WHERE n > 1)", "count(CASE WHEN n > 1 THEN 1 END)"),
        ("count(DISTINCT n) FILTER (WHERE n > 1)", "count(DISTINCT CASE WHEN n > 1 THEN n END)"),
        ("count_if(n > 1)", "count(CASE WHEN n > 1 THEN 1 END)"),
        ("bool_or(n > 1)", "max(n > 1)"),
        ("bool_and(n > 1)", "min(n > 1)"),
        ("every(n > 1) FILTER (WHERE n > 0)", "min(CASE WHEN n > 0 THEN n > 1 END)"),
        # NULL counts for these, or they have no plain form.
        ("first(n) FILTER (WHERE n > 1)", "first(n) FILTER (WHERE n > 1)"),
        ("count(n, id) FILTER (WHERE n > 1)", "count(n, id) FILTER (WHERE n > 1)"),
        ("count_if(DISTINCT n > 1)", "count_if(DISTINCT n > 1)"),
    ],
)
def test_an_aggregate_with_a_condition_is_read_as_a_plain_one(call: str, plain: str) -> None:
    one, other = (
        analyse_query(f"SELECT g, {text} AS x FROM t GROUP BY g", SCHEMAS) for text in (call, plain)
    )
    assert _calls(one) == _calls(other)


def _calls(query: Any) -> list[str]:
    return [call.sql(dialect="spark") for _, call in query.node.child.aggregates]
