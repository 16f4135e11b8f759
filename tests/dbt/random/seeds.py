"""Random seeds: columns whose type dbt finds by itself, and columns with a declared one."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

from tests.dbt.random.project import Column

UNDECLARED = {"id": "bigint", "txt": "string", "f": "double", "flag": "boolean"}
DECLARED = {"zip": "string", "amount": "decimal(20,10)", "day": "date", "n": "smallint", "at": "timestamp"}


def draw_seed(chance: random.Random) -> tuple[dict[str, Any], list[Column]]:
    """A seed's config, and its columns."""
    names = chance.sample(list(UNDECLARED), chance.randint(1, 3)) + chance.sample(
        list(DECLARED), chance.randint(0, 3)
    )
    chance.shuffle(names)
    declared = {chance.choice((one, one.upper())): DECLARED[one] for one in names if one in DECLARED}
    columns = [Column(one, {**UNDECLARED, **DECLARED}[one]) for one in names]
    config = {"column_types": declared} if declared else {}
    return config, columns


def seed_value(chance: random.Random, column: Column, config: dict[str, Any]) -> Any:
    is_declared = column.name in DECLARED
    if is_declared and chance.random() < 0.2:
        return None
    return {
        "id": lambda: chance.randint(-5, 2**40),
        "txt": lambda: chance.choice(("x1", "it's", "a,b", 'say "x"', "ü")),
        "f": lambda: chance.choice((1.5, -2.25, 0.1)),
        "flag": lambda: chance.random() < 0.5,
        # Not "null", which dbt reads as NULL, in a column of text too.
        "zip": lambda: chance.choice(("00501", "7", "a b", "nil")),
        "amount": lambda: Decimal(chance.choice(("0.1234567890", "-5", "9999999999.9999999999"))),
        "day": lambda: dt.date(2024, 1, chance.randint(1, 28)),
        "n": lambda: chance.randint(-3, 3),
        "at": lambda: dt.datetime(2024, 1, chance.randint(1, 28), 1, 2, 3),
    }[column.name]()
