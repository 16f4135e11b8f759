"""Random queries with QUALIFY, PIVOT, UNPIVOT, generators in select lists, and keys that a project declares.

The planner reads what DuckDB does not know, or knows otherwise. The result is that of a query without it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.planner.random_queries import Case
from tests.planner.random_tables import DECLARED, KEYS

OPERATORS = ("qualify", "pivot", "unpivot", "generator in a select list", "declared key")


@dataclass(frozen=True)
class _Rows:
    """Rows with the columns ``k``, ``g`` and ``v``, in both forms.

    :param unique: what to end an order by, so that it leaves no rows equal; empty if that is not known.
    """

    plain: str
    written: str
    operators: frozenset[str]
    unique: str = ""


def draw_extended(seed: int) -> Case:
    dice = random.Random(f"extended/{seed}")
    below = dice.choices([_pivoted, _unpivoted, _generated, _declared], [28, 26, 25, 21])[0](dice)
    plain, written, operators = _qualified(dice, below) if dice.random() < 0.5 else _selected(dice, below)
    columns = ("o1", "o2", "o3")
    key = ("o1",) if dice.random() < 0.6 else tuple(dice.sample(columns, dice.randint(1, 2)))
    return Case(
        seed,
        plain,
        columns,
        key,
        operators,
        one_as_it_was=dice.random() < 0.2,
        written=written,
        keys=DECLARED if "declared key" in operators else KEYS,
    )


def _where(dice: random.Random, column: str) -> str:
    return dice.choice(["", "", f" WHERE {column} > {dice.randint(0, 1)}", f" WHERE {column} IS NOT NULL"])


def _pivoted(dice: random.Random) -> _Rows:
    call, where = dice.choice(["sum", "sum", "min", "max", "count"]), _where(dice, "t1.id")
    below = f"(SELECT t1.y, t1.x, t1.z FROM a AS t1{where}) AS q"
    if dice.random() < 0.3:
        pivot = f"{below} PIVOT (count(z) AS n, sum(z) AS s FOR x IN (1 AS one)) AS p"
        columns, calls = ("one_n", "one_s"), (("count", 1), ("sum", 1))
    else:
        pivot = f"{below} PIVOT ({call}(z) FOR x IN (1, 2 AS two)) AS p"
        columns, calls = ("1", "two"), ((call, 1), (call, 2))
    values = []
    for function, value in calls:
        of_value = f"CASE WHEN t1.x = {value} THEN t1.z END"
        text = f"{function}({of_value})"
        if function == "count":
            text = f"CASE WHEN count(CASE WHEN t1.x = {value} THEN 1 END) > 0 THEN {text} END"
        values.append(text)
    return _Rows(
        f"SELECT t1.y AS k, {values[0]} AS g, {values[1]} AS v FROM a AS t1{where} GROUP BY t1.y",
        f"SELECT p.y AS k, p.`{columns[0]}` AS g, p.{columns[1]} AS v FROM {pivot}",
        frozenset({"pivot"}),
        "q.k",
    )


def _unpivoted(dice: random.Random) -> _Rows:
    where, nulls = _where(dice, "t1.z"), dice.choice(["", "INCLUDE NULLS ", "EXCLUDE NULLS "])
    parts = []
    for column, name in (("x", "x"), ("y", "why")):
        own = where if nulls == "INCLUDE NULLS " else f"{where or ' WHERE TRUE'} AND t1.{column} IS NOT NULL"
        parts.append(f"SELECT t1.id AS k, '{name}' AS g, t1.{column} AS v FROM a AS t1{own}")
    below = f"(SELECT t1.id, t1.x, t1.y FROM a AS t1{where}) AS q"
    unpivot = f"{below} UNPIVOT {nulls}(n FOR name IN (x, y AS `why`)) AS u"
    return _Rows(
        " UNION ALL ".join(parts),
        f"SELECT u.id AS k, u.name AS g, u.n AS v FROM {unpivot}",
        frozenset({"unpivot"}),
    )


def _generated(dice: random.Random) -> _Rows:
    where = _where(dice, "t1.x")
    first, second = dice.sample(["t1.x", "t1.y", "t1.z", "t1.x + 1"], 2)
    form = dice.choice(["explode", "posexplode", "explode_outer"])
    row = f"SELECT t1.id AS k, {{}} AS g, {{}} AS v FROM a AS t1{where}"
    if form == "explode":
        plain = [row.format("t1.z", first), row.format("t1.z", second)]
        written = f"SELECT t1.id AS k, t1.z AS g, explode(array({first}, {second})) AS v FROM a AS t1{where}"
    elif form == "posexplode":
        plain = [row.format("0", first), row.format("1", second)]
        written = f"SELECT t1.id AS k, posexplode(array({first}, {second})) AS (g, v) FROM a AS t1{where}"
    else:
        more = f"{where} AND" if where else " WHERE"
        plain = [
            row.format("t1.z", f"CASE WHEN t1.y > 0 THEN {first} END"),
            f"{row.format('t1.z', second).removesuffix(where)}{more} t1.y > 0",
        ]
        values = f"CASE WHEN t1.y > 0 THEN array({first}, {second}) END"
        written = f"SELECT t1.id AS k, t1.z AS g, explode_outer({values}) AS v FROM a AS t1{where}"
    operators = frozenset({"generator in a select list"})
    return _Rows(" UNION ALL ".join(plain), written, operators)


def _declared(dice: random.Random) -> _Rows:
    """Rows whose orders are unique only by the declared key."""
    sql, unique = dice.choice(
        [
            ("SELECT t3.k, t3.m AS g, t3.n AS v FROM c AS t3", "q.k"),
            ("SELECT t1.id AS k, t3.m AS g, t3.n AS v FROM a AS t1 LEFT JOIN c AS t3 ON t3.k = t1.x", "q.k"),
            ("SELECT t1.id AS k, t1.z AS g, t3.n AS v FROM a AS t1 JOIN c AS t3 ON t1.y = t3.k", "q.k"),
            (
                "SELECT t3.k, any_value(t3.m) AS g, count(t1.id) AS v FROM c AS t3 "
                "LEFT JOIN a AS t1 ON t1.x = t3.k GROUP BY t3.k",
                "q.k",
            ),
        ]
    )
    return _Rows(sql, sql, frozenset({"declared key"}), unique)


def _window(dice: random.Random, below: _Rows) -> tuple[str, str]:
    """A window function over the rows, and a condition on its value."""
    ordered = [
        ("lag(q.v) OVER (PARTITION BY q.g ORDER BY {})", "> 0"),
        ("first_value(q.v) OVER (PARTITION BY q.g ORDER BY {})", "> 0"),
        ("sum(q.v) OVER (PARTITION BY q.g ORDER BY {} ROWS UNBOUNDED PRECEDING)", "< 4"),
    ]
    if "declared key" not in below.operators:
        # Rows that are equal in such an order may be equal in all columns, with and without a key.
        ordered += [
            ("row_number() OVER (PARTITION BY q.g ORDER BY q.v DESC, {})", "<= 1"),
            ("row_number() OVER (PARTITION BY q.g ORDER BY {})", f"<= {dice.randint(1, 2)}"),
        ]
    others = [
        ("rank() OVER (PARTITION BY q.g ORDER BY q.v)", "= 1"),
        ("count(*) OVER (PARTITION BY q.k)", "> 1"),
        ("max(q.v) OVER (PARTITION BY q.g)", "= q.v"),
        ("count(*) OVER (PARTITION BY q.g)", "> 1"),
    ]
    over, condition = dice.choice(ordered if below.unique else others)
    return over.format(below.unique), condition


def _qualified(dice: random.Random, below: _Rows) -> tuple[str, str, frozenset[str]]:
    over, condition = _window(dice, below)
    where = dice.choice(["", "", " WHERE q.k > 0"])
    select, operators = "SELECT q.k AS o1, q.g AS o2,", below.operators | {"qualify"}
    if dice.random() < 0.3 and "q." not in condition:
        # By the alias in the select list.
        select += f" {over} AS o3"
        inner, filtered, of_alias = select, f"r.o3 {condition}", f"o3 {condition}"
    else:
        select += " q.v AS o3"
        inner, filtered, of_alias = f"{select}, {over} {condition} AS c", "r.c", f"{over} {condition}"
    return (
        f"SELECT r.o1, r.o2, r.o3 FROM ({inner} FROM ({below.plain}) AS q{where}) AS r WHERE {filtered}",
        f"{select} FROM ({below.written}) AS q{where} QUALIFY {of_alias}",
        operators,
    )


def _selected(dice: random.Random, below: _Rows) -> tuple[str, str, frozenset[str]]:
    forms = [
        f"SELECT q.k AS o1, q.g AS o2, {_window(dice, below)[0]} AS o3 FROM ({{}}) AS q",
    ]
    if not below.unique:
        forms += [
            "SELECT q.g AS o1, count(*) AS o2, sum(q.v) AS o3 FROM ({}) AS q GROUP BY q.g",
            "SELECT q.k AS o1, q.g AS o2, q.v AS o3 FROM ({}) AS q WHERE q.v > 0",
            "SELECT DISTINCT q.k AS o1, q.v AS o2, t2.v AS o3 FROM ({}) AS q JOIN b AS t2 ON t2.aid = q.k",
        ]
    sql = dice.choice(forms)
    return sql.format(below.plain), sql.format(below.written), below.operators
