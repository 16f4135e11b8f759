"""A query over what is kept inside it, on DuckDB: what it gives, and its refresh as that changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView, outer_sql, without_spare
from dbt_arctic.planner.auxiliary.nested_view import find_nested_view
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, prepare
from tests.planner.random_queries import Case
from tests.planner.random_tables import KEYS, SCHEMAS
from tests.planner.states import (
    NAMES,
    STATE,
    has_changed,
    has_nulls,
    has_other_averages,
    has_several,
    judge_state,
    keep_changes,
    types_of_state,
)

OPERATORS = ("state further inside",)


def find_inner_state(ready: Prepared) -> AuxiliaryView | None:
    """What could be kept of a case, were its tables large."""
    made = find_nested_view(ready.query, KEYS, dict.fromkeys(SCHEMAS, 1), 1, own=ready.case.key)
    return None if made is None else without_spare(made)


def judge_inside(database: Database, case: Case) -> Verdict | None:
    """``None`` where nothing of the case would be kept."""
    ready = prepare(database, case)
    made = None if isinstance(ready, Verdict) else find_inner_state(ready)
    if made is None or isinstance(ready, Verdict):
        return None
    return _judge(database, ready, made)


def judge_with_state(database: Database, case: Case) -> Verdict:
    """Over what is kept inside the case, or by the affected keys where nothing is."""
    ready = prepare(database, case)
    if isinstance(ready, Verdict):
        return ready
    made = find_inner_state(ready)
    return compare(database, ready, InDuckDB()) if made is None else _judge(database, ready, made)


def _judge(database: Database, ready: Prepared, made: AuxiliaryView) -> Verdict:
    own = judge_state(database, ready, made)
    if has_nulls(database, made):
        return Verdict("full", "a key that is NULL", ready.changed)
    if has_several(database, made):
        return Verdict("wrong", f"the key {made.key} of the state has several rows", ready.changed)
    if own.outcome != "incremental":
        return replace(own, changed=ready.changed)
    keep_changes(database)
    types = types_of_state(database)
    if has_other_averages(made, types):
        return Verdict("full", "an average of decimals, which is a double in DuckDB", ready.changed)
    over = outer_sql(made, f"`{STATE}`", types, NAMES)
    found = Counter(database.rows(over))
    if found != ready.expected:
        return Verdict("wrong", f"over the state {found}, not {ready.expected}\n{over}", ready.changed)
    try:
        query = analyse_query(over, {**database.schemas, STATE: list(types.items())})
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    kept = UpstreamFacts(has_changed(database), made.key, rows=10)
    facts = Facts({**ready.facts.upstreams, STATE: kept})
    verdict = compare(database, replace(ready, query=query, facts=facts), InDuckDB())
    return replace(verdict, met=verdict.met | own.met | {*OPERATORS})
