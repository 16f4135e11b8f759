"""A query over what is kept inside it, on DuckDB: what it gives, and its refresh as that changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.inner import split_inside
from dbt_arctic.planner.plan import understand
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.split import Split, outer_sql, state_sql
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, prepare, to_duckdb
from tests.planner.random_queries import Case
from tests.planner.random_tables import KEYS, SCHEMAS

STATE = "kept"
_NAMES = {table: f"`{table}`" for table in SCHEMAS}


def inside(ready: Prepared) -> Split | None:
    """What could be kept of a case, were its tables large. No averages of decimals: DuckDB's are doubles."""
    made = split_inside(ready.query, KEYS, dict.fromkeys(SCHEMAS, 1), 1)
    if made is None or any(call == "avg" for call, _, _ in made.parts.values()):
        return None
    return made


def judge_inside(database: Database, case: Case) -> Verdict | None:
    """``None`` where nothing of the case would be kept."""
    ready = prepare(database, case)
    made = None if isinstance(ready, Verdict) else inside(ready)
    if made is None or isinstance(ready, Verdict):
        return None
    return _judge(database, ready, made)


def _judge(database: Database, ready: Prepared, made: Split) -> Verdict:
    old = {table: f"`{table}@old`" for table in SCHEMAS}
    for name, names in ((STATE, _NAMES), (f"{STATE}@old", old)):
        database.connection.execute(
            f'CREATE OR REPLACE TEMP TABLE "{name}" AS {to_duckdb(state_sql(made, names))}'
        )
    if any(None in row for row in database.rows(f"SELECT {_listed(made)} FROM `{STATE}`")):
        return Verdict("full", "a key that is NULL", ready.changed)
    for name, first, second in (("minus", "@old", ""), ("plus", "", "@old")):
        database.connection.execute(
            f'CREATE OR REPLACE TEMP TABLE "{STATE}@{name}" AS '
            f'SELECT * FROM "{STATE}{first}" EXCEPT ALL SELECT * FROM "{STATE}{second}"'
        )
    both = f'SELECT * FROM "{STATE}@minus" UNION ALL SELECT * FROM "{STATE}@plus"'
    for name in ("changed", "keys"):
        database.connection.execute(f'CREATE OR REPLACE TEMP VIEW "{STATE}@{name}" AS {both}')
    columns = database.connection.execute(f'DESCRIBE "{STATE}"').fetchall()
    types = [(name, type_.lower().replace("hugeint", "bigint")) for name, type_, *_ in columns]
    over = outer_sql(made, f"`{STATE}`", dict(types), _NAMES)
    found = Counter(database.rows(over))
    if found != ready.expected:
        return Verdict("wrong", f"over the state {found}, not {ready.expected}\n{over}", ready.changed)
    try:
        query = understand(over, {**database.schemas, STATE: types})
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    is_same = not database.rows(f"SELECT * FROM `{STATE}@changed` LIMIT 1")
    kept = UpstreamFacts(not is_same, made.key, rows=10, changed_rows=-1)
    facts = Facts({**ready.facts.upstreams, STATE: kept})
    return compare(database, replace(ready, query=query, facts=facts), InDuckDB())


def _listed(made: Split) -> str:
    return ", ".join(f"`{name}`" for name in made.key)
