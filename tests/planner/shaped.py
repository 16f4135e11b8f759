"""Random queries of the shapes that rules of their own are for, as analysts write them."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.planner.random_queries import Case

_Drawn = tuple[str, int, str]
"""SQL with columns ``o1``, ``o2``, ..., how many these are, and a likely key."""


def draw_shaped(seed: int, name: str | None = None) -> Case:
    """A query of a shape. :param name: of which; without it, any."""
    dice = random.Random(f"shaped/{seed}")
    name = name or dice.choice(OPERATORS)
    sql, width, key = SHAPES[name](dice)
    columns = tuple(f"o{place}" for place in range(1, width + 1))
    keys = tuple(key.split()) if dice.random() < 0.6 else tuple(dice.sample(columns, dice.randint(1, 2)))
    return Case(seed, sql, columns, keys, frozenset({name}), one_as_it_was=dice.random() < 0.3)


def _condition(dice: random.Random, column: str) -> str:
    return f"{column} {dice.choice(['>', '<', '<>', '='])} {dice.randint(0, 2)}"


def _channels(dice: random.Random) -> _Drawn:
    """Channels united under a constant, and one compared with another."""
    one, other, none = dice.choice([("'s'", "'w'", "'x'"), ("1", "2", "3")])
    parts = [
        f"SELECT t1.x AS k, {dice.choice(['t1.y', 't1.z'])} AS v, {one} AS c FROM a AS t1",
        f"SELECT t2.aid, t2.v, {other} FROM b AS t2 WHERE {_condition(dice, 't2.w')}",
        f"SELECT t3.k, min(t3.m), {none} FROM c AS t3 GROUP BY t3.k",
    ]
    dice.shuffle(parts)
    # The first part names the columns.
    united = f"SELECT t0.x AS k, t0.x AS v, {one} AS c FROM a AS t0 WHERE t0.x > 2"
    united = " UNION ALL ".join([united, *parts[: dice.choice([2, 3, 3])]])
    y = dice.choice(
        [
            f"SELECT * FROM ({united}) AS u",
            f"SELECT k, sum(v) AS v, c FROM ({united}) AS u GROUP BY k, c",
            f"SELECT k, sum(v) OVER (PARTITION BY c, k) AS v, c FROM ({united}) AS u",
        ]
    )
    word = dice.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    of_one = dice.choice([f"q.c = {one}", f"q.c IN ({one}, {none})", f"q.c <> {other}", f"{one} = q.c"])
    also = dice.choice([f" WHERE {of_one} AND r.c = {other}", f" WHERE {of_one}", f" AND {of_one}"])
    return (
        f"WITH y AS ({y}) SELECT q.k AS o1, q.v AS o2, r.k AS o3, r.v AS o4, r.c AS o5 "
        f"FROM y AS q {word} y AS r ON q.k = r.k{also}",
        5,
        "o1 o3",
    )


SHAPES: dict[str, Callable[[random.Random], _Drawn]] = {
    "united channels": _channels,
}
OPERATORS = tuple(SHAPES)
