"""Random queries that compare each row with one value, in a select list or in WHERE."""

from __future__ import annotations

import random

from tests.planner.random_queries import Case

OPERATORS = ("moved value",)


def draw_compared(seed: int) -> Case:
    dice = random.Random(f"compared/{seed}")
    relation, key, x, y = dice.choice(
        [
            ("a AS t1", "t1.id", "t1.x", "t1.y"),
            ("b AS t2 LEFT JOIN a AS t1 ON t2.aid = t1.id", "t2.id", "t2.v", "t1.z"),
            ("c AS t3 JOIN a AS t1 ON t3.k = t1.id", "t1.id", "t3.m", "t1.x"),
            ("(SELECT t1.id, t1.x, t1.y FROM a AS t1 WHERE t1.z > 0) AS q", "q.id", "q.x", "q.y"),
        ]
    )
    values = [
        f"(SELECT {dice.choice(['max', 'min', 'avg', 'count'])}({v}) FROM {table}{where})"
        for table, v, where in [
            ("b AS t4", dice.choice(["t4.v", "t4.w"]), dice.choice(["", " WHERE t4.aid > 1"])),
            ("c AS t5", "t5.m", dice.choice(["", " WHERE t5.k < 3"])),
            ("a AS t6", "t6.y", ""),
        ]
    ]
    dice.shuffle(values)
    compared = f"{dice.choice([x, y])} {dice.choice(['>', '<=', '=', '<>'])} {values[0]}"
    selected = [
        f"CASE WHEN {compared} THEN {y} ELSE {dice.randint(7, 9)} END",
        f"coalesce({compared}, {x} > 1)",
        f"CASE WHEN {x} > 1 AND {compared} THEN 1 WHEN {y} < {values[1]} THEN 2 END",
    ]
    where = dice.choice(["", "", f" WHERE {x} >= {values[2]}", f" WHERE {y} IS NOT NULL"])
    sql = f"SELECT {key} AS o1, {x} AS o2, {dice.choice(selected)} AS o3 FROM {relation}{where}"
    return Case(seed, sql, ("o1", "o2", "o3"), dice.choice([("o1",), ("o1",), ("o2",)]), frozenset())
