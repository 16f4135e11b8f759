"""Runs a planner's SQL on DuckDB and compares it with the query itself, run in full.

A key need not be unique here: the rows of the affected keys are replaced, whatever they are.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import duckdb
import sqlglot

from dbt_arctic.planner.algebra import State
from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.plan import affected_sql, full_sql, guard_sql, plan_incremental, rows_sql, understand
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.random_queries import KEYS, SCHEMAS, Case, Row


class InDuckDB:
    """Upstreams as tables: ``a`` and ``a@old``, ``a@minus`` and so on."""

    def relation(self, source: str, state: State) -> str:
        return f"`{source}`" if state == "new" else f"`{source}@{state}`"


@dataclass(frozen=True)
class Verdict:
    """What became of a case. ``why``: the reason of a full refresh, or what is wrong."""

    outcome: str
    why: str = ""
    changed: bool = False
    affected: int = 0
    total: int = 0


def to_duckdb(sql: str) -> str:
    if "LATERAL VIEW" in sql or "ARRAY(" in sql:
        return str(sqlglot.transpile(sql, read="spark", write="duckdb")[0])
    text = sql.replace("`", '"').replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")
    return re.sub(r"<=>", "IS NOT DISTINCT FROM", text)


class Database:
    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})

    def load(self, old: dict[str, list[Row]], new: dict[str, list[Row]]) -> None:
        for table, columns in SCHEMAS.items():
            before, after = Counter(old[table]), Counter(new[table])
            minus, plus = list((before - after).elements()), list((after - before).elements())
            states: dict[str, list[Row]] = {
                table: new[table],
                f"{table}@old": old[table],
                f"{table}@minus": minus,
                f"{table}@plus": plus,
                f"{table}@changed": minus + plus,
                f"{table}@keys": minus + plus,
            }
            declared = ", ".join(f'"{name}" INTEGER' for name, _ in columns)
            for name, rows in states.items():
                values = ", ".join(
                    "(" + ", ".join("NULL" if cell is None else str(cell) for cell in row) + ")"
                    for row in rows
                )
                self.connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({declared})')
                if rows:
                    self.connection.execute(f'INSERT INTO "{name}" VALUES {values}')

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(to_duckdb(sql)).fetchall()


def at_old(sql: str) -> str:
    """The same query over the tables before the change."""
    return re.sub(r"\b([abc]) AS (t\d+)", r"`\1@old` AS \2", sql)


def judge(database: Database, case: Case) -> Verdict:
    """Run a case: the refresh of the affected keys against the full query."""
    database.load(case.old, case.new)
    facts = Facts(
        {
            table: UpstreamFacts(
                sorted(case.old[table], key=repr) != sorted(case.new[table], key=repr), KEYS[table]
            )
            for table in SCHEMAS
        }
    )
    try:
        before, expected = Counter(database.rows(at_old(case.sql))), Counter(database.rows(case.sql))
    except duckdb.Error as error:
        # DuckDB does not know every form of a correlated subquery that Spark does.
        return Verdict("not for duckdb", str(error).split("\n")[0])
    changed = before != expected
    try:
        query = understand(case.sql, SCHEMAS)
        plan = plan_incremental(query, case.key, facts)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, changed)
    sources = InDuckDB()
    understood = Counter(database.rows(full_sql(query, sources)))
    if understood != expected:
        return Verdict("wrong", "the query was misunderstood", changed)
    if any(database.rows(guard_sql(guard, sources))[0][0] for guard in plan.guards):
        return Verdict("full", "guard", changed)
    if plan.affected is None:
        return Verdict("wrong" if changed else "incremental", "no key can have changed", changed)
    keys = set(database.rows(affected_sql(plan, sources)))
    database.connection.execute(
        f'CREATE OR REPLACE TEMP TABLE "affected" AS {to_duckdb(affected_sql(plan, sources))}'
    )
    fresh = Counter(database.rows(rows_sql(plan, sources, "`affected`")))
    places = [case.columns.index(name) for name in case.key]
    kept = Counter({row: count for row, count in before.items() if tuple(row[p] for p in places) not in keys})
    if kept + fresh != expected:
        missing, extra = expected - (kept + fresh), (kept + fresh) - expected
        return Verdict("wrong", f"missing {dict(missing)}, too many {dict(extra)}, affected {keys}", changed)
    return Verdict("incremental", "", changed, len(keys), len(expected))
