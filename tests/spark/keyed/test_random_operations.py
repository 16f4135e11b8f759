"""Whatever is written in whatever order, a keyed table reads like a dict by key.

After every step the merged rows are the model's, each key once; after every compaction and at the end
the base alone is the model as of the last compaction or build.
"""

from __future__ import annotations

import base64
import datetime
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.extent import extent

Row = dict[str, Any]
Model = dict[tuple[Any, ...], Row]


def decimal_text(number: int) -> str:
    return f"{number // 100}.{number % 100:02d}"


def day(number: int) -> str:
    return str(datetime.date(2024, 1, 28) + datetime.timedelta(days=number))


def moment(number: int) -> str:
    return f"{day(number % 5)}T0{number % 10}:00:00.{number:03d}Z"


def nested(chance: random.Random) -> Row | None:
    if chance.random() < 0.2:
        return None
    return {
        "who": chance.choice(["Zoë", "O'Neil", "", None, "back\\slash", "水"]),
        "tags": [chance.randrange(3) for _ in range(chance.randrange(3))],
    }


INTEGER = ({"id": "bigint"}, lambda n: {"id": n - 5}, {"unique_key": "id"})
SEEN = [
    None,
    *("1969-12-31T23:30:00.000Z", "1970-01-01T00:30:00.000Z"),
    *("2024-02-29T00:00:00.000Z", "2024-02-29T12:00:00.000Z"),
]
"""Before and after the first hour of 1970, midnight, and no time at all: rows move from one to another."""
WORDS = ["Ä", "ß", "水曜", "😀", "a'b", "", " ", "Z", "\\", "e\u0301", "é", '"']
SCENARIOS: dict[str, tuple[dict[str, str], Callable[[int], Row], dict[str, Any]]] = {
    "integer": INTEGER,
    "string and date": (
        {"shop": "string", "day": "date"},
        lambda n: {"shop": "abc"[n % 3], "day": day(n // 3)},
        {"unique_key": ["shop", "day"]},
    ),
    "date first, bucketed by the string": (
        {"day": "date", "shop": "string"},
        lambda n: {"shop": "abc"[n % 3], "day": day(n // 3)},
        {"unique_key": ["day", "shop"], "bucket_by": "shop"},
    ),
    "strings beyond ASCII": (
        {"word": "string"},
        lambda n: {"word": WORDS[n % len(WORDS)] + "²" * (n // len(WORDS))},
        {"unique_key": "word"},
    ),
    "decimal": (
        {"price": "decimal(12,2)"},
        lambda n: {"price": decimal_text(n * 37)},
        {"unique_key": "price"},
    ),
    "binary": (
        {"digest": "binary"},
        lambda n: {"digest": base64.b64encode(bytes([n % 7, 0, 255, n])).decode()},
        {"unique_key": "digest"},
    ),
    "timestamp": ({"at": "timestamp"}, lambda n: {"at": moment(n)}, {"unique_key": "at"}),
    "partitioned, keys move": (INTEGER[0], INTEGER[1], {"unique_key": "id", "partition_by": ["country"]}),
    "partitioned by transforms, keys move": (
        {"local": "timestamp_ntz", "id": "int"},
        lambda n: {"local": moment(n // 2).rstrip("Z"), "id": n},
        {
            "unique_key": ["local", "id"],
            "partition_by": ["hour(seen)", "truncate(2, amount)"],
            "bucket_by": "local",
        },
    ),
}


KEYS_OF_MANY_TYPES = ("string and date", "decimal", "binary", "timestamp", "integer", "strings beyond ASCII")
"""Each type is a key in ``test_types.py``, too."""


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(name, marks=[pytest.mark.long] * (name in KEYS_OF_MANY_TYPES)) for name in SCENARIOS],
)
def test_a_keyed_table_reads_like_a_dict(shop: Any, scenario: str) -> None:
    key_types, make_key, config = SCENARIOS[scenario]
    chance = random.Random(scenario)
    types = {
        **key_types,
        "country": "string",
        "seen": "timestamp",
        "amount": "int",
        "detail": "struct<who: string, tags: array<int>>",
    }
    table = shop.table("random", types, **config)
    shop.main.adapts()

    def row(number: int) -> Row:
        return {
            **make_key(number),
            "country": chance.choice(["cn", "is", "pe"]),
            "seen": chance.choice(SEEN),
            "amount": chance.randrange(9),
            "detail": nested(chance),
        }

    def key_of(row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in table.key)

    model: Model = {}
    base: Model = {}

    def rebuild() -> None:
        rows = [row(number) for number in chance.sample(range(24), 8)]
        table.build(rows)
        model.clear()
        model.update({key_of(one): one for one in rows})
        base.clear()
        base.update(model)

    def write() -> None:
        upserts = [row(number) for number in chance.sample(range(24), chance.randrange(7))]
        touched = {key_of(one) for one in upserts}
        keys = [make_key(number) for number in chance.sample(range(24), chance.randrange(5))]
        deletes = [key for key in keys if key_of(key) not in touched]
        table.apply(upserts, deletes)
        model.update({key_of(one): one for one in upserts})
        for key in deletes:
            model.pop(key_of(key), None)

    def compact() -> None:
        table.compact(chance.choice([0, 0, 3600]))
        base.clear()
        base.update(model)

    rebuild()
    # A shuffled deck instead of dice: fewer steps, and in each scenario every kind of step all the same.
    deck = [write] * extent(3, 5) + [compact] * extent(2, 3) + [rebuild]
    chance.shuffle(deck)
    steps = [write, *deck]
    for step, operation in enumerate(steps):
        operation()
        merged = table.rows()
        assert len(merged) == len(model), step
        assert {key_of(one): one for one in merged} == model, step
        if operation is compact or step == len(steps) - 1:
            stored = table.base_rows()
            assert len(stored) == len(base), step
            assert {key_of(one): one for one in stored} == base, step
