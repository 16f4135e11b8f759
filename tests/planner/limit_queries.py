"""The first rows of random queries, which follow from a state: all rows, or the sums of their groups."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view, outer_sql, without_spare
from tests.planner.common_queries import by_key
from tests.planner.oracle import Database, Verdict, prepare
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import KEYS
from tests.planner.states import STATE, judge_state, types_of_state

OPERATORS = ("limit", "limit of grouping sets")


def draw_limited(seed: int) -> Case:
    """In an order by all columns: rows that it leaves equal are equal."""
    dice, case = random.Random(f"limited/{seed}"), draw(seed)
    if dice.random() < 0.25:
        return _of_sets(seed, dice)
    columns = dice.sample(case.columns, len(case.columns))
    order = ", ".join(f"{name}{dice.choice(['', ' DESC'])}" for name in columns)
    rows = f"LIMIT {dice.randint(1, 4)}{dice.choice(['', '', ' OFFSET 1'])}"
    return replace(case, sql=f"SELECT * FROM (\n{case.sql}\n) AS q ORDER BY {order} {rows}")


def _of_sets(seed: int, dice: random.Random) -> Case:
    """Groups of several sets, ordered by the key: only the key shows that there are no ties."""
    sets = dice.choice(["ROLLUP (t1.x, t2.v)", "CUBE (t1.x, t2.v)", "GROUPING SETS ((t1.x), (t2.v), ())"])
    sql = (
        "SELECT coalesce(t1.x, 9) AS o1, coalesce(t2.v, 9) AS o2, grouping(t1.x) + 2 * grouping(t2.v) AS o3, "
        "grouping(t1.x) AS o4, count(*) AS o5, sum(t2.w) AS o6 "
        f"FROM a AS t1 {dice.choice(['JOIN', 'LEFT JOIN'])} b AS t2 ON t2.aid = t1.id GROUP BY {sets}"
    )
    key = ("o1", "o2", "o3")
    order = ", ".join(f"{name}{dice.choice(['', ' DESC'])}" for name in dice.sample(key, 3))
    order = f"{dice.choice(['', 'o5, ', 'o4 DESC, '])}{order}"
    if dice.random() < 0.3:
        order = dice.choice(["o5", "o3, o5 DESC"])
    limited = by_key(f"{sql} ORDER BY {order} LIMIT {dice.randint(1, 5)}", key)
    columns = tuple(f"o{place}" for place in range(1, 7))
    return Case(seed, limited, columns, key, frozenset({"limit of grouping sets"}))


def judge_limited(database: Database, case: Case) -> Verdict:
    """The refresh of the state, and the first rows of it, against the full query."""
    ready = prepare(database, case)
    if isinstance(ready, Verdict):
        return ready
    made = find_auxiliary_view(ready.query, case.key, KEYS)
    if made is None:
        return Verdict("full", "limit", ready.changed)
    made = without_spare(made)
    own = judge_state(database, ready, made)
    if own.outcome != "incremental":
        return replace(own, changed=ready.changed)
    over = outer_sql(made, f"`{STATE}`", types_of_state(database))
    found = Counter(database.rows(over))
    if found != ready.expected:
        return Verdict("wrong", f"over the state {found}, not {ready.expected}\n{over}", ready.changed)
    return replace(own, changed=ready.changed, met=own.met | case.operators & {OPERATORS[1]} | {OPERATORS[0]})
