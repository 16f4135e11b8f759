"""Random queries with something inside that is worth a state: sums of a table that nothing else reads.

Of other random queries, one in twenty has it.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

from tests.planner.random_queries import Case, Drawing, Relation, draw

_TABLE = re.compile(r"\b([abc]) AS t\d+")


def draw_kept(seed: int) -> Case:
    dice = random.Random(f"kept/{seed}")
    if dice.random() < 0.3:
        return draw(seed)
    drawing = Drawing(dice)
    inner = drawing.table("bccc") if dice.random() < 0.5 else drawing.joined("abcc")
    large = max(_TABLE.findall(inner.text))
    if large == "a":
        return replace(draw_kept(seed + 1_000_003), seed=seed)
    query = _Query(drawing, inner, drawing.table("ab" if large == "c" else "a"))
    shape = dice.choice(
        [query.joined, query.compared, query.chosen, query.grouped_again, query.counted, query.values]
    )
    sql, width = shape()
    columns = tuple(f"o{place}" for place in range(1, width + 1))
    key = columns[:1] if dice.random() < 0.6 else tuple(dice.sample(columns, dice.randint(1, width)))
    return Case(seed, sql, columns, key, frozenset(drawing.operators))


@dataclass(frozen=True)
class _Query:
    """:param inner: what the state is of. :param outer: reads another table."""

    drawing: Drawing
    inner: Relation
    outer: Relation

    def joined(self) -> tuple[str, int]:
        """Sums of groups next to the rows of these groups."""
        dice, outer = self.drawing.dice, self.outer.columns
        word, where = dice.choice(["JOIN", "JOIN", "LEFT JOIN"]), self.drawing.where(outer, 0)
        items = f"{outer[0]} AS o1, {self.drawing.value(outer)} AS o2, q.s AS o3, q.n AS o4"
        return (
            f"SELECT {items} FROM {self.outer.text} {word} ({self._sums()}) AS q "
            f"ON q.g = {dice.choice(outer)}{where}",
            4,
        )

    def compared(self) -> tuple[str, int]:
        """The sum of what is linked to a row: compared with a value, or shown."""
        dice, outer = self.drawing.dice, self.outer.columns
        value = (
            f"(SELECT {self._sum()} FROM {self.inner.text} "
            f"WHERE {self._group()} = {dice.choice(outer)}{self._and()})"
        )
        if dice.random() < 0.5:
            return f"SELECT {outer[0]} AS o1, {value} AS o2 FROM {self.outer.text}", 2
        items = f"{outer[0]} AS o1, {dice.choice(outer)} AS o2"
        compared = f"{dice.choice(outer)} {dice.choice(['>=', '<', '<>'])} {value}"
        return f"SELECT {items} FROM {self.outer.text} WHERE {compared}", 2

    def chosen(self) -> tuple[str, int]:
        """Whether there is anything that is linked to a row."""
        dice, outer = self.drawing.dice, self.outer.columns
        link, group = dice.choice(outer), self._group()
        chosen = dice.choice(
            [
                f"EXISTS (SELECT 1 FROM {self.inner.text} WHERE {group} = {link}{self._and()})",
                f"NOT EXISTS (SELECT 1 FROM {self.inner.text} WHERE {group} = {link}{self._and()})",
                f"{link} IN (SELECT {group} FROM {self.inner.text} WHERE {group} < 9{self._and()})",
            ]
        )
        return f"SELECT {outer[0]} AS o1, {dice.choice(outer)} AS o2 FROM {self.outer.text} WHERE {chosen}", 2

    def grouped_again(self) -> tuple[str, int]:
        """How many groups have such a sum."""
        self.drawing.operators.add("nested aggregates")
        return f"SELECT q.s AS o1, count(*) AS o2, sum(q.n) AS o3 FROM ({self._sums()}) AS q GROUP BY q.s", 3

    def counted(self) -> tuple[str, int]:
        """How many rows have so many others, rows without any included."""
        dice, outer = self.drawing.dice, self.outer.columns
        if not re.fullmatch(r"[bc] AS t\d+", self.inner.text):
            return self.joined()
        self.drawing.operators.update({"left", "nested aggregates"})
        call = f"{dice.choice(['count', 'sum', 'max'])}({dice.choice(self.inner.columns)})"
        groups = (
            f"SELECT {outer[0]} AS k, {call} AS n FROM {self.outer.text} LEFT JOIN {self.inner.text} "
            f"ON {self._group()} = {outer[0]}{self._and()} GROUP BY {outer[0]}"
        )
        return f"SELECT q.n AS o1, count(*) AS o2 FROM ({groups}) AS q GROUP BY q.n", 2

    def values(self) -> tuple[str, int]:
        """How many different values groups of one table have."""
        dice, made = self.drawing.dice, self.drawing.table("bbc")
        if made.text.startswith("("):
            return self.grouped_again()
        group, value, other = dice.sample([one for one in made.columns if not one.endswith(".id")], 3)
        numbers = f"count(DISTINCT {value}) AS o2, count(*) AS o3, sum({other}) AS o4, max({value}) AS o5"
        present = f"{group} IS NOT NULL AND {value} IS NOT NULL"
        return f"SELECT {group} AS o1, {numbers} FROM {made.text} WHERE {present} GROUP BY {group}", 5

    def _sums(self) -> str:
        group = self._group()
        return (
            f"SELECT {group} AS g, {self._sum()} AS s, count(*) AS n FROM {self.inner.text} "
            f"WHERE {group} IS NOT NULL{self._and()} GROUP BY {group}"
        )

    def _sum(self) -> str:
        call = self.drawing.dice.choice(["sum", "sum", "count", "min", "max"])
        return f"{call}({self.drawing.value(self.inner.columns)})"

    def _group(self) -> str:
        """Groups by a key have a row each, and are worth no state."""
        columns = [one for one in self.inner.columns if not one.endswith(".id")]
        return self.drawing.dice.choice(columns)

    def _and(self) -> str:
        if self.drawing.dice.random() < 0.6:
            return ""
        return f" AND {self.drawing.condition(self.inner.columns, 0)}"
