"""Auxiliary views for what is read several times: which are chosen, and that a chain of them is the query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import duckdb
import pytest

from dbt_arctic.planner.algebra import canonical_form
from dbt_arctic.planner.algebra.operators import Aggregate, walk
from dbt_arctic.planner.auxiliary import view_selection
from dbt_arctic.planner.auxiliary.auxiliary_view import STATE, AuxiliaryView
from dbt_arctic.planner.auxiliary.view_selection import find_shared_view, possible_views, views_of
from dbt_arctic.planner.delta.plan import analyse_query
from tests.extent import extent
from tests.planner import tpch_data
from tests.planner.chained_queries import SHAPES, draw_chained
from tests.planner.chained_views import OPERATORS, judge_chain
from tests.planner.oracle import Database
from tests.planner.random_queries import Case
from tests.planner.tally import tally

CASES = extent(40, 250)
SCHEMAS = {
    "s": (("id", "bigint"), ("item", "bigint"), ("shop", "bigint"), ("day", "bigint"), ("x", "decimal(9,2)")),
    "w": (("id", "bigint"), ("item", "bigint"), ("site", "bigint"), ("day", "bigint"), ("x", "decimal(9,2)")),
    "i": (("id", "bigint"), ("brand", "string"), ("kind", "string")),
}
KEYS = {"s": ("id",), "w": ("id",), "i": ("id",)}
ITEMS = " JOIN i ON i.id = {0}.item"
SUMS = (
    "WITH x AS (SELECT i.brand, i.kind, 's' AS c, sum(s.x) AS v FROM s JOIN i ON i.id = s.item "
    "GROUP BY i.brand, i.kind UNION ALL SELECT i.brand, i.kind, 'w', sum(w.x) FROM w "
    "JOIN i ON i.id = w.item GROUP BY i.brand, i.kind), k AS (SELECT kind, avg(v) AS m FROM x GROUP BY kind) "
)
ABOVE = (
    f"{SUMS}SELECT p.brand, p.kind, p.v, q.v AS other, k.m FROM x AS p JOIN x AS q ON q.brand = p.brand "
    "AND q.kind = p.kind JOIN k ON k.kind = p.kind WHERE p.c = 's' AND q.c = 'w' AND p.v > k.m"
)
SMALL = "SELECT a.shop, a.v FROM (SELECT shop, sum(x) AS v FROM s GROUP BY shop) AS a WHERE a.v > 5"


def chosen(sql: str, key: str) -> list[AuxiliaryView]:
    return [one.view for one in views_of(analyse_query(sql, SCHEMAS), key.split(), KEYS)]


def test_a_query_over_a_chain_of_states_is_refreshed_as_the_query_is() -> None:
    judged = tally(range(CASES), "chained")
    assert not judged.wrong, "\n\n".join(judged.wrong[:3])
    assert not judged.rare(OPERATORS, 0.1 * CASES)
    assert not judged.rare(SHAPES, 1)


def test_what_others_read_comes_first() -> None:
    views = chosen(ABOVE, "brand kind")
    assert len(views) == 2
    read = [{one.source for one in walk(view.state) if hasattr(one, "source")} for view in views]
    assert read == [{"w", "i"}, {"s", "i"}]


def test_a_query_with_small_statements_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(SMALL, "shop") == []
    monkeypatch.setattr(view_selection, "WORTH_OPERATORS", 2)
    monkeypatch.setattr(view_selection, "GAIN", 0.1)
    assert chosen(SMALL, "shop") == [], "nor one that has hardly smaller ones with a view"


def test_upstreams_that_are_read_in_no_time_are_worth_none() -> None:
    query = analyse_query(ABOVE, SCHEMAS)
    rows = {"s": 10, "w": 20, "i": 1}
    read = 2 * (10 + 1) + 2 * (20 + 1)
    assert find_shared_view(query, ["brand", "kind"], KEYS, rows, read) is not None
    assert find_shared_view(query, ["brand", "kind"], KEYS, rows, read + 1) is None


def test_the_view_that_there_is_is_found_again() -> None:
    query, key = analyse_query(ABOVE, SCHEMAS), ["brand", "kind"]
    for made in possible_views(query, key, KEYS):
        stored = (made.key, tuple(made.state.output))
        again = find_shared_view(query, key, KEYS, {}, 0, stored=stored)
        assert again is not None
        assert again.state == made.state
    assert find_shared_view(query, key, KEYS, {}, 0, stored=(("nobody",), ("nobody",))) is None


@pytest.mark.parametrize("name", tpch_data.QUERIES)
def test_no_query_of_tpch_has_so_large_a_statement(name: str, data: duckdb.DuckDBPyConnection) -> None:
    query = analyse_query(tpch_data.QUERIES[name], tpch_data.schemas(data))
    assert views_of(query, tpch_data.KEYS[name], tpch_data.TABLE_KEYS) == ()


LIKE = "SELECT {0} AS k, sum({1}) AS v FROM {2} AS t1 WHERE {0} IS NOT NULL{3} GROUP BY {0}"
DIFFERENT = {
    "a column": (LIKE.format("t1.x", "t1.y", "a", ""), LIKE.format("t1.x", "t1.z", "a", "")),
    "a condition": (LIKE.format("t1.x", "t1.y", "a", ""), LIKE.format("t1.x", "t1.y", "a", " AND t1.z > 0")),
    "a table": (LIKE.format("t1.id", "t1.id", "a", ""), LIKE.format("t1.id", "t1.id", "b", "")),
}
"""Pairs of subqueries that differ in one thing."""


def _judged(name: str) -> Counter[str]:
    one, other = DIFFERENT[name]
    sql = f"SELECT q.k AS o1, q.v AS o2, r.v AS o3 FROM ({one}) AS q JOIN ({other}) AS r ON r.k = q.k"
    database = Database()
    cases = (Case(seed, sql, ("o1", "o2", "o3"), ("o1",), frozenset()) for seed in range(25))
    return Counter(judge_chain(database, case).outcome for case in cases)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_in_one_thing_is_not_the_same_view(name: str) -> None:
    assert set(_judged(name)) == {"incremental"}


def _all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_selection, "canonical_sql", lambda node: type(node).__name__)


def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_form._AsNamed, "relation", lambda self, source, state: "t")


WRONG: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "all groups alike": (_all_alike, "a condition"),
    "tables without names": (_no_names, "a table"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_purpose_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, case = WRONG[name]
    wrong(monkeypatch)
    assert _judged(case)["wrong"]


def test_a_view_takes_every_place_of_what_it_is() -> None:
    query = analyse_query(draw_chained(3).sql, Database().schemas)
    for made in possible_views(query, draw_chained(3).key, {"a": ("id",), "b": ("id",), "c": ()}):
        assert made.around is not None
        texts = {canonical_form.canonical_sql(one) for one in walk(made.around) if isinstance(one, Aggregate)}
        assert canonical_form.canonical_sql(made.state) not in texts
        assert any(getattr(one, "source", None) == STATE for one in walk(made.around))
