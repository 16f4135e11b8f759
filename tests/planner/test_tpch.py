"""The 22 queries of TPC-H: which have an incremental plan, and that it gives what the full query gives."""

from __future__ import annotations

import re
from collections import Counter

import duckdb
import pytest

from dbt_arctic.planner.algebra.operators import Join, scans, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import equalities
from dbt_arctic.planner.auxiliary.aggregate_maintenance import changes_sql, plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    AuxiliaryView,
    columns_in_model_table,
    find_auxiliary_view,
    outer_sql,
    state_sql,
    with_state_sql,
)
from dbt_arctic.planner.delta.plan import affected_sql, analyse_query, guard_sql, plan_incremental, rows_sql
from dbt_arctic.planner.delta.weighted_delta import SIGN
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner import tpch_data
from tests.planner.oracle import inline, to_duckdb

LIMITED = {"q02", "q03", "q10", "q18", "q21"}
"""Those with the first rows of an order: a query over a state that has all rows."""

SUMS = {f"q{number:02}" for number in (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 17, 18, 19, 21, 22)}
"""Those over sums and counts, which are kept as a state."""

CHANGING = sorted(SUMS - {"q16"})
"""Of these, those that read orders or their lines."""

NOT_BESIDE = {"q03", "q10", "q18", "q21"}
"""Of these, those that end in the first rows of an order: a state has other rows than the model."""

TIES = frozenset({"ties"})
"""TPC-H leaves open which rows come first where the order leaves them equal."""

GUARDED = {"q15"}
"""Those with a value over changed tables that nothing links to a row: where it changes, all rows may."""


def unlimited(sql: str) -> str:
    return re.sub(r"\nlimit \d+\n$", "\n", sql)


def test_what_has_no_incremental_plan(data: duckdb.DuckDBPyConnection) -> None:
    schemas, reasons, guards = tpch_data.schemas(data), {}, set()
    for name, sql in tpch_data.QUERIES.items():
        try:
            query = analyse_query(sql, schemas)
            plan = plan_incremental(query, tpch_data.KEYS[name], tpch_data.FACTS)
        except CannotPlan as error:
            reasons[name] = error.reason.code
            continue
        guards |= {name} if plan.guards else set()
    # q02 reads nothing that has changed.
    assert reasons == {name: "limit" if name == "q21" else "ties" for name in LIMITED - {"q02"}}
    assert guards == GUARDED


@pytest.mark.parametrize("name", tpch_data.QUERIES)
def test_a_refresh_equals_the_full_query(name: str, data: duckdb.DuckDBPyConnection) -> None:
    sql = unlimited(tpch_data.QUERIES[name])
    query = analyse_query(sql, tpch_data.schemas(data))
    plan = plan_incremental(query, tpch_data.KEYS[name], tpch_data.FACTS)
    before, expected = Counter(tpch_data.at_old(data, sql)), Counter(data.execute(sql).fetchall())
    if any(
        data.execute(to_duckdb(guard_sql(guard, tpch_data.Sources()))).fetchone() == (True,)
        for guard in plan.guards
    ):
        assert name in GUARDED
        return
    if plan.affected is None:
        assert before == expected
        return
    keys_sql = to_duckdb(affected_sql(plan, tpch_data.Sources()))
    data.execute(f"CREATE OR REPLACE TEMP TABLE affected AS {keys_sql}")
    fresh = Counter(data.execute(to_duckdb(rows_sql(plan, tpch_data.Sources(), "affected"))).fetchall())
    keys = set(data.execute("SELECT * FROM affected").fetchall())
    names = [column for column, _ in query.columns]
    places = [names.index(column) for column in tpch_data.KEYS[name]]
    kept = {row: count for row, count in before.items() if tuple(row[place] for place in places) not in keys}
    assert fresh + Counter(kept) == expected


def split_of(name: str, data: duckdb.DuckDBPyConnection) -> tuple[Query, AuxiliaryView] | None:
    query = analyse_query(tpch_data.QUERIES[name], tpch_data.schemas(data))
    made = find_auxiliary_view(query, tpch_data.KEYS[name], tpch_data.TABLE_KEYS)
    return None if made is None else (query, made)


def test_which_queries_have_a_state(data: duckdb.DuckDBPyConnection) -> None:
    found = {name: made for name in tpch_data.QUERIES if (made := split_of(name, data)) is not None}
    assert {name for name, (_, made) in found.items() if made.parts} == SUMS
    assert found.keys() - SUMS == {"q02"}


