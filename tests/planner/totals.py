"""Random groups that are compared with a total: of their own rows, of other rows, or of another table."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.planner.inner_state import find_inner_state, judge_with_state
from tests.planner.oracle import Database, Verdict, prepare
from tests.planner.random_queries import Case

OPERATORS = ("total of groups",)

_SOURCES = [
    ("b AS t{0}", "t{0}.aid", "t{0}.v", "t{0}.w", ["t{0}.w > 0", "t{0}.v <> 2"]),
    ("c AS t{0}", "t{0}.k", "t{0}.m", "t{0}.n", ["t{0}.n < 3"]),
    (
        "b AS t{0} JOIN a AS t9{0} ON t{0}.aid = t9{0}.id",
        "t9{0}.x",
        "t{0}.v",
        "t9{0}.y",
        ["t9{0}.z > 0 AND t{0}.v >= t9{0}.y", "t{0}.w IS NOT NULL"],
    ),
]
_CALLS = ("sum({0})", "sum({1})", "count({1})", "count(*)", "min({0})", "max({1})", "sum({0} + 1)")


def draw_totals(seed: int) -> Case:
    dice = random.Random(f"totals/{seed}")
    source, group, one, other, conditions = dice.choice(_SOURCES)
    conditions = dice.sample(conditions, dice.randint(0, len(conditions)))
    # As often as not, a group that is NULL has a key.
    is_present = dice.random() < 0.5
    if is_present:
        conditions.append(f"{group} IS NOT NULL")

    def rows(place: int, more: list[str]) -> str:
        where = " AND ".join([*conditions, *more])
        return f"{source} {'WHERE ' * bool(where)}{where}".format(place)

    def call(place: int) -> str:
        return dice.choice(_CALLS).format(one, other).format(place)

    def total(place: int) -> str:
        value = dice.choice(["{0}", "{0} / 3", "{0} - {1}", "coalesce({0}, {1}, 2)"])
        value = value.format(call(place), call(place))
        if dice.random() < 0.15:
            return f"(SELECT {dice.choice(['max', 'count'])}(t{place}.z) FROM a AS t{place})"
        return f"(SELECT {value} FROM {rows(place, [f'{one} > 1'] if dice.random() < 0.1 else [])})"

    key = group.format(1) if is_present else f"coalesce({group.format(1)}, {dice.choice([-1, -1, 9])})"
    having = f" HAVING {call(1)} {dice.choice(['>=', '<', '<>'])} {total(2)}" if dice.random() < 0.6 else ""
    shown = f"{call(1)} * 10 - {total(3)}" if not having or dice.random() < 0.3 else call(1)
    sql = (
        f"SELECT {key} AS o1, {call(1)} AS o2, {shown} AS o3 FROM {rows(1, [])} "
        f"GROUP BY {group.format(1)}{having}"
    )
    return Case(seed, sql, ("o1", "o2", "o3"), ("o1",), frozenset({"group by"}))


def judge_totals(database: Database, case: Case) -> Verdict:
    """A small state is read as a whole where a total has moved."""
    verdict = judge_with_state(database, case)
    ready = prepare(database, case)
    if isinstance(ready, Verdict) or find_inner_state(ready) is None:
        return verdict
    if verdict.outcome == "full" and verdict.why == "guard":
        verdict = replace(verdict, outcome="incremental", why="")
    return replace(verdict, met=verdict.met | {*OPERATORS})
