"""What is kept inside a query: which have it, and that a query over it is the query and is refreshed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import duckdb
import pytest

from dbt_arctic.planner.auxiliary import eager_aggregation, nested_view, reduced_view
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    AuxiliaryView,
    outer_sql,
    rows_of_state_sql,
    state_sql,
    without_spare,
)
from dbt_arctic.planner.auxiliary.nested_view import find_nested_view
from dbt_arctic.planner.delta.plan import affected_sql, analyse_query, plan_incremental
from dbt_arctic.planner.frontend.parse import named, parse
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from tests.extent import extent, first
from tests.planner import tpch_data
from tests.planner.inner_state import OPERATORS, judge_inside
from tests.planner.oracle import Database, InDuckDB, to_duckdb
from tests.planner.random_queries import Case
from tests.planner.tally import tally

CASES = extent(40, 250)
CHANGES = extent(20, 40)
TPCH = {"q13", "q15", "q17", "q20", "q22"}
SALES = {"s": (("id", "int"), ("c", "int"), ("x", "int")), "k": (("id", "int"), ("n", "int"))}
KEYS = {"s": ("id",), "k": ("id",)}
ROWS = {"s": 100, "k": 10}
ABOVE = "s.x > (SELECT avg(b.x) FROM s AS b WHERE b.c = s.c)"


def view_of(sql: str, worth: int = 50) -> AuxiliaryView | None:
    query = analyse_query(named(parse(sql), lambda written: written), SALES)
    return find_nested_view(query, KEYS, ROWS, worth)


@pytest.mark.parametrize("name", tpch_data.QUERIES)
def test_which_queries_of_tpch_have_it(name: str, data: duckdb.DuckDBPyConnection) -> None:
    query = analyse_query(tpch_data.QUERIES[name], tpch_data.schemas(data))
    tables = tpch_data.TABLE_KEYS
    rows = {table: data.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in tables}
    made = find_nested_view(query, tpch_data.TABLE_KEYS, rows, 10_000)
    assert (made is not None) == (name in TPCH)
    if made is None:
        return
    names = {table: table for table in tpch_data.TABLE_KEYS}
    text = state_sql(made, names)
    data.execute(f"CREATE OR REPLACE TEMP TABLE state AS {to_duckdb(text)}")
    over = outer_sql(made, "state", {}, names)
    assert Counter(data.execute(to_duckdb(over)).fetchall()) == Counter(
        data.execute(tpch_data.QUERIES[name]).fetchall()
    )
    kept = analyse_query(text, tpch_data.schemas(data))
    if made.size is not None:
        assert plan_incremental(kept, made.key, tpch_data.FACTS).affected is not None
        return
    sums = plan_summary_delta(kept, made.key, tpch_data.FACTS)
    assert sums is not None, "what changed is added"
    assert not sums.staged.shared_lookups, "and nothing is looked up for it"


def test_rows_that_an_unchanged_subquery_excludes_are_not_affected(data: duckdb.DuckDBPyConnection) -> None:
    """Of all pairs whose sum has changed, q20 is about the parts of one name."""
    schemas, tables = tpch_data.schemas(data), tpch_data.TABLE_KEYS
    made = find_nested_view(
        analyse_query(tpch_data.QUERIES["q20"], schemas), tables, dict.fromkeys(tables, 1), 1
    )
    assert made is not None
    names = {table: table for table in tables}
    pairs = tuple((name, "bigint") for name in made.state.output)
    over = analyse_query(outer_sql(made, "state", {}, names), {**schemas, "state": pairs})
    facts = {table: UpstreamFacts(False, tables[table], rows=1_000) for table in tables}
    for rows, is_asked in ((1_000, True), (999, False)):
        changed = UpstreamFacts(True, made.key, rows=rows)
        plan = plan_incremental(over, tpch_data.KEYS["q20"], Facts({**facts, "state": changed}))
        assert ("forest" in affected_sql(plan, InDuckDB())) == is_asked


@pytest.mark.parametrize(("kept", "is_asked"), [(100, True), (100_000, False), (None, False)])
def test_lines_of_other_parts_do_not_affect_a_small_state(
    data: duckdb.DuckDBPyConnection, kept: int | None, is_asked: bool
) -> None:
    """Of all lines that have changed, the state of q17 is about those of the parts of one brand."""
    schemas, tables = tpch_data.schemas(data), tpch_data.TABLE_KEYS
    made = find_nested_view(
        analyse_query(tpch_data.QUERIES["q17"], schemas), tables, dict.fromkeys(tables, 1), 1
    )
    assert made is not None
    state = analyse_query(state_sql(made, {table: table for table in tables}), schemas)
    facts = {table: UpstreamFacts(table == "lineitem", tables[table], changed_rows=1_000) for table in tables}
    plan = plan_incremental(state, made.key, Facts(facts, result_rows=kept))
    assert ("Brand#23" in affected_sql(plan, InDuckDB())) == is_asked


def test_a_query_over_what_is_kept_inside_it_is_refreshed_as_the_state_is() -> None:
    judged = tally(range(CASES), "kept inside")
    assert not judged.wrong, "\n\n".join(judged.wrong[:3])
    assert not judged.rare(OPERATORS, 0.3 * CASES)


BY_HAND = {
    "counts of counts": (
        "SELECT q.n AS o1, count(*) AS o2 FROM (SELECT t1.id, count(t2.v) AS n FROM a AS t1 "
        "LEFT JOIN b AS t2 ON t2.aid = t1.id AND t2.w > 0 GROUP BY t1.id) AS q GROUP BY q.n",
        "o1 o2",
    ),
    "sums of the null side": (
        "SELECT t1.id AS o1, sum(t2.v) AS o2, count(t2.w) AS o3, min(t2.w) AS o4 FROM a AS t1 "
        "LEFT JOIN b AS t2 ON t2.aid = t1.id GROUP BY t1.id",
        "o1 o2 o3 o4",
    ),
    "groups of several rows": (
        "SELECT t1.x AS o1, count(t2.v) AS o2 FROM a AS t1 LEFT JOIN b AS t2 ON t2.aid = t1.id GROUP BY t1.x",
        "o1 o2",
    ),
    "above the average of its kind": (
        "SELECT t1.id AS o1, t1.v AS o2, t2.y AS o3 FROM b AS t1 JOIN (SELECT t4.id, t4.y FROM a AS t4 "
        "WHERE t4.x > 0) AS t2 ON t1.aid = t2.id WHERE t1.v >= "
        "(SELECT avg(t3.v) FROM b AS t3 WHERE t3.aid = t2.id) AND t1.w > 0",
        "o1 o2 o3",
    ),
    "different values": (
        "SELECT t1.v AS o1, count(DISTINCT t1.aid) AS o2, count(*) AS o3, sum(t1.w) AS o4, "
        "max(t1.aid) AS o5, min(t1.id % 3) AS o6, count(t1.w) AS o7 FROM b AS t1 "
        "WHERE t1.aid IS NOT NULL AND t1.v IS NOT NULL GROUP BY t1.v",
        "o1 o2 o3 o4 o5 o6 o7",
    ),
    "alone of its kind": (
        "SELECT t1.id AS o1 FROM a AS t2 JOIN b AS t1 ON t2.id = t1.aid WHERE t2.x > 0 AND NOT EXISTS "
        "(SELECT 1 FROM b AS t3 WHERE t3.aid = t1.aid AND t3.v > 0 AND t3.id <> t1.id)",
        "o1",
    ),
    "above the average of another kind": (
        "SELECT t1.id AS o1 FROM b AS t1 JOIN a AS t2 ON t1.aid = t2.id WHERE t2.x > 0 AND t1.v >= "
        "(SELECT avg(t3.v) FROM b AS t3 WHERE t3.w = t1.w)",
        "o1",
    ),
    "chosen twice": (
        "SELECT t1.id AS o1, count(*) AS o2 FROM b AS t1 JOIN a AS t2 ON t1.aid = t2.x WHERE t2.y > 0 AND "
        "t1.v >= (SELECT sum(t3.v) / 3 FROM b AS t3 WHERE t3.aid = t1.aid) GROUP BY t1.id",
        "o1 o2",
    ),
    "some of its kind": (
        "SELECT t1.id AS o1 FROM b AS t1 JOIN a AS t2 ON t1.aid = t2.id AND t1.w >= t2.y WHERE t2.x > 0 "
        "AND t1.v >= (SELECT avg(t3.v) FROM b AS t3 WHERE t3.aid = t1.aid)",
        "o1",
    ),
    "an aggregate that is no sum": (
        "SELECT t1.id AS o1, (SELECT sum(t2.v) + count_if(t2.aid > 0) FROM b AS t2 WHERE t2.aid = t1.id) "
        "AS o2 FROM a AS t1",
        "o1 o2",
    ),
    "a count in a value": (
        "SELECT t1.id AS o1, (SELECT count(t2.v) + 1 FROM b AS t2 WHERE t2.aid = t1.id) AS o2 FROM a AS t1",
        "o1 o2",
    ),
    "two values of one table": (
        "SELECT t1.id AS o1, (SELECT sum(t2.v) FROM b AS t2 WHERE t2.aid = t1.id) AS o2, "
        "(SELECT sum(t3.w) FROM b AS t3 WHERE t3.aid = t1.id) AS o3 FROM a AS t1",
        "o1 o2 o3",
    ),
}


WITHOUT = {
    "an aggregate that is no sum",
    "two values of one table",
    "groups of several rows",
    "some of its kind",
    "above the average of another kind",
    "chosen twice",
}


def judged_by_hand(name: str) -> Counter[str]:
    sql, columns = BY_HAND[name]
    names, found, database = tuple(columns.split()), Counter[str](), Database()
    for seed in range(CHANGES):
        verdict = judge_inside(database, Case(seed, sql, names, ("o1",), frozenset()))
        found["nothing" if verdict is None else verdict.outcome] += 1
    return found


@pytest.mark.parametrize("name", first(6, BY_HAND))
def test_what_random_cases_do_not_have(name: str) -> None:
    found = judged_by_hand(name)
    assert set(found) == ({"nothing"} if name in WITHOUT else {"incremental"})


@pytest.mark.parametrize(
    "one",
    [
        "SELECT max(t1.id) AS id FROM a AS t1 HAVING max(t1.id) > 5",
        "SELECT g.id FROM (SELECT max(t1.id) AS id FROM a AS t1) AS g CROSS JOIN c AS t3 GROUP BY g.id",
    ],
)
def test_without_groups_there_is_a_row_of_no_rows(one: str) -> None:
    sql = f"SELECT 1 AS o1, count(t2.v) AS o2 FROM ({one}) AS l LEFT JOIN b AS t2 ON t2.aid = l.id"
    database, found = Database(), Counter[str]()
    for seed in range(25):
        verdict = judge_inside(database, Case(seed, sql, ("o1", "o2"), ("o1",), frozenset()))
        found["nothing" if verdict is None else verdict.outcome] += 1
    assert "wrong" not in found


def _same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_view, "sql_of", lambda node: "")


def _no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_aggregation, "or_zero", lambda value: value)


def _no_zero_in_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_view, "or_zero", lambda value: value)


def _any_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager_aggregation, "unique_keys", lambda *_: [frozenset[str]()])


def _any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reduced_view.equalities
    monkeypatch.setattr(
        reduced_view, "equalities", lambda *given, **more: [*real(*given, **more), ("t3_aid", "t1_aid")]
    )


def _always_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced_view, "unique_keys", lambda *_: [frozenset[str]()])


def _any_aggregate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested_view, "_is_made_of", lambda *_: True)


WRONG: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "the count of what is missing": (_no_zero, "counts of counts"),
    "the count of nothing in a value": (_no_zero_in_a_value, "a count in a value"),
    "groups that are no rows of the other side": (_any_groups, "groups of several rows"),
    "an aggregate of the state's rows": (_any_aggregate, "an aggregate that is no sum"),
    "rows that are not kept": (_any_link, "above the average of another kind"),
    "two places that ask for something else": (_same_text, "two values of one table"),
    "a row that is kept twice": (_always_unique, "chosen twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_purpose_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, case = WRONG[name]
    wrong(monkeypatch)
    assert judged_by_hand(case)["wrong"]


@pytest.mark.parametrize(
    "sql",
    [
        # The large table is read in addition.
        "SELECT s.id FROM s JOIN (SELECT c, sum(x) AS t FROM s GROUP BY c) AS q ON q.c = s.c",
        # Groups as small as the rows of a key are recomputed.
        "SELECT k.id, q.t FROM k JOIN (SELECT id, sum(x) AS t FROM s GROUP BY id) AS q ON q.id = k.id",
        "SELECT k.id FROM k WHERE k.n IN (SELECT q.i FROM (SELECT id AS i FROM s WHERE x > 1) AS q)",
        # What changed would have to be looked up.
        "SELECT k.id FROM k JOIN (SELECT c, sum(x) AS t FROM (SELECT c, x, row_number() OVER (PARTITION BY c "
        "ORDER BY id) AS r FROM s) AS w WHERE r = 1 GROUP BY c) AS q ON q.c = k.id",
        # Nothing links the outer row by a value.
        "SELECT id FROM k WHERE EXISTS (SELECT 1 FROM s WHERE s.c > k.id)",
        "SELECT id FROM k WHERE id NOT IN (SELECT c FROM s)",
        "SELECT id, (SELECT count(DISTINCT s.x) FROM s WHERE s.c = k.id) AS n FROM k",
        # What is computed of a row that has no partner is no sum of rows.
        "SELECT k.id, count(coalesce(s.x, 1)) AS n FROM k LEFT JOIN s ON s.c = k.id GROUP BY k.id",
        "SELECT k.id, count(*) AS n FROM k LEFT JOIN s ON s.c = k.id GROUP BY k.id",
        "SELECT k.n, count(s.x) AS m FROM k LEFT JOIN s ON s.c = k.id GROUP BY k.n",
        # All rows are chosen.
        f"SELECT s.id FROM s JOIN k ON k.id = s.c WHERE {ABOVE}",
        # Rows are looked up that are not kept.
        f"SELECT s.id FROM s JOIN k ON k.id = s.x WHERE k.n > 5 AND {ABOVE}",
        f"SELECT s.id FROM s JOIN k ON k.id = s.c WHERE k.n > 5 AND {ABOVE} AND s.x < (SELECT max(x) FROM s)",
        # A row may be there twice.
        f"SELECT s.id FROM s JOIN k ON k.n = s.c WHERE k.id > 5 AND {ABOVE}",
        # Of a chosen value, not all rows are kept.
        f"SELECT s.id FROM s JOIN k ON k.id = s.c AND s.x > k.n WHERE k.n > 5 AND {ABOVE}",
        # By its key, rows are found where they are.
        "SELECT s.id FROM s JOIN k ON k.id = s.id WHERE k.n > 5 AND s.x > (SELECT avg(b.x) FROM s AS b "
        "WHERE b.id = k.id)",
    ],
)
def test_what_has_none(sql: str) -> None:
    assert view_of(sql) is None


def test_small_tables_have_none() -> None:
    sql = "SELECT k.id, q.t FROM k JOIN (SELECT c, sum(x) AS t FROM s GROUP BY c) AS q ON q.c = k.id"
    assert view_of(sql, 100) is not None
    assert view_of(sql, 101) is None


def test_the_rows_of_what_is_chosen_are_kept() -> None:
    made = view_of(f"SELECT s.id FROM s JOIN k ON k.id = s.c WHERE k.n > 5 AND s.x < 3 AND {ABOVE}")
    assert made is not None
    assert made.size is not None
    assert made.key == ("s_id",)
    assert set(made.state.output) == {"s_id", "s_c", "s_x"}
    assert "< 3" not in state_sql(made, {"s": "s", "k": "k"}), "an average is one of all rows"
    counted = " ".join(rows_of_state_sql(made.size, {"k": "k"}).split())
    assert counted == "SELECT COUNT(*) AS `_rows` FROM k AS `k` WHERE `k`.`n` > 5"
    assert made.size.source == "k"


def test_values_are_groups_of_their_own() -> None:
    made = view_of(
        "SELECT c, count(DISTINCT x) AS n, max(id) AS m, sum(x) AS t FROM s WHERE x > 0 GROUP BY c"
    )
    assert made is not None
    assert made.size is not None
    assert made.key == ("id", "c__3", "x"), "what changes lately stands together"
    counted = " ".join(rows_of_state_sql(made.size, {"s": "s"}).split())
    assert "COUNT(`s`.`id`, `s`.`c`, `s`.`x`) = COUNT(*)" in counted
    assert "APPROX_COUNT_DISTINCT(XXHASH64(`s`.`id`, `s`.`c`, `s`.`x`))" in counted
    assert view_of("SELECT c, count(DISTINCT id) AS n FROM s GROUP BY c") is None, "found by its key at once"
    assert view_of("SELECT c, count(DISTINCT x) AS n, avg(x) AS m FROM s GROUP BY c") is None
    assert view_of("SELECT id, count(DISTINCT x) AS n FROM s GROUP BY id") is None
    assert view_of("SELECT count(DISTINCT x) AS n FROM s") is None


def test_a_value_that_nothing_is_linked_to_is_a_state_of_one_row() -> None:
    made = view_of("SELECT id FROM k WHERE n > (SELECT sum(x) FROM s)")
    assert made is not None
    assert made.key == ("_one",)


def test_an_extreme_keeps_no_other_end() -> None:
    made = view_of(
        "SELECT k.id, q.t FROM k JOIN (SELECT c, max(x) AS t FROM s GROUP BY c) AS q ON q.c = k.id"
    )
    assert made is not None
    assert "_min_1" not in without_spare(made).state.output


MEANS = (
    "WITH s AS (SELECT t1.aid AS g, avg(t1.v) AS m FROM b AS t1 WHERE t1.aid IS NOT NULL GROUP BY t1.aid) "
)
TWICE = {
    "best": ("g m", "WHERE NOT EXISTS (SELECT 1 FROM s AS s2 WHERE s2.m > s1.m)", "s1.g, s1.m"),
    "ranked": ("g better", "", "s1.g, (SELECT count(*) FROM s AS s2 WHERE s2.m > s1.m) AS better"),
    "next": ("g m after", "JOIN s AS s2 ON s2.g = s1.g + 1", "s1.g, s1.m, s2.m AS after"),
}


@pytest.mark.parametrize("name", TWICE)
def test_averages_of_a_state_that_is_read_twice_are_those_of_each_reader(name: str) -> None:
    columns, rest, selected = TWICE[name]
    sql = f"{MEANS}SELECT {selected} FROM s AS s1 {rest}"
    database, met = Database(), Counter[str]()
    for seed in range(CHANGES):
        verdict = judge_inside(database, Case(seed, sql, tuple(columns.split()), ("g",), frozenset()))
        assert verdict is not None
        assert verdict.outcome != "wrong", verdict.why
        met[verdict.outcome] += 1
    assert met["incremental"] > CHANGES / 4, met


def test_a_state_that_there_is_stays_though_another_would_be_made_by_now() -> None:
    """Which table is the larger one may change, and a small one is worth none at a build."""
    sums = "SELECT {0} AS g, sum(x) AS s, count(*) AS n FROM s GROUP BY {0}"
    visits = "SELECT n AS g, count(*) AS n FROM k GROUP BY n"
    sql = f"SELECT q.g, q.s, v.n FROM ({sums.format('c')}) AS q LEFT JOIN ({visits}) AS v ON v.g = q.g"
    query = analyse_query(named(parse(sql), lambda written: written), SALES)
    built = find_nested_view(query, KEYS, ROWS, 50)
    assert built is not None
    grown = {"s": 100, "k": 1_000}
    for rows in (ROWS, grown):
        again = find_nested_view(query, KEYS, rows, 0, built.key)
        assert again is not None
        assert again.state == built.state
    other = find_nested_view(query, KEYS, grown, 0)
    assert other is not None
    assert other.key != built.key
    assert find_nested_view(query, KEYS, grown, 0, ["nobody"]) is None
