"""Runs the cases of many seeds and counts what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb

from tests.planner.case_kinds import KINDS, kind_of
from tests.planner.oracle import Database, Verdict
from tests.planner.random_queries import Case
from tests.planner.random_tables import SCHEMAS, TYPED


@dataclass
class Tally:
    """:param operators: cases with the operator, run incrementally, with a difference that is not empty.
    :param kinds: cases, by their kind and what became of them.
    """

    cases: int = 0
    incremental: int = 0
    changed: int = 0
    full: Counter[str] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.incremental += other.incremental
        self.changed += other.changed
        self.full += other.full
        self.not_run += other.not_run
        self.operators += other.operators
        self.kinds += other.kinds
        self.wrong += other.wrong

    def rare(self, operators: Iterable[str], floor: float) -> dict[str, int]:
        """Operators that fewer cases have met."""
        return {name: self.operators[name] for name in operators if self.operators[name] < floor}


def tally(seeds: Iterable[int], kind: str | None = None, *, to_first: bool = False) -> Tally:
    """Judge the cases of these seeds: of one kind, or of that which each seed has.

    :param to_first: whether the first difference is the last case.
    """
    made = Tally()
    databases = {typed: Database(TYPED if typed else SCHEMAS) for typed in (False, True)}
    for seed in seeds:
        if to_first and made.wrong:
            break
        name = kind or kind_of(seed)
        case = KINDS[name].draw(seed)
        verdict = _judged(databases[KINDS[name].typed], name, case)
        made.cases += 1
        made.changed += verdict.changed
        made.kinds[name, verdict.outcome] += 1
        if verdict.outcome == "incremental":
            made.incremental += 1
            if verdict.changed:
                made.operators.update(verdict.met)
        elif verdict.outcome == "full":
            made.full[verdict.why] += 1
        elif verdict.outcome == "wrong":
            made.wrong.append(f"seed {seed}, {name}, key {', '.join(case.key)}: {verdict.why}\n{case.sql}")
        else:
            made.not_run[verdict.why] += 1
    return made


def _without_optimiser(database: Database, kind: str, case: Case) -> Verdict:
    database.connection.execute("PRAGMA disable_optimizer")
    try:
        return KINDS[kind].judge(database, case)
    finally:
        database.connection.execute("PRAGMA enable_optimizer")


def _judged(database: Database, kind: str, case: Case) -> Verdict:
    try:
        try:
            return KINDS[kind].judge(database, case)
        except duckdb.InternalException:
            # A mistake of DuckDB's optimiser. Without it the case is run all the same.
            return _without_optimiser(database, kind, case)
    except Exception as error:
        unknown = isinstance(error, duckdb.NotImplementedException | duckdb.BinderException)
        if unknown and "subquery" in str(error):
            # DuckDB does not support some correlated subqueries together with outer joins.
            return Verdict("not for duckdb", str(error).split("\n")[0])
        # A crash of the planner or of its SQL is reported with the seed, like a wrong result.
        return Verdict("wrong", f"{type(error).__name__}: {error}")
