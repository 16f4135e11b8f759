"""Runs the cases of many seeds and counts what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb

from tests.planner.oracle import Database, Verdict, judge
from tests.planner.random_queries import OPERATORS, draw
from tests.planner.random_tables import SCHEMAS, TYPED


@dataclass
class Tally:
    """:param operators: cases with the operator, run incrementally, with a difference that is not empty."""

    cases: int = 0
    incremental: int = 0
    changed: int = 0
    full: Counter[str] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.incremental += other.incremental
        self.changed += other.changed
        self.full += other.full
        self.not_run += other.not_run
        self.operators += other.operators
        self.wrong += other.wrong

    def rare(self, share: float) -> dict[str, int]:
        """Operators that less than a share of the cases have met."""
        return {name: self.operators[name] for name in OPERATORS if self.operators[name] < share * self.cases}


def tally(seeds: Iterable[int], *, typed: bool = False) -> Tally:
    """Judge the cases of these seeds, all in one database; ``typed``: of columns of several types."""
    made, database = Tally(), Database(TYPED if typed else SCHEMAS)
    for seed in seeds:
        case = draw(seed, typed=typed)
        try:
            verdict = judge(database, case)
        except (duckdb.NotImplementedException, duckdb.BinderException) as error:
            if "subquery" not in str(error):
                raise
            # Some correlated subqueries beside outer joins are not for DuckDB.
            verdict = Verdict("not for duckdb", str(error).split("\n")[0])
        except Exception as error:
            # A crash of the planner, or of the SQL that it wrote: told with the seed, as a wrong result is.
            verdict = Verdict("wrong", f"{type(error).__name__}: {error}")
        made.cases += 1
        made.changed += verdict.changed
        if verdict.outcome == "incremental":
            made.incremental += 1
            if verdict.changed:
                made.operators.update(case.operators)
        elif verdict.outcome == "full":
            made.full[verdict.why] += 1
        elif verdict.outcome == "wrong":
            made.wrong.append(
                f"seed {seed}{', typed' * typed}, key {', '.join(case.key)}: {verdict.why}\n{case.sql}"
            )
        else:
            made.not_run[verdict.why] += 1
    return made
