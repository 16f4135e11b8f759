"""Random queries, for a planner that claims to be right for all of them.

A query is drawn as text, with the names of the operators that it has. What it reads: ``random_tables``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.planner.random_tables import KEYS, SCHEMAS, Tables, draw_tables

OPERATORS = (
    "filter",
    "project",
    "inner",
    "self join",
    "many references",
    "using",
    "left",
    "right",
    "full",
    "semi",
    "anti",
    "exists",
    "not exists",
    "in",
    "not in",
    "not in what may be NULL",
    "scalar",
    "uncorrelated",
    "subquery in a select list",
    "subquery in HAVING",
    "group by",
    "having",
    "rollup",
    "cube",
    "grouping sets",
    "one group",
    "nested aggregates",
    "distinct",
    "union",
    "union all",
    "intersect",
    "except",
    "window",
    "numbered window",
    "window over groups",
    "named window",
    "explode",
    "posexplode",
    "explode outer",
    "cte",
    "shared cte",
)
"""Each must be met often, with a change that is not empty."""


@dataclass(frozen=True)
class Case:
    """A query, its output columns, the columns that name its rows, and the operators that it has.

    :param one_as_it_was: at least one table has not changed.
    :param written: the query in other words, where the planner is to read these.
    :param keys: the keys of tables.
    """

    seed: int
    sql: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    operators: frozenset[str]
    one_as_it_was: bool = False
    written: str = ""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: KEYS)

    def tables(self, attempt: int) -> tuple[Tables, Tables]:
        return draw_tables(f"{self.seed}/{attempt}", one_as_it_was=self.one_as_it_was, keys=self.keys)


@dataclass
class Drawn:
    """``key``: columns that are a likely key."""

    sql: str
    columns: list[str]
    key: list[str] = field(default_factory=list)
    grouped: bool = False


@dataclass
class Relation:
    """Text for FROM, and its columns, qualified. ``unique``: those that identify a row, where known."""

    text: str
    columns: list[str]
    unique: list[str] | None = None
    grouped: bool = False


@dataclass
class Drawing:
    """Draws one query. ``operators`` collects its operators.

    :param typed: with expressions that distinguish equal values of two types.
    :param only_joined: only reads three to five tables, with inner joins.
    """

    dice: random.Random
    typed: bool = False
    only_joined: bool = False
    operators: set[str] = field(default_factory=set)
    ctes: list[str] = field(default_factory=list)
    _known: list[tuple[str, Drawn]] = field(default_factory=list)
    _names: int = 0

    def name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def query(self, depth: int) -> Drawn:
        kinds: list[Callable[[int], Drawn]] = [self.select] * 4 + [self.grouped] * 5 + [self.windowed] * 2
        if depth > 0:
            kinds += [self.windowed, self.distinct, *[self.union, self.set_operation] * 2]
        return self.dice.choice(kinds)(depth)

    # Relations

    def relation(self, depth: int) -> Relation:
        alias = self.name("t")
        if self._known and self.chance(0.55):
            self.operators.add("shared cte")
            cte, drawn = self.dice.choice(self._known)
            return Relation(
                f"{cte} AS {alias}", [f"{alias}.{name}" for name in drawn.columns], grouped=drawn.grouped
            )
        if depth > 0 and self.chance(0.4):
            inner = self.query(depth - 1)
            columns = [f"{alias}.{name}" for name in inner.columns]
            if self.chance(0.35):
                self.operators.add("cte")
                cte = self.name("w")
                self.ctes.append(f"{cte} AS ({inner.sql})")
                self._known.append((cte, inner))
                return Relation(f"{cte} AS {alias}", columns, grouped=inner.grouped)
            order = f" ORDER BY {self.dice.choice(inner.columns)}" if self.chance(0.1) else ""
            return Relation(f"({inner.sql}{order}) AS {alias}", columns, grouped=inner.grouped)
        if self.chance(0.04):
            return self.joined_by_name(alias)
        table = self.dice.choice(list(SCHEMAS))
        unique = [f"{alias}.{name}" for name in KEYS[table]] or None
        return Relation(f"{table} AS {alias}", [f"{alias}.{name}" for name, _ in SCHEMAS[table]], unique)

    def joined_by_name(self, alias: str) -> Relation:
        self.operators.add("using")
        left, right = self.name("t"), self.name("t")
        first, second = self.dice.choice(["ab", "ab", "ba", "aa"])
        word = self.dice.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        names = [self.name("u") for _ in range(3)]
        items = ["id", f"{left}.{SCHEMAS[first][1][0]}", f"{right}.{SCHEMAS[second][2][0]}"]
        listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
        text = f"(SELECT {listed} FROM {first} AS {left} {word} {second} AS {right} USING (id)) AS {alias}"
        return Relation(text, [f"{alias}.{name}" for name in names])

    def source(self, depth: int) -> Relation:
        if self.only_joined:
            return self.joined()
        made = self.relation(depth)
        joins = 0
        while joins < 3 and self.chance(0.45):
            joins += 1
            other = self.relation(depth - 1)
            kind = self.dice.choice(
                ["JOIN"] * 3 + ["LEFT JOIN"] * 2 + ["RIGHT JOIN", "FULL JOIN", "SEMI", "ANTI"]
            )
            left, right = self.dice.choice(made.columns), self.dice.choice(other.columns)
            if made.unique and self.chance(0.3):
                left = made.unique[0]
            on = f"{left} = {right}"
            roll = self.dice.random()
            if roll < 0.12:
                on += f" AND {self.dice.choice(made.columns)} <= {self.dice.choice(other.columns)}"
            elif roll < 0.2:
                on = f"({on} OR {self.dice.choice(made.columns)} = {self.dice.choice(other.columns)})"
            elif roll < 0.28:
                on = f"{left} < {right}"
            elif roll < 0.34:
                on = f"{left} + 1 = {right} AND {self.dice.choice(other.columns)} > 0"
            elif roll < 0.37:
                on = f"{left} <=> {right}"
            grouped = made.grouped or other.grouped
            if kind in ("SEMI", "ANTI"):
                self.operators.add("semi" if kind == "SEMI" else "anti")
                text = f"{made.text} LEFT {kind} JOIN {other.text} ON {on}"
                made = Relation(text, made.columns, made.unique, grouped)
                continue
            self.operators.add(
                {"JOIN": "inner", "LEFT JOIN": "left", "RIGHT JOIN": "right", "FULL JOIN": "full"}[kind]
            )
            both = made.unique + other.unique if made.unique and other.unique else None
            made = Relation(
                f"{made.text} {kind} {other.text} ON {on}",
                made.columns + other.columns,
                both if kind == "JOIN" else None,
                grouped,
            )
        return self.exploded(made) if self.chance(0.08) else made

    def exploded(self, made: Relation) -> Relation:
        """With a row for each of two values; of some rows there are none."""
        alias = self.name("e")
        values = f"ARRAY({', '.join(self.dice.choice(made.columns) for _ in range(2))})"
        # The types of elements are known of ARRAY(...) itself, and of explode alone.
        is_known = self.chance(0.5)
        if not is_known:
            values = f"CASE WHEN {self.dice.choice(made.columns)} > 0 THEN {values} END"
        with_place, outer = self.chance(0.4), self.dice.choice(["", "", "OUTER", "_outer"])
        self.operators.add("posexplode" if with_place else "explode")
        if outer:
            self.operators.add("explode outer")
        function = f"{'POS' * with_place}EXPLODE{'_OUTER' * (outer == '_outer')}"
        view = f"LATERAL VIEW {'OUTER ' * (outer == 'OUTER')}{function}({values}) {alias} AS"
        names = ["p", "v"] if with_place else ["v"]
        columns = [f"{alias}.{name}" for name in names]
        if with_place or not is_known:
            columns = [f"CAST({column} AS INT)" for column in columns]
        text = f"{made.text} {view} {', '.join(names)}"
        return Relation(text, [*made.columns, *columns], None, made.grouped)

    def joined(self, tables: str = "aabbbc") -> Relation:
        """Tables with inner joins, mostly by keys: some have changed, and some have not."""
        self.operators.add("inner")
        made = self.table(tables)
        keys = list(made.unique or ())
        for _ in range(self.dice.choice([2, 2, 2, 3, 3, 4])):
            other = self.table(tables)
            left, right = self.dice.choice(made.columns), self.dice.choice(other.columns)
            if keys and self.chance(0.4):
                left = self.dice.choice(keys)
            elif other.unique and self.chance(0.9):
                right = other.unique[0]
            on = f"{left} = {right}"
            if self.chance(0.12):
                on = f"{left} < {right}"  # linked by nothing that is equal
            if self.chance(0.2):
                on += f" AND {self.dice.choice(made.columns)} <= {self.dice.choice(other.columns)}"
            if self.chance(0.05):
                on += f" AND {self.condition(other.columns, 0)}"
            if self.chance(0.05):
                on += " AND 1 = 1"
            keys += other.unique or ()
            both = made.unique + other.unique if made.unique and other.unique else None
            made = Relation(f"{made.text} JOIN {other.text} ON {on}", made.columns + other.columns, both)
        return made

    def table(self, tables: str = "aabbbc") -> Relation:
        """One of these tables, or what a filter leaves of it."""
        alias, table = self.name("t"), self.dice.choice(tables)
        columns = [f"{alias}.{name}" for name, _ in SCHEMAS[table]]
        text = f"{table} AS {alias}"
        if self.chance(0.1):
            inner = self.name("t")
            below = self.condition([f"{inner}.{name}" for name, _ in SCHEMAS[table]], 0)
            text = f"(SELECT * FROM {table} AS {inner} WHERE {below}) AS {alias}"
        return Relation(text, columns, [f"{alias}.{name}" for name in KEYS[table]] or None)

    # Expressions

    def value(self, columns: list[str]) -> str:
        column, other = self.dice.choice(columns), self.dice.choice(columns)
        if self.typed and self.chance(0.2):
            return self.dice.choice(
                [f"length(CAST({column} AS STRING))", f"({column} / 4)", f"({column} * 1.5)"]
            )
        return self.dice.choice(
            [
                column,
                column,
                column,
                column,
                f"({column} + {self.dice.randint(1, 3)})",
                f"coalesce({column}, {other})",
                f"CASE WHEN {column} > 1 THEN {other} END",
                f"CASE {column} WHEN 1 THEN 5 WHEN 2 THEN {other} ELSE 0 END",
            ]
        )

    def condition(self, columns: list[str], depth: int) -> str:
        roll = self.dice.random()
        column = self.dice.choice(columns)
        if depth > 0 and roll < 0.58:
            return self.subquery(column, columns, depth - 1)
        if depth > 0 and roll < 0.62:
            # The subquery's value may be NULL here, which is not the same as false.
            return f"NOT ({self.subquery(column, columns, depth - 1)} AND {column} > 0)"
        if roll < 0.67:
            return f"{column} IS {self.dice.choice(['', 'NOT '])}NULL"
        if roll < 0.76:
            other = self.dice.choice(columns)
            return f"({column} = {self.dice.randint(0, 3)} OR {other} > {self.dice.randint(0, 2)})"
        return f"{column} {self.dice.choice(['>=', '>=', '<', '<>', '='])} {self.dice.randint(0, 3)}"

    def subquery(self, column: str, columns: list[str], depth: int) -> str:
        made = self.relation(depth)
        text, inner = made.text, made.columns
        linked = f"{self.dice.choice(inner)} = {self.dice.choice(columns)}"
        if self.chance(0.2):
            linked += f" AND {self.dice.choice(inner)} < {self.dice.choice(columns)}"
        own = f" AND {self.condition(inner, 0)}" if self.chance(0.3) else ""
        alone = own.replace(" AND ", " WHERE ", 1)
        kind = self.dice.choice(_SUBQUERIES)
        self.operators.add(kind)
        picked = self.dice.choice(inner)
        function = self.dice.choice(["max", "min", "sum", "count"])
        if kind == "exists":
            return f"EXISTS (SELECT 1 FROM {text} WHERE {linked}{own})"
        if kind == "not exists":
            return f"NOT EXISTS (SELECT 1 FROM {text} WHERE {linked}{own})"
        if kind == "in":
            if self.chance(0.3):
                return f"{column} IN (SELECT {picked} FROM {text} WHERE {linked}{own})"
            return f"{column} IN (SELECT {picked} FROM {text}{alone})"
        if kind == "not in what may be NULL":
            if made.unique and self.chance(0.6):
                picked = made.unique[0]  # which is not NULL, though nothing here says so
            return f"{column} NOT IN (SELECT {picked} FROM {text}{alone})"
        if kind == "not in":
            return f"{column} NOT IN (SELECT {picked} FROM {text} WHERE {picked} IS NOT NULL{own})"
        if kind == "scalar":
            equal = f"{self.dice.choice(inner)} = {self.dice.choice(columns)}"
            return f"{column} >= (SELECT {function}({picked}) FROM {text} WHERE {equal}{own})"
        return f"{column} <= (SELECT {self.dice.choice(['max', 'min'])}({picked}) FROM {text}{alone})"

    def scalar(self, columns: list[str], depth: int) -> str:
        """The value of a correlated subquery."""
        self.operators.add("scalar")
        made = self.relation(depth)
        function = self.dice.choice(["max", "sum", "count"])
        equal = f"{self.dice.choice(made.columns)} = {self.dice.choice(columns)}"
        return f"(SELECT {function}({self.dice.choice(made.columns)}) FROM {made.text} WHERE {equal})"

    def where(self, columns: list[str], depth: int) -> str:
        parts = [self.condition(columns, depth) for _ in range(self.dice.choice([0, 0, 0, 1, 1, 2]))]
        if parts:
            self.operators.add("filter")
        return " WHERE " + " AND ".join(parts) if parts else ""

    def aggregate(self, columns: list[str]) -> str:
        function = self.dice.choice(["sum", "sum", "count", "min", "max", "distinct", "filter", "case"])
        if function == "distinct":
            return f"count(DISTINCT {self.dice.choice(columns)})"
        if function == "filter":
            return f"sum({self.dice.choice(columns)}) FILTER (WHERE {self.condition(columns, 0)})"
        if function == "case":
            return f"sum(CASE WHEN {self.condition(columns, 0)} THEN 1 ELSE 0 END)"
        return f"{function}({self.value(columns)})"

    # Queries

    def select(self, depth: int) -> Drawn:
        made = self.source(depth)
        names = [self.name("o") for _ in range(self.dice.randint(1, 4))]
        items = [self.value(made.columns) for _ in names]
        key: list[str] = []
        if made.unique and self.chance(0.6):
            key = [self.name("k") for _ in made.unique]
            names, items = [*key, *names], [*made.unique, *items]
        if depth > 0 and self.chance(0.15):
            self.operators.add("subquery in a select list")
            column = self.dice.choice(made.columns)
            names.append(self.name("q"))
            items.append(f"CASE WHEN {self.subquery(column, made.columns, depth - 1)} THEN 1 ELSE 0 END")
            if self.chance(0.6):
                items[-1] = self.scalar(made.columns, depth - 1)
            elif self.chance(0.5):
                items[-1] = f"CAST({self.subquery(column, made.columns, depth - 1)} AS INT)"
        self.operators.add("project")
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(items, names, strict=True))
        where = self.where(made.columns, depth)
        return Drawn(f"SELECT {listed} FROM {made.text}{where}", names, key, made.grouped)

    def grouped(self, depth: int) -> Drawn:
        made = self.source(depth)
        if made.grouped:
            self.operators.add("nested aggregates")
        columns = made.columns
        where = self.where(columns, depth)
        groups = list(
            dict.fromkeys(self.value(columns) for _ in range(self.dice.choice([1, 1, 1, 2, 2, 2, 0])))
        )
        names = [self.name("g") for _ in groups]
        aggregates = [self.aggregate(columns) for _ in range(self.dice.randint(1, 2))] + ["count(*)"]
        agg_names = [self.name("s") for _ in aggregates]
        if groups and self.chance(0.12):
            self.operators.add("window over groups")
            part = f"PARTITION BY {self.dice.choice(groups)}" if self.chance(0.7) else "ORDER BY count(*)"
            aggregates.append(f"sum(count(*)) OVER ({part})")
            agg_names.append(self.name("n"))
        pairs = list(zip([*groups, *aggregates], [*names, *agg_names], strict=True))
        listed, windows = self.named_windows([f"{value} AS {name}" for value, name in pairs])
        items = ", ".join(listed)
        if not groups:
            self.operators.add("one group")
            return Drawn(f"SELECT {items} FROM {made.text}{where}", agg_names, [], True)
        by = self.grouping(groups, names)
        having = ""
        if self.chance(0.3):
            self.operators.add("having")
            left = self.dice.choice([*(one for one in aggregates if " OVER " not in one), "count(*)"])
            having = f" HAVING {left} > {self.dice.randint(0, 2)}"
            if depth > 0 and self.chance(0.8):
                self.operators.add("subquery in HAVING")
                other = self.relation(0)
                picked = self.dice.choice(other.columns)
                having = self.dice.choice(
                    [
                        f" HAVING {left} >= (SELECT min({picked}) FROM {other.text})",
                        f" HAVING {left} IN (SELECT {picked} FROM {other.text})",
                    ]
                )
        sql = f"SELECT {items} FROM {made.text}{where} GROUP BY {by}{having}{windows}"
        return Drawn(sql, [*names, *agg_names], names, True)

    def grouping(self, groups: list[str], names: list[str]) -> str:
        by = ", ".join(groups)
        style = self.dice.random()
        if style < 0.1:
            self.operators.add("rollup")
            return f"ROLLUP ({by})"
        if style < 0.19:
            self.operators.add("cube")
            return f"CUBE ({by})"
        if style < 0.42 and len(groups) == 2:
            self.operators.add("grouping sets")
            return f"GROUPING SETS (({groups[0]}), ({groups[1]}), ())"
        self.operators.add("group by")
        if style < 0.55:
            return ", ".join(str(place + 1) for place in range(len(groups)))
        return ", ".join(names) if style < 0.65 else by

    def windowed(self, depth: int) -> Drawn:
        made = self.source(depth)
        columns = made.columns
        names = [self.name("o") for _ in range(self.dice.randint(1, 3))]
        items = [f"{self.value(columns)} AS {name}" for name in names]
        partition = self.dice.choice(columns)
        key = []
        self.operators.add("window")
        for _ in range(self.dice.choice([1, 1, 2])):
            name = self.name("n")
            if self.chance(0.25):
                partition = self.dice.choice([self.dice.choice(columns), self.value(columns)])
            function = self.dice.choice(["sum", "min", "max", "count", "rank", "dense_rank", "running"])
            order = f"{self.dice.choice(columns)}{self.dice.choice(['', ' DESC'])}"
            if made.unique and self.chance(0.4):
                self.operators.add("numbered window")
                unique = ", ".join([order, *made.unique])
                call = self.dice.choice(["row_number()", f"lag({self.dice.choice(columns)})"])
                items.append(f"{call} OVER (PARTITION BY {partition} ORDER BY {unique}) AS {name}")
                key = [name]
            elif function in ("rank", "dense_rank"):
                items.append(f"{function}() OVER (PARTITION BY {partition} ORDER BY {order}) AS {name}")
            elif function == "running":
                picked = self.dice.choice(columns)
                items.append(f"sum({picked}) OVER (PARTITION BY {partition} ORDER BY {order}) AS {name}")
            else:
                picked = self.dice.choice(columns)
                items.append(f"{function}({picked}) OVER (PARTITION BY {partition}) AS {name}")
            names.append(name)
        if self.chance(0.5):
            names.append(self.name("p"))
            items.append(f"{partition} AS {names[-1]}")
            key.append(names[-1])
        where = self.where(columns, depth)
        named, windows = self.named_windows(items)
        return Drawn(f"SELECT {', '.join(named)} FROM {made.text}{where}{windows}", names, key, made.grouped)

    def named_windows(self, items: list[str]) -> tuple[list[str], str]:
        """The items with names in place of windows, and the WINDOW clause that defines these.

        With dice of its own: a seed draws the same query with and without names.
        """
        dice = random.Random(repr(items))
        if dice.random() < 0.5:
            return items, ""
        defined: dict[str, str] = {}

        def named(found: re.Match[str]) -> str:
            if dice.random() < 0.2:
                return found[0]
            return f" OVER {defined.setdefault(found[1], f'win{len(defined) + 1}')}"

        named_items = [_WINDOW.sub(named, item) for item in items]
        if not defined:
            return items, ""
        self.operators.add("named window")
        return named_items, " WINDOW " + ", ".join(f"{name} AS ({spec})" for spec, name in defined.items())

    def distinct(self, depth: int) -> Drawn:
        inner = self.select(depth)
        self.operators.add("distinct")
        sql = inner.sql.replace("SELECT", "SELECT DISTINCT", 1)
        return Drawn(sql, inner.columns, inner.key, inner.grouped)

    def same_width(self, depth: int, width: int, *, plain: bool = False) -> Drawn:
        made = self.source(depth - 1)
        names = [self.name("o") for _ in range(width)]
        values = [self.dice.choice(made.columns) if plain else self.value(made.columns) for _ in names]
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        where = self.where(made.columns, depth - 1)
        return Drawn(f"SELECT {items} FROM {made.text}{where}", names, [], made.grouped)

    def union(self, depth: int) -> Drawn:
        left = self.query(depth - 1)
        right = self.same_width(depth, len(left.columns))
        word = self.dice.choice(["UNION ALL", "UNION"])
        self.operators.add(word.lower())
        return Drawn(f"({left.sql}) {word} ({right.sql})", left.columns, [], left.grouped or right.grouped)

    def set_operation(self, depth: int) -> Drawn:
        # Few plain columns, so that the sides have rows in common.
        width = self.dice.choice([1, 1, 2])
        left, right = (self.same_width(depth, width, plain=True) for _ in range(2))
        word = self.dice.choice(["INTERSECT", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        self.operators.add(word.lower().removesuffix(" all"))
        return Drawn(f"({left.sql}) {word} ({right.sql})", left.columns, [], left.grouped or right.grouped)


_SUBQUERIES = (
    *("exists", "not exists", "in", "not in", "uncorrelated") * 3,
    *("scalar", "scalar", *["not in what may be NULL"] * 4),
)
"""Some are drawn more often, because a change of their value often requires a full recomputation."""

_WINDOW = re.compile(r" OVER \((.*)\)(?= AS \w+$)")
_TABLE = re.compile(r"\b([abc]) AS t\d+")
_JOINED = re.compile(r"\b([abc]) AS t\d+ (?:LEFT |RIGHT |FULL )?JOIN \1 AS t\d+")


_LONGEST = 600
"""A longer query costs DuckDB a lot and says no more."""
_ONLY_JOINED = 10
"""Of so many queries one joins tables alone: several of them have changed, and others have not."""


def draw(seed: int, *, typed: bool = False) -> Case:
    """The case of a seed. ``typed``: for tables of several types."""
    dice = random.Random(seed)
    sql = " " * (_LONGEST + 1)
    while len(sql) > _LONGEST:
        drawing = Drawing(dice, typed, only_joined=seed % _ONLY_JOINED == _ONLY_JOINED - 1)
        drawn = drawing.query(0 if drawing.only_joined else dice.choice([0, 1, 1, 2, 2]))
        sql = (f"WITH {', '.join(drawing.ctes)} " if drawing.ctes else "") + drawn.sql
    read = [found.group(1) for found in _TABLE.finditer(sql)]
    if any(read.count(table) > 2 for table in SCHEMAS):
        drawing.operators.add("many references")
    if _JOINED.search(sql):
        drawing.operators.add("self join")
    key = drawn.key
    if not key or dice.random() < 0.4:
        key = dice.sample(drawn.columns, dice.randint(1, len(drawn.columns)))
    operators = frozenset(drawing.operators)
    return Case(seed, sql, tuple(drawn.columns), tuple(key), operators, drawing.only_joined)
