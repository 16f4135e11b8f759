"""Random queries and random changes, for a planner that claims to be right for all of them.

Three small tables of small integers and NULLs: ``a`` and ``b`` have a key, ``c`` has none and holds
duplicates. A query is drawn as text, with the operators that it has; so is what changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

SCHEMAS = {
    "a": [("id", "int"), ("x", "int"), ("y", "int"), ("z", "int")],
    "b": [("id", "int"), ("aid", "int"), ("v", "int"), ("w", "int")],
    "c": [("k", "int"), ("m", "int"), ("n", "int")],
}
KEYS = {"a": ("id",), "b": ("id",), "c": ()}

Row = tuple[int | None, ...]


@dataclass
class Case:
    """A query, its output columns, the columns that name its rows, and tables before and after."""

    sql: str
    columns: list[str]
    key: list[str]
    operators: set[str]
    old: dict[str, list[Row]]
    new: dict[str, list[Row]]


@dataclass
class Drawn:
    sql: str
    columns: list[str]


@dataclass
class Drawing:
    """Draws one query. ``operators`` collects what it has."""

    dice: random.Random
    operators: set[str] = field(default_factory=set)
    ctes: list[str] = field(default_factory=list)
    _names: int = 0

    def name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def query(self, depth: int) -> Drawn:
        kinds: list[Callable[[int], Drawn]] = [self.select] * 5 + [self.grouped] * 4
        if depth > 0:
            kinds += [self.windowed] * 2 + [self.union, self.distinct, self.set_operation]
        return self.dice.choice(kinds)(depth)

    # Relations

    def relation(self, depth: int) -> tuple[str, list[str]]:
        """Text for FROM, and its columns, qualified."""
        alias = self.name("t")
        if depth > 0 and self.dice.random() < 0.4:
            inner = self.query(depth - 1)
            if self.dice.random() < 0.3:
                self.operators.add("cte")
                cte = self.name("w")
                self.ctes.append(f"{cte} AS ({inner.sql})")
                return f"{cte} AS {alias}", [f"{alias}.{column}" for column in inner.columns]
            return f"({inner.sql}) AS {alias}", [f"{alias}.{column}" for column in inner.columns]
        table = self.dice.choice(list(SCHEMAS))
        return f"{table} AS {alias}", [f"{alias}.{column}" for column, _ in SCHEMAS[table]]

    def source(self, depth: int) -> tuple[str, list[str]]:
        text, columns = self.relation(depth)
        while self.dice.random() < 0.45 and text.count("JOIN") < 3:
            other, more = self.relation(depth - 1)
            kind = self.dice.choice(
                ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI", "ANTI"]
            )
            left, right = self.dice.choice(columns), self.dice.choice(more)
            on = f"{left} = {right}"
            if self.dice.random() < 0.2:
                on += f" AND {self.dice.choice(columns)} < {self.dice.choice(more)}"
            if self.dice.random() < 0.1:
                on = f"{left} < {right}"
            if kind in ("SEMI", "ANTI"):
                self.operators.add("semi" if kind == "SEMI" else "anti")
                text = f"{text} LEFT {kind} JOIN {other} ON {on}"
                continue
            self.operators.add(
                {"JOIN": "inner", "LEFT JOIN": "left", "RIGHT JOIN": "right", "FULL JOIN": "full"}[kind]
            )
            text = f"{text} {kind} {other} ON {on}"
            columns = columns + more
        if self.dice.random() < 0.06:
            self.operators.add("explode")
            alias = self.name("e")
            both = ", ".join(self.dice.choice(columns) for _ in range(2))
            text = f"{text} LATERAL VIEW EXPLODE(ARRAY({both})) {alias} AS v"
            columns = [*columns, f"{alias}.v"]
        return text, columns

    # Conditions

    def value(self, columns: list[str]) -> str:
        column = self.dice.choice(columns)
        other = self.dice.choice(columns)
        return self.dice.choice(
            [
                column,
                column,
                column,
                f"({column} + {self.dice.randint(1, 3)})",
                f"coalesce({column}, {other})",
                f"CASE WHEN {column} > 1 THEN {other} END",
            ]
        )

    def condition(self, columns: list[str], depth: int) -> str:
        roll = self.dice.random()
        column = self.dice.choice(columns)
        if depth > 0 and roll < 0.35:
            return self.subquery(column, columns, depth - 1)
        if roll < 0.5:
            return f"{column} IS {self.dice.choice(['', 'NOT '])}NULL"
        if roll < 0.6:
            return f"({column} = {self.dice.randint(0, 4)} OR {self.dice.choice(columns)} > {self.dice.randint(0, 3)})"
        return f"{column} {self.dice.choice(['=', '<', '>=', '<>'])} {self.dice.randint(0, 4)}"

    def subquery(self, column: str, columns: list[str], depth: int) -> str:
        text, inner = self.relation(depth)
        linked = f"{self.dice.choice(inner)} = {self.dice.choice(columns)}"
        if self.dice.random() < 0.2:
            linked += f" AND {self.dice.choice(inner)} < {self.dice.choice(columns)}"
        own = f" AND {self.condition(inner, 0)}" if self.dice.random() < 0.4 else ""
        kind = self.dice.choice(
            ["exists", "exists", "not exists", "in", "not in", "scalar", "uncorrelated", "linked in"]
        )
        self.operators.add(kind)
        picked = self.dice.choice(inner)
        if kind == "exists":
            return f"EXISTS (SELECT 1 FROM {text} WHERE {linked}{own})"
        if kind == "not exists":
            return f"NOT EXISTS (SELECT 1 FROM {text} WHERE {linked}{own})"
        if kind == "in":
            return f"{column} IN (SELECT {picked} FROM {text}{own.replace(' AND ', ' WHERE ', 1)})"
        if kind == "linked in":
            return f"{column} IN (SELECT {picked} FROM {text} WHERE {linked}{own})"
        if kind == "not in":
            return f"{column} NOT IN (SELECT {picked} FROM {text}{own.replace(' AND ', ' WHERE ', 1)})"
        function = self.dice.choice(["max", "min", "sum", "count"])
        if kind == "scalar":
            equal = f"{self.dice.choice(inner)} = {self.dice.choice(columns)}"
            return f"{column} >= (SELECT {function}({picked}) FROM {text} WHERE {equal}{own})"
        return f"{column} <= (SELECT {function}({picked}) FROM {text}{own.replace(' AND ', ' WHERE ', 1)})"

    def where(self, columns: list[str], depth: int) -> str:
        parts = [self.condition(columns, depth) for _ in range(self.dice.choice([0, 0, 1, 1, 2]))]
        if parts:
            self.operators.add("filter")
        return " WHERE " + " AND ".join(parts) if parts else ""

    # Queries

    def select(self, depth: int) -> Drawn:
        text, columns = self.source(depth)
        names = [self.name("o") for _ in range(self.dice.randint(1, 4))]
        items = ", ".join(f"{self.value(columns)} AS {name}" for name in names)
        self.operators.add("project")
        return Drawn(f"SELECT {items} FROM {text}{self.where(columns, depth)}", names)

    def grouped(self, depth: int) -> Drawn:
        text, columns = self.source(depth)
        where = self.where(columns, depth)
        groups = [self.value(columns) for _ in range(self.dice.choice([1, 1, 2, 2, 0]))]
        groups = list(dict.fromkeys(groups))
        names = [self.name("g") for _ in groups]
        aggregates = []
        for _ in range(self.dice.randint(1, 2)):
            function = self.dice.choice(["sum", "count", "min", "max", "count(DISTINCT", "sum("])
            opened = (
                f"{function} {self.dice.choice(columns)}"
                if "DISTINCT" in function
                else f"{function.rstrip('(')}({self.value(columns)}"
            )
            aggregates.append(opened + ")")
        aggregates.append("count(*)")
        agg_names = [self.name("s") for _ in aggregates]
        items = ", ".join(
            f"{value} AS {name}"
            for value, name in zip([*groups, *aggregates], [*names, *agg_names], strict=True)
        )
        if not groups:
            self.operators.add("one group")
            return Drawn(f"SELECT {items} FROM {text}{where}", agg_names)
        by = ", ".join(groups)
        style = self.dice.random()
        if style < 0.1:
            self.operators.add("rollup")
            by = f"ROLLUP ({by})"
        elif style < 0.17:
            self.operators.add("cube")
            by = f"CUBE ({by})"
        elif style < 0.22 and len(groups) == 2:
            self.operators.add("grouping sets")
            by = f"GROUPING SETS (({groups[0]}), ({groups[1]}), ())"
        else:
            self.operators.add("group by")
        having = ""
        if self.dice.random() < 0.3:
            self.operators.add("having")
            having = f" HAVING {self.dice.choice(aggregates)} > {self.dice.randint(0, 3)}"
        return Drawn(f"SELECT {items} FROM {text}{where} GROUP BY {by}{having}", [*names, *agg_names])

    def windowed(self, depth: int) -> Drawn:
        text, columns = self.source(depth)
        names = [self.name("o") for _ in range(self.dice.randint(1, 3))]
        items = [f"{self.value(columns)} AS {name}" for name in names]
        partition = self.dice.choice(columns)
        self.operators.add("window")
        for _ in range(self.dice.choice([1, 1, 2])):
            function = self.dice.choice(["sum", "min", "max", "count", "rank", "dense_rank"])
            name = self.name("n")
            if self.dice.random() < 0.15:
                partition = self.dice.choice(columns)
            if function in ("rank", "dense_rank"):
                items.append(
                    f"{function}() OVER (PARTITION BY {partition} ORDER BY {self.dice.choice(columns)}) AS {name}"
                )
            else:
                items.append(
                    f"{function}({self.dice.choice(columns)}) OVER (PARTITION BY {partition}) AS {name}"
                )
            names.append(name)
        if self.dice.random() < 0.5:
            names.append(self.name("p"))
            items.append(f"{partition} AS {names[-1]}")
        return Drawn(f"SELECT {', '.join(items)} FROM {text}{self.where(columns, depth)}", names)

    def distinct(self, depth: int) -> Drawn:
        inner = self.select(depth)
        self.operators.add("distinct")
        return Drawn(inner.sql.replace("SELECT", "SELECT DISTINCT", 1), inner.columns)

    def same_width(self, depth: int, width: int) -> Drawn:
        text, columns = self.source(depth - 1)
        names = [self.name("o") for _ in range(width)]
        items = ", ".join(f"{self.value(columns)} AS {name}" for name in names)
        return Drawn(f"SELECT {items} FROM {text}{self.where(columns, depth - 1)}", names)

    def union(self, depth: int) -> Drawn:
        left = self.query(depth - 1)
        right = self.same_width(depth, len(left.columns))
        word = self.dice.choice(["UNION ALL", "UNION"])
        self.operators.add(word.lower())
        return Drawn(f"({left.sql}) {word} ({right.sql})", left.columns)

    def set_operation(self, depth: int) -> Drawn:
        left = self.select(depth - 1)
        right = self.same_width(depth, len(left.columns))
        word = self.dice.choice(["INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
        self.operators.add(word.lower().removesuffix(" all"))
        return Drawn(f"({left.sql}) {word} ({right.sql})", left.columns)


def _cell(dice: random.Random) -> int | None:
    return None if dice.random() < 0.15 else dice.randint(0, 4)


def _rows(dice: random.Random, table: str, count: int) -> list[Row]:
    width = len(SCHEMAS[table])
    if KEYS[table]:
        return [
            (key, *(_cell(dice) for _ in range(width - 1))) for key in dice.sample(range(10), min(count, 10))
        ]
    return [tuple(_cell(dice) for _ in range(width)) for _ in range(count)]


def _changed(dice: random.Random, table: str, rows: list[Row]) -> list[Row]:
    """Some rows deleted, some updated (keys too), some new, some deleted and back."""
    if dice.random() < 0.3:
        return list(rows)
    if dice.random() < 0.04:
        return []
    made: list[Row] = []
    for row in rows:
        roll = dice.random()
        if roll < 0.12:
            continue
        if roll < 0.35:
            cells = list(row)
            cells[dice.randrange(1 if KEYS[table] else 0, len(cells))] = _cell(dice)
            row = tuple(cells)
        made.append(row)
    known = {row[0] for row in made}
    for row in _rows(dice, table, dice.choice([0, 0, 1, 2])):
        if not KEYS[table] or row[0] not in known:
            made.append(row)
    return made


def draw(seed: int) -> Case:
    """The case of a seed."""
    dice = random.Random(seed)
    drawing = Drawing(dice)
    drawn = drawing.query(dice.choice([0, 1, 1, 2]))
    sql = (f"WITH {', '.join(drawing.ctes)} " if drawing.ctes else "") + drawn.sql
    sizes = [0, 2, 4, 6, 8]
    old = {table: _rows(dice, table, dice.choice(sizes)) for table in SCHEMAS}
    new = {table: _changed(dice, table, rows) for table, rows in old.items()}
    key = dice.sample(drawn.columns, dice.randint(1, len(drawn.columns)))
    return Case(sql, drawn.columns, key, drawing.operators, old, new)
