"""The 22 queries of TPC-H: which have an incremental plan, and that it gives what the full query gives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from dbt_arctic.planner.plan import affected_sql, guard_sql, plan_incremental, rows_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner import tpch_data
from tests.planner.oracle import to_duckdb

LIMITED = {"q02", "q03", "q10", "q18", "q21"}
"""Those with the first rows of an order: for them there is a plan of all rows only."""

GUARDED = {"q15"}
"""Those with a value over changed tables that nothing links to a row: where it changes, all rows may."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    folder: Path = tmp_path_factory.mktemp("tpch")
    tpch_data.generate(folder)
    connection = tpch_data.load(folder)
    tpch_data.change(connection, 1)
    return connection


def unlimited(sql: str) -> str:
    return re.sub(r"\nlimit \d+\n$", "\n", sql)


def test_what_has_no_incremental_plan(data: duckdb.DuckDBPyConnection) -> None:
    schemas, reasons, guards = tpch_data.schemas(data), {}, set()
    for name, sql in tpch_data.QUERIES.items():
        try:
            query = understand(sql, schemas)
            plan = plan_incremental(query, tpch_data.KEYS[name], tpch_data.FACTS)
        except CannotPlan as error:
            reasons[name] = error.reason.code
            continue
        guards |= {name} if plan.guards else set()
    assert reasons == dict.fromkeys(LIMITED, "limit")
    assert guards == GUARDED


@pytest.mark.parametrize("name", tpch_data.QUERIES)
def test_a_refresh_equals_the_full_query(name: str, data: duckdb.DuckDBPyConnection) -> None:
    sql = unlimited(tpch_data.QUERIES[name])
    query = understand(sql, tpch_data.schemas(data))
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
