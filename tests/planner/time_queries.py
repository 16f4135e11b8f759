"""Random queries with functions of time: rows that move only because of the time are found, whatever else
changes.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace

import duckdb

from dbt_arctic.planner.algebra.operators import Project, walk
from dbt_arctic.planner.delta.plan import analyse_query, full_sql
from dbt_arctic.planner.frontend.point_in_time import DATE, time_has_changed
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.qualify import without_qualify
from tests.planner.oracle import ATTEMPTS, Database, InDuckDB, Prepared, Verdict, at_old, compare, facts_of
from tests.planner.random_queries import Case, draw

OPERATORS = ("current_date", "current_timestamp", "time alone", "time in a value")

_NUMBER = re.compile(r"(<=|>=|<>|[<>=]) -?\d+\b")
_OTHERWISE = re.compile(r"\b(coalesce\(t\d+\.\w+, )[^(),]+\)")
"""What takes the place of a missing value."""
_CALL = re.compile(r"(current_date|current_timestamp)\(\)")
_STANDS_IN = re.compile(r"\b(WHEN|FILTER \(WHERE|WHERE|HAVING|ON)\b")
_OTHER = 1_000_003
"""How far the seed is from which another query is drawn, where nothing in one is compared with a number."""


@dataclass(frozen=True)
class Number:
    """A time that can be compared with the numbers of random tables: of the two functions, another one."""

    value: int

    def literal(self, function: str) -> str:
        return str(self.value if function in DATE else self.value + 1)


def draw_timed(seed: int) -> Case:
    for place in range(seed, seed + 100 * _OTHER, _OTHER):
        made = timed(replace(draw(place), seed=seed))
        if _CALL.search(made.sql):
            return made
    raise AssertionError(f"nothing is compared with a number in a hundred queries from seed {seed} on")


def timed(case: Case) -> Case:
    """The case with the time in place of some numbers that something is compared with, and of some values
    for a missing one."""
    chance = random.Random(case.sql)
    functions = chance.choice((OPERATORS[:1], OPERATORS[1:2], OPERATORS[:2]))

    def swapped(found: re.Match[str]) -> str:
        where = _STANDS_IN.findall(case.sql[: found.start()])
        share = 0.7 if where and where[-1] in ("WHERE", "HAVING", "ON") else 0.4
        return f"{found[1]} {chance.choice(functions)}()" if chance.random() < share else found[0]

    def instead(found: re.Match[str]) -> str:
        return f"{found[1]}{chance.choice(functions)}())" if chance.random() < 0.5 else found[0]

    return replace(case, sql=_OTHERWISE.sub(instead, _NUMBER.sub(swapped, case.sql)))


def judge_timed(database: Database, case: Case) -> Verdict:
    """Of some cases only the time changes, and no row."""
    same_rows = random.Random(f"rows/{case.seed}").random() < 0.5
    ready = prepare_timed(database, case, same_rows=same_rows)
    if isinstance(ready, Verdict):
        return ready
    called = {found for found in OPERATORS if f"{found}()" in case.sql}
    alone = {OPERATORS[2]} if same_rows else set()
    projections = (part for part in walk(ready.query.node) if isinstance(part, Project))
    in_values = any(time_has_changed(value) for part in projections for _, value in part.items)
    verdict = compare(database, ready, InDuckDB())
    return replace(verdict, met=verdict.met | called | alone | ({OPERATORS[3]} if in_values else set()))


def prepare_timed(database: Database, case: Case, *, same_rows: bool) -> Prepared | Verdict:
    """As ``prepare`` does, with the time of before and of now. ``same_rows``: no table changes."""
    for attempt in range(ATTEMPTS):
        last, now = (Number(value) for value in random.Random(f"{case.seed}/{attempt}").sample(range(5), 2))
        old, new = case.tables(attempt)
        new = old if same_rows else new
        database.load(old, new)
        try:
            before = Counter(database.rows(_at(last, at_old(case.sql))))
            expected = Counter(database.rows(_at(now, case.sql)))
        except duckdb.Error as error:
            return Verdict("not for duckdb", str(error).split("\n")[0])
        if before != expected:
            break
    changed = before != expected
    try:
        query = analyse_query(without_qualify(case.sql), database.schemas, now=now, last=last)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, changed)
    if Counter(database.rows(full_sql(query, InDuckDB()))) != expected:
        return Verdict("wrong", f"at {now} the query was misunderstood", changed)
    return Prepared(case, query, replace(facts_of(old, new), time_changed=True), before, expected)


def _at(time: Number, sql: str) -> str:
    return _CALL.sub(lambda found: time.literal(found[1]), sql)
