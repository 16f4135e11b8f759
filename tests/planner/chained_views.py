"""A query over a chain of auxiliary views, on DuckDB: each is refreshed from what has changed below it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView, outer_sql
from dbt_arctic.planner.auxiliary.view_selection import possible_views
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner import chained_queries
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, prepare
from tests.planner.random_queries import Case
from tests.planner.states import (
    NAMES,
    STATE,
    has_changed,
    has_nulls,
    has_other_averages,
    judge_state,
    keep_changes,
    types_of_state,
)

_MOST = 3
OPERATORS = (*chained_queries.OPERATORS, "a chain of states")


def judge_chain(database: Database, case: Case) -> Verdict:
    """Over views that are chosen at random among all possible ones: whichever they are, nothing differs."""
    ready = prepare(database, case)
    if isinstance(ready, Verdict):
        return ready
    dice = random.Random(f"views/{case.seed}")
    schemas: dict[str, list[tuple[str, str]]] = {}
    for place in range(1, _MOST + 1):
        keys_of = {source: one.key for source, one in ready.facts.upstreams.items()}
        views = possible_views(ready.query, case.key, keys_of)
        if not views:
            break
        made, state = dice.choice(views), f"{STATE}{place}"
        own = judge_state(database, ready, made, state, schemas)
        if own.outcome == "incremental" and has_nulls(database, made, state):
            return Verdict("full", "a key that is NULL", ready.changed)
        if own.outcome != "incremental":
            return replace(own, changed=ready.changed)
        keep_changes(database, state)
        types = types_of_state(database, state)
        if has_other_averages(made, types):
            return Verdict("full", "an average of decimals", ready.changed)
        over = _over(database, ready, made, state, schemas)
        if isinstance(over, Verdict):
            return over
        schemas[state] = list(types.items())
        kept = UpstreamFacts(has_changed(database, state), made.key, rows=10)
        ready = replace(ready, query=over, facts=Facts({**ready.facts.upstreams, state: kept}))
    verdict = compare(database, ready, InDuckDB())
    return replace(verdict, met=verdict.met | {"a chain of states"} if len(schemas) > 1 else verdict.met)


def _over(
    database: Database,
    ready: Prepared,
    made: AuxiliaryView,
    state: str,
    below: dict[str, list[tuple[str, str]]],
) -> Query | Verdict:
    """The query over one more state, which gives what the query gives."""
    types = types_of_state(database, state)
    sql = outer_sql(made, f"`{state}`", types, NAMES | {name: f"`{name}`" for name in below})
    found = Counter(database.rows(sql))
    if found != ready.expected:
        return Verdict("wrong", f"over {state} {found}, not {ready.expected}\n{sql}", ready.changed)
    try:
        return analyse_query(sql, {**database.schemas, **below, state: list(types.items())})
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