@pytest.mark.parametrize("name", sorted((SUMS | LIMITED) - {"q01"}))
def test_a_query_over_its_state_gives_what_the_query_gives(
    name: str, data: duckdb.DuckDBPyConnection
) -> None:
    """The state as it is computed in full: what is above it adds nothing and loses nothing.

    Not q01: DuckDB's averages are doubles. On Spark it is among the automatic models.
    """
    found = split_of(name, data)
    assert found is not None
    _, made = found
    text = state_sql(made, {table: table for table in tpch_data.TABLE_KEYS})
    data.execute(f"CREATE OR REPLACE TEMP TABLE state AS {to_duckdb(text)}")
    types = {part.total: "decimal(25,2)" for part in made.parts.values() if part.total}
    assert Counter(data.execute(to_duckdb(outer_sql(made, "state", types))).fetchall()) == Counter(
        data.execute(tpch_data.QUERIES[name]).fetchall()
    )


@pytest.mark.parametrize("name", sorted(SUMS - {"q01"}))
def test_a_query_that_shows_its_state_shows_what_the_query_gives(
    name: str, data: duckdb.DuckDBPyConnection
) -> None:
    found = split_of(name, data)
    assert found is not None
    query, made = found
    stored = columns_in_model_table(made)
    if stored is None:
        assert name in NOT_BESIDE
        return
    types = {part.total: "decimal(25,2)" for part in made.parts.values() if part.total}
    text = with_state_sql(made, {table: table for table in tpch_data.TABLE_KEYS}, stored, types)
    shown = ", ".join(f'"{column}"' for column, _ in query.columns)
    assert Counter(data.execute(f"SELECT {shown} FROM ({to_duckdb(text)})").fetchall()) == Counter(
        data.execute(tpch_data.QUERIES[name]).fetchall()
    )
    sums = plan_summary_delta(
        analyse_query(text, tpch_data.schemas(data)), tpch_data.KEYS[name], tpch_data.FACTS, TIES
    )
    assert sums is not None
    assert set(sums.derived) == {column for column, _ in query.columns} - {*sums.key, *stored.values()}


@pytest.mark.parametrize("name", CHANGING)
def test_changes_are_joined_with_other_tables_by_their_keys(
    name: str, data: duckdb.DuckDBPyConnection
) -> None:
    """Not by anything that many rows share: the nation of a customer is that of four hundred suppliers."""
    found = split_of(name, data)
    assert found is not None
    query = analyse_query(
        state_sql(found[1], {one: one for one in tpch_data.TABLE_KEYS}), tpch_data.schemas(data)
    )
    sums = plan_summary_delta(query, found[1].key, tpch_data.FACTS, TIES)
    assert sums is not None
    assert sums.changes is not None
    for join in (node for node in walk(sums.changes) if isinstance(node, Join)):
        if SIGN in join.left.output and join.kind == "inner":
            met = {theirs for _, theirs in equalities(join.conditions) if theirs in join.right.output}
            stored = [(one.source, pair) for one in scans(join.right) for pair in one.columns]
            keys = {name for source, (name, column) in stored if column in tpch_data.TABLE_KEYS[source]}
            assert keys & met, (join.conditions, join.right.output)


@pytest.mark.parametrize("name", CHANGING)
def test_what_changed_added_to_the_state_gives_that_of_the_full_query(
    name: str, data: duckdb.DuckDBPyConnection
) -> None:
    found = split_of(name, data)
    assert found is not None
    _, made = found
    text = state_sql(made, {table: table for table in tpch_data.TABLE_KEYS})
    query = analyse_query(text, tpch_data.schemas(data))
    sums = plan_summary_delta(query, made.key, tpch_data.FACTS, TIES)
    assert sums is not None
    assert sums.changes is not None
    assert sums.guards == () or name == "q22"
    data.execute("SET search_path = 'before,main'")
    data.execute(f"CREATE OR REPLACE TEMP TABLE old_state AS {to_duckdb(text)}")
    data.execute("SET search_path = 'main'")
    keys = ", ".join(f'"{one}"' for one in made.key)
    values = [column for column, _ in query.columns if column not in made.key]
    totals = ", ".join(
        f'CASE WHEN sum("{sums.counted[one]}") > 0 THEN sum("{one}") END'
        if one in sums.counted
        else f'sum("{one}")'
        for one in values
    )
    wanted = ", ".join(f'"{one}"' for one in (*made.key, *values))
    changes = to_duckdb(changes_sql(sums, tpch_data.Sources(), inline(sums.staged, tpch_data.Sources()), {}))
    added = data.execute(
        f"SELECT {keys}, {totals} FROM (SELECT {wanted} FROM ({changes}) UNION ALL "
        f"SELECT {wanted} FROM old_state) GROUP BY {keys} "
        f'HAVING sum("{sums.rows}") > 0 OR {sums.whole}'
    ).fetchall()
    assert Counter(added) == Counter(data.execute(f"SELECT {wanted} FROM ({to_duckdb(text)})").fetchall())
