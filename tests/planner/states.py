"""A state of a random query on DuckDB, before and after a change, and its own refresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.planner.auxiliary.auxiliary_view import Split, state_sql
from dbt_arctic.planner.delta.plan import understand
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, to_duckdb
from tests.planner.random_tables import SCHEMAS
from tests.planner.summed import judge_sums

STATE = "kept"
NAMES = {table: f"`{table}`" for table in SCHEMAS}
_OLD = {table: f"`{table}@old`" for table in SCHEMAS}


def judge_state(database: Database, ready: Prepared, made: Split) -> Verdict:
    """Store the state as it is and as it was, and refresh it as a model of its own: by its sums or keys."""
    text = state_sql(made, NAMES)
    for name, sql in ((STATE, text), (f"{STATE}@old", state_sql(made, _OLD))):
        database.connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {to_duckdb(sql)}')
    before, expected = (Counter(database.rows(f"SELECT * FROM `{STATE}{old}`")) for old in ("@old", ""))
    case = replace(ready.case, sql=text, columns=tuple(made.state.output), key=tuple(made.key))
    try:
        query = understand(text, database.schemas)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    own = Prepared(case, query, ready.facts, before, expected)
    verdict = judge_sums(database, own) or compare(database, own, InDuckDB())
    return replace(verdict, why=f"the state: {verdict.why}" if verdict.outcome == "wrong" else verdict.why)


def types_of_state(database: Database) -> Mapping[str, str]:
    columns = database.connection.execute(f'DESCRIBE "{STATE}"').fetchall()
    return {name: type_.lower().replace("hugeint", "bigint") for name, type_, *_ in columns}
