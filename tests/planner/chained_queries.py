"""Random queries that read grouped rows several times, or group them again."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.planner.random_queries import Case

_Drawn = tuple[str, int, str]
"""SQL with columns ``o1``, ``o2``, ..., how many these are, and a likely key."""

_GROUPED = {
    "y": "SELECT t1.x AS k, t1.y AS c, sum(t1.z) AS v, count(*) AS n FROM a AS t1{} GROUP BY t1.x, t1.y",
    "w": "SELECT t1.x AS k, t2.w AS c, sum(t2.v) AS v, count(*) AS n FROM a AS t1 "
    "JOIN b AS t2 ON t2.aid = t1.id{} GROUP BY t1.x, t2.w",
}


def draw_chained(seed: int) -> Case:
    """A query that reads grouped rows several times, or groups them again."""
    dice = random.Random(f"chained/{seed}")
    name = dice.choice(list(SHAPES))
    sql, width, key = SHAPES[name](dice)
    columns = tuple(f"o{place}" for place in range(1, width + 1))
    keys = tuple(key.split()) if dice.random() < 0.7 else tuple(dice.sample(columns, dice.randint(1, 2)))
    return Case(seed, sql, columns, keys, frozenset({name, *OPERATORS}), one_as_it_was=dice.random() < 0.3)


def _grouped(dice: random.Random) -> str:
    """Sums of groups without NULLs, mostly."""
    some = dice.choice(["t1.x IS NOT NULL", "t1.x > 0", "t1.x < 3 AND t1.y > 0", "t1.x IS NOT NULL"])
    name = dice.choice(list(_GROUPED))
    present = f" WHERE {some} AND {'t1.y' if name == 'y' else 't2.w'} IS NOT NULL"
    return _GROUPED[name].format(present if dice.random() < 0.9 else "")


def _joined(dice: random.Random) -> _Drawn:
    """This year next to last year: one grouped query with several filters."""
    word = dice.choice(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN"])
    link = dice.choice(["q.k = r.k AND q.c = r.c + 1", "q.k = r.k", "q.k = r.k AND q.c < r.c"])
    where = dice.choice(["", " WHERE q.c = 1 AND r.c = 2", " WHERE q.v > r.v", " WHERE q.c > 0"])
    third = " JOIN y AS s ON s.k = q.k AND s.c = q.c" if dice.random() < 0.3 else ""
    items = "q.k AS o1, q.c AS o2, r.k AS o3, r.c AS o4, q.v AS o5, r.v AS o6"
    sql = f"SELECT {items} FROM y AS q {word} y AS r ON {link}{third}{where}"
    return f"WITH y AS ({_grouped(dice)}) {sql}", 6, dice.choice(["o1 o2", "o1 o2 o3 o4"])


def _channels(dice: random.Random) -> _Drawn:
    """Channels united, summed and compared."""
    after = " UNION ALL ".join(f"SELECT u.*, '{name}' AS h FROM ({_grouped(dice)}) AS u" for name in "sw")
    rows = (
        "SELECT t1.x AS k, t1.y AS c, t1.z AS v, 's' AS h FROM a AS t1 "
        "UNION ALL SELECT t2.w, t2.aid, t2.v, 'w' FROM b AS t2"
    )
    before = (
        f"SELECT k, c, sum(v) AS v, count(*) AS n, h FROM ({rows}) AS u "
        "WHERE k IS NOT NULL AND c IS NOT NULL GROUP BY k, c, h"
    )
    y = dice.choice([after, before])
    where = dice.choice(["q.h = 's' AND r.h = 'w'", "q.h <> r.h", "q.h = 's'", "q.v > r.v"])
    items = "q.k AS o1, q.c AS o2, q.h AS o3, r.c AS o4, r.h AS o5, q.v AS o6, r.v AS o7"
    sql = f"SELECT {items} FROM y AS q JOIN y AS r ON q.k = r.k WHERE {where}"
    return f"WITH y AS ({y}) {sql}", 7, dice.choice(["o1 o2", "o1 o2 o3 o4 o5"])


def _sums_of_sums(dice: random.Random) -> _Drawn:
    call = dice.choice(["sum(v)", "max(v)", "count(*)", "min(v)", "sum(n)"])
    again = f"SELECT k, {call} AS w, count(*) AS m FROM y GROUP BY k"
    last = dice.choice(
        [
            "SELECT w AS o1, count(*) AS o2, sum(m) AS o3 FROM z GROUP BY w",
            "SELECT k AS o1, w AS o2, rank() OVER (ORDER BY w) AS o3 FROM z",
            "SELECT y.k AS o1, y.c AS o2, z.w AS o3 FROM y JOIN z ON z.k = y.k",
            "SELECT q.k AS o1, q.w AS o2, r.w AS o3 FROM z AS q LEFT JOIN z AS r ON r.k = q.k + 1",
        ]
    )
    return f"WITH y AS ({_grouped(dice)}), z AS ({again}) {last}", 3, dice.choice(["o1", "o1 o2"])


def _threshold(dice: random.Random) -> _Drawn:
    """Sums compared with the average of their kind, or of all."""
    of_kind = dice.choice([" WHERE r.c = q.c", " WHERE r.c = q.c", " WHERE r.k = q.k", ""])
    value = dice.choice(["sum(r.v) / count(*)", "max(r.v)", "sum(r.n)"])
    how = dice.choice([">", ">=", "<"])
    compared = f"q.v {how} (SELECT {value} FROM y AS r{of_kind})"
    sql = f"SELECT q.k AS o1, q.c AS o2, q.v AS o3 FROM y AS q WHERE {compared}"
    return f"WITH y AS ({_grouped(dice)}) {sql}", 3, "o1 o2"


def _windows(dice: random.Random) -> _Drawn:
    """Windows over sums, and rows with those before and after them."""
    over = dice.choice(
        [
            "sum(v) OVER (PARTITION BY k) AS w",
            "rank() OVER (PARTITION BY k ORDER BY c) AS w",
            "lag(v) OVER (PARTITION BY k ORDER BY c) AS w",
            "count(*) OVER (PARTITION BY c) AS w",
        ]
    )
    items = "q.k AS o1, q.c AS o2, q.w AS o3, r.v AS o4"
    last = dice.choice(
        [
            f"SELECT {items} FROM z AS q JOIN z AS r ON r.k = q.k AND r.w = q.w + 1",
            f"SELECT {items} FROM z AS q LEFT JOIN z AS r ON r.k = q.k AND r.c = q.c + 1",
            "SELECT z.w AS o1, count(*) AS o2, sum(z.v) AS o3, max(z.c) AS o4 FROM z GROUP BY z.w",
        ]
    )
    return f"WITH y AS ({_grouped(dice)}), z AS (SELECT k, c, v, {over} FROM y) {last}", 4, "o1 o2"


SHAPES: dict[str, Callable[[random.Random], _Drawn]] = {
    "a self-join of groups": _joined,
    "channels united and compared": _channels,
    "sums of sums": _sums_of_sums,
    "sums compared with their average": _threshold,
    "windows over sums": _windows,
}
OPERATORS = ("groups read again",)
