"""A state of a random query on DuckDB, before and after a change, and its own refresh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView, state_sql
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, to_duckdb
from tests.planner.random_tables import SCHEMAS
from tests.planner.sums_of_queries import judge_sums

STATE = "kept"
NAMES = {table: f"`{table}`" for table in SCHEMAS}
_OLD = {table: f"`{table}@old`" for table in SCHEMAS}
_NO_STATES: Schemas = {}


def judge_state(
    database: Database, ready: Prepared, made: AuxiliaryView, state: str = STATE, below: Schemas = _NO_STATES
) -> Verdict:
    """Store the state as it is and as it was, and refresh it as a model of its own: by its sums or keys.

    :param state: what it is called. :param below: the states that it may read.
    """
    text = state_sql(made, NAMES | {name: f"`{name}`" for name in below})
    was = state_sql(made, _OLD | {name: f"`{name}@old`" for name in below})
    for name, sql in ((state, text), (f"{state}@old", was)):
        database.connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS {to_duckdb(sql)}')
    before, expected = (Counter(database.rows(f"SELECT * FROM `{state}{old}`")) for old in ("@old", ""))
    case = replace(ready.case, sql=text, columns=tuple(made.state.output), key=tuple(made.key))
    try:
        query = analyse_query(text, {**database.schemas, **below})
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    own = Prepared(case, query, ready.facts, before, expected)
    verdict = judge_sums(database, own) or compare(database, own, InDuckDB())
    return replace(verdict, why=f"the state: {verdict.why}" if verdict.outcome == "wrong" else verdict.why)


def keep_changes(database: Database, state: str = STATE) -> None:
    """What has changed in a state, as a query over it asks for it."""
    for name, first, second in (("minus", "@old", ""), ("plus", "", "@old")):
        database.connection.execute(
            f'CREATE OR REPLACE TEMP TABLE "{state}@{name}" AS '
            f'SELECT * FROM "{state}{first}" EXCEPT ALL SELECT * FROM "{state}{second}"'
        )
    both = f'SELECT * FROM "{state}@minus" UNION ALL SELECT * FROM "{state}@plus"'
    for name in ("changed", "keys"):
        database.connection.execute(f'CREATE OR REPLACE TEMP VIEW "{state}@{name}" AS {both}')


def has_changed(database: Database, state: str = STATE) -> bool:
    """Whether its refresh has changed it."""
    return bool(database.rows(f"SELECT * FROM `{state}@changed` LIMIT 1"))


def has_nulls(database: Database, made: AuxiliaryView, state: str = STATE) -> bool:
    """Whether a key is NULL, as none of a keyed table can be."""
    key = ", ".join(f"`{name}`" for name in made.key)
    return any(None in row for row in database.rows(f"SELECT {key} FROM `{state}`"))


def has_several(database: Database, made: AuxiliaryView, state: str = STATE) -> bool:
    """Whether a key has several rows, as none of a keyed table can have."""
    key = ", ".join(f"`{name}`" for name in made.key)
    return bool(database.rows(f"SELECT {key} FROM `{state}` GROUP BY {key} HAVING count(*) > 1 LIMIT 1"))


def has_other_averages(made: AuxiliaryView, types: Mapping[str, str]) -> bool:
    """Whether it has an average of decimals, which is a double in DuckDB."""
    averages = (part for part in made.parts.values() if part.call == "avg")
    return any(types[str(part.total)].startswith("decimal") for part in averages)


def types_of_state(database: Database, state: str = STATE) -> Mapping[str, str]:
    columns = database.connection.execute(f'DESCRIBE "{state}"').fetchall()
    return {name: type_.lower().replace("hugeint", "bigint") for name, type_, *_ in columns}
