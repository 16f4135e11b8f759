"""Random queries of the shapes that rules of their own are for, as analysts write them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.delta.sorted_sets import sort_sets
from dbt_arctic.planner.delta.ties_by_key import ordered_by_key
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from tests.planner.random_queries import Case
from tests.planner.random_tables import KEYS, SCHEMAS

_Drawn = tuple[str, int, str]
"""SQL with columns ``o1``, ``o2``, ..., how many these are, and a likely key."""


_FACTS = Facts({table: UpstreamFacts(True, key) for table, key in KEYS.items()})


def draw_shaped(seed: int, name: str | None = None) -> Case:
    """A query of a shape. :param name: of which; without it, any."""
    dice = random.Random(f"shaped/{seed}")
    name = name or dice.choice((*OPERATORS, *_RARE))
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


def _chain(dice: random.Random) -> _Drawn:
    """One query several times, each linked to the one before it."""
    c = dice.choice(
        [
            "SELECT t1.x AS k, t1.y AS s FROM a AS t1",
            "SELECT t1.x AS k, sum(t2.v) AS s FROM a AS t1 JOIN b AS t2 ON t2.aid = t1.x GROUP BY t1.x",
            "SELECT t2.v AS k, count(*) AS s FROM b AS t2 GROUP BY t2.v",
        ]
    )
    names = [f"q{place}" for place in range(dice.choice([3, 3, 4]))]
    text = f"c AS {names[0]}"
    for before, name in itertools.pairwise(names):
        word = dice.choice(["JOIN"] * 5 + ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        link = dice.choice(
            [f"{before}.k = {name}.k"] * 4 + [f"{before}.s = {name}.k", f"{before}.k < {name}.k"]
        )
        text += f" {word} c AS {name} ON {link}"
    first, last = names[0], names[-1]
    where = dice.choice(["", "", f" WHERE {_condition(dice, f'{last}.s')}", f" WHERE {first}.k = {last}.s"])
    sql = f"SELECT {first}.k AS o1, {last}.k AS o2, {first}.s AS o3, {last}.s AS o4 FROM {text}{where}"
    return f"WITH c AS ({c}) {sql}", 4, dice.choice(["o1", "o2"])


def _scalars(dice: random.Random) -> _Drawn:
    """Cross joins of relations with one row each, mostly without other relations."""
    rows = [
        f"(SELECT count(*) AS n FROM a AS t1 WHERE {_condition(dice, 't1.x')}) AS q",
        f"(SELECT max(t2.v) AS n FROM b AS t2 WHERE {_condition(dice, 't2.w')}) AS r",
        "(SELECT sum(t3.m) AS n FROM c AS t3 JOIN a AS t4 ON t4.id = t3.k) AS s",
    ]
    dice.shuffle(rows)
    if dice.random() < 0.4:
        rows[dice.randrange(3)] = dice.choice(
            [
                "(SELECT t5.x AS n, count(*) AS m FROM a AS t5 GROUP BY t5.x) AS g",
                "(SELECT count(*) AS n FROM b AS t5 HAVING count(*) > 5) AS g",
                "(SELECT t5.z AS n FROM a AS t5) AS g",
            ]
        )
    names = [row.split()[-1] for row in rows]
    items = ", ".join(f"{name}.n AS o{place}" for place, name in enumerate(names, 2))
    return f"SELECT 1 AS o1, {items} FROM {' CROSS JOIN '.join(rows)}", 4, dice.choice(["o1", "o2", "o3 o4"])


def _sets(dice: random.Random) -> _Drawn:
    """Grouping sets over a join, of which the key has all columns or some."""
    sets = dice.choice(
        [
            "ROLLUP (t1.x, t2.v, t2.w)",
            "CUBE (t1.x, t2.v, t2.w)",
            "GROUPING SETS ((t1.x, t2.v), (t2.w), ())",
            "t1.x, ROLLUP (t2.v, t2.w)",
        ]
    )
    word = dice.choice(["JOIN", "LEFT JOIN"])
    sql = (
        "SELECT t1.x AS o1, t2.v AS o2, t2.w AS o3, count(*) AS o4, sum(t1.y) AS o5 "
        f"FROM a AS t1 {word} b AS t2 ON t2.aid = t1.id GROUP BY {sets}"
    )
    return sql, 5, "o1 o2 o3"


_NUMBERED = "row_number() OVER (PARTITION BY t1.x ORDER BY t1.y, t1.id)"


def _ties(dice: random.Random) -> _Drawn:
    """Windows whose order leaves no rows equal, for other reasons than that it ends with a key."""
    call = dice.choice(["lag({})", "sum({}) FILTER (WHERE {} > 0)", "sum({})", "first_value({})"])
    rows = "" if call.startswith("lag") else " ROWS UNBOUNDED PRECEDING"
    over = f"{call.replace('{}', 'q.v')} OVER (PARTITION BY q.g ORDER BY q.n{{}}{rows})"
    relation = dice.choice(
        [
            f"SELECT t1.id, t1.x AS g, t1.z AS v, {_NUMBERED} AS n FROM a AS t1",
            "SELECT t1.x AS id, t1.x AS g, 'k' AS c, t1.y AS n, sum(t1.z) AS v FROM a AS t1 GROUP BY ALL",
            "SELECT q1.x AS id, q1.y AS g, q1.d AS n, month(q1.d) AS c, count(*) AS v FROM "
            "(SELECT t1.x, t1.y, make_date(2026, t1.z + 1, 1) AS d FROM a AS t1) AS q1 GROUP BY ALL",
            "SELECT q1.x AS id, q1.c AS g, q1.y AS n, q1.v FROM (SELECT t1.x, t1.y, CAST(t1.z AS STRING) c, "
            "sum(t1.id) AS v FROM a AS t1 GROUP BY ALL) AS q1 WHERE q1.c = '1'",
            "SELECT t1.id, 1 AS g, t1.x AS v, t1.id + 0 AS n FROM a AS t1 "
            "UNION ALL SELECT t2.id, 2, t2.v, t2.id + 0 FROM b AS t2",
            "SELECT coalesce(q1.x, q2.v) AS id, coalesce(q1.y, q2.w) AS g, coalesce(q1.x, q2.v) AS n, "
            "coalesce(q1.s, 0) - coalesce(q2.s, 1) AS v FROM (SELECT t1.x, t1.y, sum(t1.z) AS s FROM a AS t1 "
            "WHERE t1.x >= 0 AND t1.y IS NOT NULL GROUP BY ALL) AS q1 FULL JOIN "
            "(SELECT t2.v, t2.w, count(*) AS s FROM b AS t2 GROUP BY ALL) AS q2 "
            "ON q2.v = q1.x AND q1.y = q2.w",
        ]
    )
    last = ", q.id" if "q1" in relation or "UNION" in relation else ""
    where = f" WHERE {_condition(dice, 'q.v')}" if dice.random() < 0.3 else ""
    sql = f"SELECT q.id AS o1, q.v AS o2, {over.format(last)} AS o3 FROM ({relation}) AS q{where}"
    return sql, 3, "o1"


def _end_of_order(dice: random.Random) -> _Drawn:
    """The first, the least or the last of what the rows are ordered by, though these are tied."""
    function = dice.choice(["min", "max", "first_value", "last_value"])
    frame = dice.choice(["UNBOUNDED PRECEDING", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"])
    order = dice.choice(["t1.y", "t1.y DESC", "t1.y, t1.z", "t1.z DESC, t1.y"])
    over = f"{function}(t1.y) OVER (PARTITION BY t1.x ORDER BY {order} ROWS {frame})"
    return f"SELECT t1.id AS o1, t1.x AS o2, {over} AS o3 FROM a AS t1", 3, "o1"


def _any_order(dice: random.Random) -> _Drawn:
    """Aggregates of the order of rows, in a form that no order changes."""
    v, by = dice.choice([("t1.y", "t1.id"), ("t1.z", "t1.id"), ("coalesce(t1.y, t1.z)", "t1.id")])
    collect = dice.choice(["collect_set", "collect_list", "array_agg"])
    listed = f"{dice.choice(['listagg', 'string_agg'])}(CAST({v} AS STRING), ',') WITHIN GROUP (ORDER BY "
    calls = [
        f"array_join(array_sort({collect}({v})), ',')",
        f"array_join(sort_array({collect}({v}){dice.choice(['', ', true', ', false'])}), ',')",
        f"size({collect}({v}))",
        f"array_contains({collect}({v}), {dice.randint(0, 3)})",
        f"array_max({collect}({v}))",
        f"{listed}{dice.choice([v, by, f'{v} DESC, {by}'])})",
        f"max_by({v}, {by})",
        f"min_by({v}, struct(t1.z, {by}))",
        "any_value(t1.x)",
        "first(t1.x + 1)",
    ]
    joined = "a AS t1"
    if dice.random() < 0.4:
        # The key of one side determines its other columns; the key of the other side identifies its rows.
        joined = f"a AS t1 {dice.choice(['JOIN', 'LEFT JOIN'])} b AS t2 ON t2.aid = t1.id"
        calls = [
            "any_value(t1.y)",
            "last(t1.z - t1.y)",
            "max_by(t2.v, t2.id)",
            "size(collect_list(t2.v))",
            "array_join(sort_array(collect_list(t2.w)), '-')",
            "min_by(t1.y, t2.v)",
        ]
        groups = "t1.id AS o1, t1.x AS o2"
    else:
        groups = dice.choice(["t1.x AS o1, 1 AS o2", "t1.x AS o1, t1.y > 1 AS o2"])
    first, second = dice.sample(calls, 2)
    if dice.random() < 0.4:
        # Sets whose order is arbitrary as they are written.
        value = dice.choice(["t1.y", "t2.v" if "t2" in joined else "t1.z"])
        made = dice.choice(["collect_set({})", "array_agg(DISTINCT {})", "collect_list(DISTINCT {})"])
        first, second = f"array_join({made.format(value)}, ',')", dice.choice([first, second])
    having = f" HAVING size({collect}(t1.z)) > {dice.randint(0, 1)}" if dice.random() < 0.2 else ""
    by_group = (
        " GROUP BY t1.id, t1.x"
        if "t2" in joined
        else " GROUP BY 1, 2"
        if "> 1" in groups
        else " GROUP BY t1.x"
    )
    where = f" WHERE {_condition(dice, 't1.y')}" if dice.random() < 0.2 else ""
    sql = f"SELECT {groups}, {first} AS o3, {second} AS o4 FROM {joined}{where}{by_group}{having}"
    return sort_sets(sql, _FACTS, lambda tree: analyse_query(tree, SCHEMAS)), 4, "o1"


def by_key(sql: str, key: tuple[str, ...]) -> str:
    """The query with keys at the end of the orders that leave rows equal."""
    return ordered_by_key(sql, key, _FACTS, lambda tree: analyse_query(tree, SCHEMAS))


def _tied(dice: random.Random) -> _Drawn:
    """Windows with ties, which the key decides."""
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    call, frame = dice.choice(
        [
            ("row_number()", ""),
            ("row_number()", ""),
            ("lag({})", ""),
            ("ntile(2)", ""),
            ("sum({})", frame),
            ("first_value({})", ""),
            ("count({})", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"),
        ]
    )
    relation, k, v, n = dice.choice(
        [
            ("a AS t1", "t1.id", "t1.y", "t1.z"),
            ("(SELECT t1.x AS k, t1.y AS n, sum(t1.z) AS v FROM a AS t1 GROUP BY t1.x, t1.y) AS q", *"kvn"),
            ("(SELECT t1.id AS k, t1.x AS n, t2.v FROM a AS t1 LEFT JOIN b AS t2 ON t2.id = t1.z)", *"kvn"),
        ]
    )
    order = dice.choice([n, f"{n} DESC", f"coalesce({n}, {v})"])
    over = f"{call.format(v)} OVER (PARTITION BY {dice.choice([v, '1'])} ORDER BY {order} {frame})"
    inner = f"SELECT {k} AS o1, {n} AS o2, {over} AS o3 FROM {relation}"
    sql = f"SELECT * FROM ({inner}) AS r WHERE o3 <= {dice.randint(1, 3)}" if dice.random() < 0.5 else inner
    return by_key(sql, ()), 3, "o1"


def _averages(dice: random.Random) -> _Drawn:
    """Averages of BIGINT of which no sums are stored: below joins, in conditions and in subqueries."""
    v = f"CAST({dice.choice(['t1.y', 't1.z', 't1.y - t1.z', 't1.z * 1000'])} AS BIGINT)"
    inner = f"SELECT t1.x AS k, avg({v}) AS m, count(*) AS n FROM a AS t1 GROUP BY t1.x"
    form = dice.randrange(5)
    if form == 0:
        kind = dice.choice(["JOIN", "LEFT JOIN"])
        sql = f"SELECT t2.id AS o1, t2.v AS o2, q.m AS o3 FROM b AS t2 {kind} ({inner}) AS q ON q.k = t2.v"
    elif form == 1:
        sql = (
            f"SELECT q.k AS o1, q.n AS o2, q.m * 2 AS o3 FROM ({inner}) AS q WHERE q.m > {dice.randint(0, 2)}"
        )
    elif form == 2:
        own = "SELECT avg(CAST(t3.v AS BIGINT)) FROM b AS t3 WHERE t3.aid = t1.id"
        sql = f"SELECT t1.id AS o1, t1.x AS o2, ({own}) AS o3 FROM a AS t1"
    elif form == 3:
        # The groups contain the key of a table, so no sums are stored.
        sql = f"SELECT t1.id AS o1, t1.y AS o2, avg({v}) AS o3 FROM a AS t1 GROUP BY t1.id, t1.y"
    else:
        over = "row_number() OVER (ORDER BY q.m, q.k)"
        sql = f"SELECT q.k AS o1, {over} AS o2, q.m AS o3 FROM ({inner}) AS q"
    return sql, 3, "o1"


def _stacked(dice: random.Random) -> _Drawn:
    """Windows with several partitions over each other, which share some columns or none."""
    partitions = dice.sample(["t1.x, t1.y", "t1.x", "t1.y, t1.x, t1.z", "t1.z, t1.x", "t1.y"], 3)
    calls = dice.sample(["sum(t1.z)", "count(*)", "max(t1.y)", "min(t1.id)", "count(DISTINCT t1.z)"], 3)
    overs = [f"{call} OVER (PARTITION BY {part})" for call, part in zip(calls, partitions, strict=True)]
    items = ", ".join(f"{over} AS o{place}" for place, over in enumerate(overs, 3))
    relation = dice.choice(["a AS t1", "a AS t1 LEFT JOIN b AS t2 ON t2.aid = t1.id AND t2.w > 0"])
    sql = f"SELECT t1.id AS o1, t1.x AS o2, {items} FROM {relation}"
    if dice.random() < 0.5:
        over = f"sum(q.o1) OVER (PARTITION BY {dice.choice(['q.o2, q.o4', 'q.o4', 'q.o2'])})"
        sql = (
            f"SELECT q.o1, q.o2, q.o3, {over} AS o4, q.o5 FROM ({sql}) AS q WHERE {_condition(dice, 'q.o3')}"
        )
    return sql, 5, dice.choice(["o1", "o2", "o2 o4"])


def _interchangeable(dice: random.Random) -> _Drawn:
    """Windows whose order leaves rows equal that are equal in all columns that are used."""
    relation, g, n = dice.choice(
        [
            ("a AS t1", "t1.x", "t1.y"),
            ("a AS t1 JOIN b AS t2 ON t2.aid = t1.id", "t1.z", "t1.id"),
            ("(SELECT t1.x AS g, t1.z + t1.y AS n FROM a AS t1) AS q", "q.g", "q.n"),
        ]
    )
    frame = " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    calls = [("row_number()", ""), (f"sum({n})", frame), (f"lag({n})", ""), ("ntile(2)", "")]
    (call, frame), (other, other_frame) = dice.sample(calls, 2)
    by = dice.choice([f"{n} DESC", f"abs({n} - 1)", f"coalesce({n}, 1)", f"{n} > 1"])
    form, first = dice.choice(["value"] * 3 + ["same order"] * 3 + ["rank"] * 3 + ["other order"]), g
    if form == "value":
        second = dice.choice([n, g])
    elif form == "same order":
        # The rows are in the same places.
        second = f"{other} OVER (PARTITION BY {g} ORDER BY {n}{other_frame})"
    elif form == "rank":
        second = f"{dice.choice(['rank', 'dense_rank'])}() OVER (PARTITION BY {g} ORDER BY {by})"
    else:
        # They are not in those of another order. Only the key could say so, and this one is computed.
        second = f"{other} OVER (PARTITION BY {g} ORDER BY {by}{other_frame})"
        first = f"{g} + 0"
    over = f"{call} OVER (PARTITION BY {g} ORDER BY {n}{frame})"
    inner = f"SELECT {first} AS o1, {second} AS o2, {over} AS o3 FROM {relation}"
    if dice.random() < 0.4:
        inner = f"SELECT r.o3 AS o1, r.o1 AS o2, count(*) AS o3 FROM ({inner}) AS r GROUP BY r.o3, r.o1"
    return inner, 3, dice.choice(["o1", "o1 o2", "o1 o3"])


def _lateral(dice: random.Random) -> _Drawn:
    """A subquery that refers to the row before it: its rows, the first ones, groups, or one row of sums."""
    left, link = dice.choice(
        [
            ("a AS t1", "t2.aid = t1.x"),
            ("a AS t1", "t1.y = t2.w AND t2.aid = t1.x"),
            ("c AS t3 JOIN a AS t1 ON t1.z = t3.m", "t3.k = t2.v"),
        ]
    )
    own = dice.choice(["", f" AND {_condition(dice, 't2.w')}"])
    more = dice.choice([f" AND t2.w {dice.choice(['>', '<>'])} t1.z", own])
    rows = "SELECT t2.v AS u, t2.id AS n FROM b AS t2 WHERE"
    sums = f"{dice.choice(['sum', 'max'])}(t2.v) AS u, count({dice.choice(['*', 't2.w'])}) AS n FROM b AS t2"
    order = dice.choice(["n", "u DESC, n", "t2.w, t2.id DESC"])
    inner = dice.choice(
        [
            f"{rows} {link}{more}",
            f"SELECT t2.v + t1.z AS u, t1.y AS n FROM b AS t2 WHERE {link}{own} ORDER BY t2.id LIMIT 1",
            f"{rows} {link}{own} ORDER BY {order} LIMIT {dice.randint(1, 2)}",
            f"SELECT t2.w AS u, count(*) AS n FROM b AS t2 WHERE {link}{own} GROUP BY t2.w"
            f"{dice.choice(['', ' HAVING count(*) > 1'])}",
            f"SELECT DISTINCT t2.w AS u, t2.v AS n FROM b AS t2 WHERE {link}{own}",
            f"SELECT {sums} WHERE {link}{more}",
        ]
    )
    word, on = dice.choice(
        [("JOIN", f"q.n <> {dice.randint(0, 2)}"), ("LEFT JOIN", "TRUE"), ("JOIN", "TRUE")]
    )
    word = "JOIN" if "+" in inner else word
    where = f" WHERE {_condition(dice, 'q.u')}" if dice.random() < 0.3 else ""
    sql = f"SELECT t1.id AS o1, q.u AS o2, q.n AS o3 FROM {left} {word} LATERAL ({inner}) AS q ON {on}{where}"
    return sql, 3, dice.choice(["o1", "o1 o3"])


def _disjoint(dice: random.Random) -> _Drawn:
    """Parts of one table that a condition separates, and a window over them whose order is unique so."""
    one, other = dice.choice(
        [
            ("{0} > 1", "NOT {0} > 1"),
            ("{0} <= 1", "{0} > 1"),
            ("{0} IS NULL", "{0} IS NOT NULL"),
            ("NOT ({0} = 1)", "{0} = 1"),
        ]
    )
    by = dice.choice(["x", "z"])
    groups = "(SELECT t4.k, min(t4.m) AS m FROM c AS t4 GROUP BY t4.k) AS t2"
    inner = f"(SELECT * FROM a AS t4 WHERE {one.format(f't4.{by}')}) AS t1"
    first = dice.choice(
        [
            f"SELECT t1.id, t1.x, t1.y AS v FROM {inner}",
            f"SELECT t1.id, t1.x, t2.m AS v FROM {inner} JOIN {groups} ON t2.k = t1.z",
            f"SELECT t1.id, t1.x, t1.z AS v FROM {inner} LEFT SEMI JOIN b AS t2 ON t2.aid = t1.x",
        ]
    )
    value = dice.choice(["count(*) OVER (PARTITION BY t3.z)", "t3.z"])
    also = dice.choice(["", " AND t3.y >= 0"])
    second = f"SELECT t3.id, t3.y, {value} FROM a AS t3 WHERE {other.format(f't3.{by}')}{also}"
    call = dice.choice(["sum(v)", "lag(v)", "row_number()", "first_value(v)", "lead(v)"])
    frame = " ROWS UNBOUNDED PRECEDING" if call[0] in "sf" else ""
    part = dice.choice(["PARTITION BY x ", ""])
    order = dice.choice(["id", "v DESC, id"])
    return (
        f"SELECT id AS o1, {call} OVER ({part}ORDER BY {order}{frame}) AS o2, x AS o3 "
        f"FROM ({first} UNION ALL {second}) AS q",
        3,
        "o1",
    )


SHAPES: dict[str, Callable[[random.Random], _Drawn]] = {
    "united channels": _channels,
    "chained equalities": _chain,
    "relations of one row": _scalars,
    "grouping sets of a join": _sets,
    "windows without ties": _ties,
    "ends of a window's order": _end_of_order,
    "aggregates in any order": _any_order,
    "averages of bigint": _averages,
    "ties by key": _tied,
    "windows over each other": _stacked,
    "windows over equal rows": _interchangeable,
    "lateral subqueries": _lateral,
    "parts that exclude each other": _disjoint,
}
OPERATORS = tuple(SHAPES)

_RARE = ("aggregates in any order", "chained equalities", "parts that exclude each other")
"""Shapes whose result changes seldom, so they are drawn twice as often."""
