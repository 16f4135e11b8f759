"""Aggregates of the order of rows: those that no order changes are determined, and no others are."""

from __future__ import annotations

from collections import Counter

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from tests.extent import extent
from tests.planner.common_queries import draw_shaped
from tests.planner.oracle import Database
from tests.planner.random_tables import KEYS, SCHEMAS, draw_tables

FACTS = Facts({table: UpstreamFacts(True, key) for table, key in KEYS.items()})
OF_TYPES = {
    "t": [
        *(("id", "int"), ("s", "string"), ("f", "double"), ("c", "string collate utf8_lcase")),
        *(("p", "decimal(9,2)"), ("at", "timestamp"), ("x", "int"), ("g", "string")),
    ],
}
JOINED = "FROM a AS t1 LEFT JOIN b AS t2 ON t2.aid = t1.id GROUP BY t1.id, t1.x"

REFUSED = [
    "SELECT t1.x, array_join(collect_list(t1.y), ',') AS s FROM a AS t1 GROUP BY t1.x",
    "SELECT t1.x, max_by(t1.z, t1.y) AS s FROM a AS t1 GROUP BY t1.x",
    "SELECT t1.x, min_by(t1.z, struct(t1.y, t1.x)) AS s FROM a AS t1 GROUP BY t1.x",
    "SELECT t1.x, any_value(t1.y) AS s FROM a AS t1 GROUP BY t1.x",
    "SELECT t1.x, last(t1.x + t1.y) AS s FROM a AS t1 GROUP BY t1.x",
    "SELECT t1.x, t1.y > 1 AS p, first(t1.y) AS s FROM a AS t1 GROUP BY t1.x, t1.y > 1",
    "SELECT t1.x, string_agg(CAST(t1.z AS STRING), ',') WITHIN GROUP (ORDER BY t1.y) AS s "
    "FROM a AS t1 GROUP BY t1.x",
    # The group of a set has several values of a column that is not in it.
    "SELECT t1.x, t1.y, any_value(t1.y) AS s FROM a AS t1 GROUP BY GROUPING SETS ((t1.x), (t1.x, t1.y))",
    f"SELECT t1.id, t1.x, max_by(t2.v, t1.id) AS s {JOINED}",
    f"SELECT t1.id, t1.x, any_value(t2.v) AS s {JOINED}",
]
OF_ORDER = {
    "array_sort(collect_set(s))": True,
    "array_sort(collect_set(p))": True,
    "array_sort(collect_list(at))": True,
    "sort_array(collect_list(struct(at, upper(s))), false)": True,
    "array_sort(collect_list(named_struct('a', at, 'b', p)))": True,
    "size(collect_set(f))": True,
    "array_contains(collect_list(f), 1.5D)": True,
    # Two zeros are equal, and so are strings to a collation.
    "array_sort(collect_set(f))": False,
    "array_sort(collect_set(c))": False,
    "array_sort(collect_list(struct(at, f)))": False,
    "array_sort(collect_list(s), (l, r) -> length(l) - length(r))": False,
    "array_contains(collect_list(f), max(f))": False,
    "reverse(collect_list(s))": False,
    "max_by(s, id)": True,
    "max_by(s, f)": False,
    "max_by(upper(s), s)": True,
    "max_by(CAST(f AS STRING), f)": False,
    "listagg(s, ',') WITHIN GROUP (ORDER BY s)": True,
    "listagg(DISTINCT s, ',') WITHIN GROUP (ORDER BY s DESC)": True,
    "listagg(s, ',') WITHIN GROUP (ORDER BY at, id)": True,
    "listagg(s, ',') WITHIN GROUP (ORDER BY at)": False,
    "listagg(CAST(f AS STRING), ',') WITHIN GROUP (ORDER BY f)": False,
    "listagg(c, ',') WITHIN GROUP (ORDER BY c)": False,
    "listagg(s, ',')": False,
    "listagg(g, ',')": False,
    "first(g, true)": True,
    "any_value(g) IGNORE NULLS": True,
    "any_value(upper(g)) FILTER (WHERE x > 1)": True,
    "first(s)": False,
    "mode(s)": False,
}


def is_determined(
    sql: str, schemas: dict[str, list[tuple[str, str]]] = SCHEMAS, facts: Facts = FACTS
) -> bool:
    query = analyse_query(sql, schemas)
    try:
        require_determinism(query.node, query.types, facts)
    except CannotPlan as error:
        return error.reason.code != "order-dependent"
    return True


@pytest.mark.parametrize("call", OF_ORDER)
def test_what_follows_from_the_values_of_a_group(call: str) -> None:
    facts = Facts({"t": UpstreamFacts(True, ("id",))})
    assert is_determined(f"SELECT g, {call} AS o FROM t GROUP BY g", OF_TYPES, facts) is OF_ORDER[call]
    assert (
        is_determined(f"SELECT g FROM t GROUP BY g HAVING {call} IS NULL", OF_TYPES, facts) is OF_ORDER[call]
    )


def results(database: Database, sql: str, seed: str) -> list[Counter[tuple[object, ...]]]:
    """What a query gives for the same rows in two orders."""
    tables, _ = draw_tables(seed)
    found = []
    for one in (tables, {name: rows[::-1] for name, rows in tables.items()}):
        database.load(one, one)
        found.append(Counter(database.rows(sql)))
    return found


@pytest.mark.parametrize("sql", REFUSED)
def test_what_another_order_changes_is_refused(sql: str) -> None:
    database = Database()
    assert not is_determined(sql)
    compared = [results(database, sql, f"order/{attempt}") for attempt in range(60)]
    assert any(one != other for one, other in compared)


def test_no_order_changes_what_is_determined() -> None:
    database, met = Database(), 0
    for seed in range(extent(60, 400)):
        sql = draw_shaped(seed, "aggregates in any order").sql
        if is_determined(sql):
            one, other = results(database, sql, f"orders/{seed}")
            assert one == other, sql
            met += 1
    assert met > extent(50, 350)
