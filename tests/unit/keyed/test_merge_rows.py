"""The merge in memory is the one that the view's SQL describes, for random rows."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from dbt_arctic.keyed.merge_rows import COMMIT, latest_changes, merge_rows, with_keys
from dbt_arctic.keyed.table import ACTION, OFFSET

Row = dict[str, Any]
NAN = float("nan")

KEYS: dict[str, tuple[pyarrow.DataType, list[Any]]] = {
    "bigint": (pyarrow.int64(), [0, 1, 2, 3, -(2**63), 2**63 - 1]),
    "string": (pyarrow.large_string(), ["", "a", "A", "ä", "a "]),
    "double": (pyarrow.float64(), [0.0, -0.0, NAN, -NAN, 1.5, float("inf")]),
    "boolean": (pyarrow.bool_(), [True, False]),
    "decimal": (pyarrow.decimal128(12, 2), [Decimal("1.50"), Decimal("0.00"), Decimal("-7.01")]),
    "binary": (pyarrow.large_binary(), [b"", b"\x00", b"\x00\x00", b"a"]),
}
SEQUENCES: dict[str, tuple[pyarrow.DataType, list[Any]]] = {
    "int": (pyarrow.int32(), [None, 1, 2, 3]),
    "double": (pyarrow.float64(), [None, NAN, float("-inf"), 0.0, -0.0, 1.0]),
    "string": (pyarrow.large_string(), [None, "", "B", "a", "ä"]),
    "timestamp": (pyarrow.timestamp("us", "UTC"), [None, -1, 0, 1]),
}


def same(value: Any) -> Any:
    """A value in a form in which values are equal that Spark finds equal."""
    if isinstance(value, float):
        return ("nan",) if value != value else value + 0.0
    return value


def at_least(one: Any, other: Any) -> bool:
    """Spark's ``>=``, in which NaN is the greatest value. NULL is not at least anything."""
    if one is None or other is None:
        return False
    return (one != one) or (other == other and one >= other)


def expected(base: list[Row], changes: list[Row], key: list[str], sequence: str | None) -> list[Row]:
    """The merge in plain Python, as ``keyed/read.py`` describes it."""

    def key_of(row: Row) -> Any:
        return tuple(same(row[name]) for name in key)

    def is_later(one: Row, other: Row) -> bool:
        if sequence is not None:
            first, second = one[sequence], other[sequence]
            if (first is None) != (second is None):
                return second is None
            if first is not None and not (at_least(first, second) and at_least(second, first)):
                return at_least(first, second)
            if (one[ACTION] == "D") != (other[ACTION] == "D"):
                return bool(one[ACTION] == "D")
        return (one[COMMIT], one[OFFSET]) > (other[COMMIT], other[OFFSET])

    latest: dict[Any, Row] = {}
    for change in changes:
        if change[ACTION] != "-U":
            before = latest.get(key_of(change))
            if before is None or is_later(change, before):
                latest[key_of(change)] = change
    rows = []
    for row in base:
        over = [one for one in changes if one[ACTION] != "-U" and key_of(one) == key_of(row)]
        if not any(sequence is None or at_least(one[sequence], row[sequence]) for one in over):
            rows.append(row)
    for change in latest.values():
        newer = sequence is not None and any(
            key_of(row) == key_of(change)
            and at_least(row[sequence], change[sequence])
            and not at_least(change[sequence], row[sequence])
            for row in base
        )
        if change[ACTION] == "U" and not newer:
            rows.append(change)
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_the_merge_is_that_of_the_view(seed: int) -> None:
    chance = random.Random(seed)
    key = chance.sample(list(KEYS), chance.choice([1, 1, 2]))
    order = chance.choice([None, None, *SEQUENCES])
    types = [(name, KEYS[name][0]) for name in key] + [("value", pyarrow.int64())]
    if order is not None:
        types.append(("sequence", SEQUENCES[order][0]))

    def row() -> Row:
        values = {name: chance.choice(KEYS[name][1]) for name in key}
        if order is not None:
            values["sequence"] = chance.choice(SEQUENCES[order][1])
        return {**values, "value": chance.randrange(10**6)}

    base: dict[Any, Row] = {}
    for one in (row() for _ in range(chance.choice([0, 3, 9]))):
        base[tuple(same(one[name]) for name in key)] = one
    changes = [
        {**row(), ACTION: chance.choice(["U", "U", "D", "-U"]), OFFSET: place, COMMIT: commit}
        for commit in range(chance.choice([0, 1, 3]))
        for place in range(chance.randrange(6))
    ]
    chance.shuffle(changes)
    more = [(ACTION, pyarrow.large_string()), (OFFSET, pyarrow.int32()), (COMMIT, pyarrow.int64())]
    sequence_by = None if order is None else "sequence"
    latest = latest_changes(
        pyarrow.Table.from_pylist(changes, pyarrow.schema([*types, *more])), key, sequence_by
    )
    merged = merge_rows(
        pyarrow.Table.from_pylist(list(base.values()), pyarrow.schema(types)), latest, key, sequence_by
    )
    assert merged.column_names == [name for name, _ in types]
    wanted = expected(list(base.values()), changes, key, None if order is None else "sequence")
    assert sorted(merged.column("value").to_pylist()) == sorted(one["value"] for one in wanted)


def test_a_change_of_a_wider_type_has_the_key_of_the_base_row() -> None:
    base = pyarrow.table({"id": pyarrow.array([1, 2], pyarrow.int32()), "v": ["old", "old"]})
    changes = pyarrow.table(
        {
            "id": pyarrow.array([2, 2**40], pyarrow.int64()),
            "v": ["new", "new"],
            ACTION: ["U", "U"],
            OFFSET: [0, 1],
            COMMIT: [1, 1],
        }
    )
    merged = merge_rows(base, latest_changes(changes, ["id"], None), ["id"], None)
    assert sorted(merged.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "v": "old"},
        {"id": 2, "v": "new"},
        {"id": 2**40, "v": "new"},
    ]


def test_keys_are_found_by_all_their_columns() -> None:
    rows = pyarrow.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"], "v": [1, 2, 3, 4]})
    keys = pyarrow.table({"b": ["y", "x", "z"], "a": [1, 2, 2]})
    assert with_keys(rows, keys).column("v").to_pylist() == [2, 3]
