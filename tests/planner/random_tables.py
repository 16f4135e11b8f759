"""Small random tables and random changes of them.

``a`` and ``b`` have a key; ``c`` has none and holds duplicates. Few values and many rows, so that joins meet
and groups have members; NULLs everywhere but in keys. A change deletes, inserts, updates, moves keys,
deletes and brings back, or empties a table. Cells are drawn as whole numbers; in a column of another
type, each stands for a number of that type, of which some equal those of other types.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

Schemas = dict[str, list[tuple[str, str]]]

SCHEMAS: Schemas = {
    "a": [("id", "int"), ("x", "int"), ("y", "int"), ("z", "int")],
    "b": [("id", "int"), ("aid", "int"), ("v", "int"), ("w", "int")],
    "c": [("k", "int"), ("m", "int"), ("n", "int")],
}
TYPED: Schemas = {
    "a": [("id", "bigint"), ("x", "decimal(6,2)"), ("y", "double"), ("z", "int")],
    "b": [("id", "int"), ("aid", "decimal(4,1)"), ("v", "decimal(6,2)"), ("w", "double")],
    "c": [("k", "double"), ("m", "bigint"), ("n", "decimal(6,2)")],
}
"""The same tables with columns of other types, so that equal values are of two types."""
KEYS: dict[str, tuple[str, ...]] = {"a": ("id",), "b": ("id",), "c": ()}
DECLARED = {**KEYS, "c": ("k",)}
"""The keys of cases whose project declares one for ``c``, and whose rows have it."""

Row = tuple[int | None, ...]
Tables = dict[str, list[Row]]

_SIZES = [0, 2, 4, 5, 6, 7, 8]


def _cell(dice: random.Random) -> int | None:
    return None if dice.random() < 0.12 else dice.randint(0, 3)


_STANDS_FOR = {"decimal": ("0", "1", "1.5", "2"), "double": ("0", "1", "2", "2.5")}
"""What fits into halves is summed up without an error, in any order."""


def literal(cell: int | None, kind: str) -> str:
    """
    >>> literal(2, "int"), literal(2, "decimal(6,2)"), literal(3, "double"), literal(None, "int")
    ('2', '1.5', '2.5', 'NULL')
    """
    if cell is None:
        return "NULL"
    known = _STANDS_FOR.get(kind.split("(")[0], ())
    return known[cell] if 0 <= cell < len(known) else str(cell)


def _rows(dice: random.Random, table: str, count: int, keys: Mapping[str, tuple[str, ...]]) -> list[Row]:
    width = len(SCHEMAS[table])
    if keys[table]:
        return [
            (key, *(_cell(dice) for _ in range(width - 1))) for key in dice.sample(range(10), min(count, 10))
        ]
    return [tuple(_cell(dice) for _ in range(width)) for _ in range(count)]


def _changed(
    dice: random.Random, table: str, rows: list[Row], keys: Mapping[str, tuple[str, ...]]
) -> list[Row]:
    roll = dice.random()
    if roll < 0.3:
        return list(rows)
    if roll < 0.33:
        return []
    made: list[Row] = []
    for row in rows:
        roll = dice.random()
        if roll < 0.12:
            continue
        if roll < 0.35:
            cells = list(row)
            cells[dice.randrange(1 if keys[table] else 0, len(cells))] = _cell(dice)
            row = tuple(cells)
        elif roll < 0.4 and keys[table]:
            row = (10 + len(made), *row[1:])
        made.append(row)
    known = {row[0] for row in made}
    for row in _rows(dice, table, dice.choice([0, 0, 1, 2]), keys):
        if not keys[table] or row[0] not in known:
            made.append(row)
    return made


def draw_tables(
    seed: str, *, one_as_it_was: bool = False, keys: Mapping[str, tuple[str, ...]] = KEYS
) -> tuple[Tables, Tables]:
    """The tables of a seed before and after a change. ``one_as_it_was``: at least one has not changed."""
    dice = random.Random(seed)
    old = {table: _rows(dice, table, dice.choice(_SIZES), keys) for table in SCHEMAS}
    new = {table: _changed(dice, table, rows, keys) for table, rows in old.items()}
    if one_as_it_was:
        kept = dice.choice(list(SCHEMAS))
        new[kept] = list(old[kept])
    return old, new
