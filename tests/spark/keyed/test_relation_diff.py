"""Two relations that were drawn at random are compared; plain dicts and counters say how they differ."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.adapter.diff_report import ModelDiff
from dbt_arctic.adapter.relation_diff import DiffOptions, compare_relations, current_relation
from dbt_arctic.auto.key_selection import ProjectKey
from dbt_arctic.keyed.names import Name
from tests.extent import extent

Row = dict[str, Any]
TYPES = {"id": "bigint", "line": "int", "amount": "int", "status": "string"}
NOTHING = ModelDiff("orders", "here", "there", "not built")


def drawn(draw: random.Random) -> list[Row]:
    return [
        {
            "id": key,
            "line": line,
            "amount": draw.choice([None, 1, 2]),
            "status": draw.choice(["open", "paid", None]),
        }
        for key in range(6)
        for line in range(2)
        if draw.random() < 0.7
    ]


def compare(shop: Any, here: Name, there: Name, keys: Any = (), **options: Any) -> tuple[ModelDiff, int]:
    """The comparison, and the number of its statements."""
    ran = []

    def query(sql: str) -> list[tuple[Any, ...]]:
        ran.append(sql)
        found: list[tuple[Any, ...]] = shop.main.query(sql)
        return found

    one, other = (current_relation(shop.main.catalog, name) for name in (here, there))
    assert one is not None
    assert other is not None
    declared = {here.dotted.lower(): [ProjectKey(tuple(columns), "") for columns in keys]}
    return compare_relations(query, NOTHING, one, other, declared, DiffOptions(**options)), len(ran)


def expected_by_key(here: list[Row], there: list[Row]) -> dict[str, Any]:
    one, other = ({(row["id"], row["line"]): row for row in rows} for rows in (here, there))
    columns: Counter[str] = Counter()
    changed = 0
    for key in one.keys() & other.keys():
        different = [name for name in ("amount", "status") if one[key][name] != other[key][name]]
        columns.update(different)
        changed += bool(different)
    return {
        "rows": len(here),
        "base_rows": len(there),
        "only_here": len(one.keys() - other.keys()),
        "only_there": len(other.keys() - one.keys()),
        "changed": changed,
        "columns": dict(columns),
    }


def figures(found: ModelDiff) -> dict[str, Any]:
    names = ("rows", "base_rows", "only_here", "only_there", "changed", "columns")
    return {name: getattr(found, name) for name in names}


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(extent(6, 40)))
def test_keyed_tables_are_compared_by_their_key(shop: Any, seed: int) -> None:
    draw = random.Random(seed)
    here, there = (shop.table(name, TYPES, unique_key=["id", "line"]) for name in ("here", "there"))
    rows = [drawn(draw) for _ in range(2)]
    for table, of_table in zip((here, there), rows, strict=True):
        table.build(of_table[: len(of_table) // 2])
        table.upsert(of_table[len(of_table) // 2 :])
        if draw.random() < 0.5:
            table.compact()
    found, statements = compare(shop, here.name, there.name, samples=100)
    assert figures(found) == expected_by_key(*rows)
    assert statements == 2
    assert (found.state, found.key, found.schema) == ("compared", ("id", "line"), ())
    # Every row that differs is a sample, as there are fewer than a hundred.
    one, other = ({(row["id"], row["line"]): row for row in of_table} for of_table in rows)
    samples = {(sample.kind, *sample.key.values()) for sample in found.samples}
    assert samples == {
        ("here" if key not in other else "there" if key not in one else "changed", *key)
        for key in one.keys() | other.keys()
        if one.get(key) != other.get(key)
    }
    for sample in found.samples:
        key = tuple(sample.key.values())
        for name, pair in sample.values.items():
            assert pair == tuple(None if side.get(key) is None else side[key][name] for side in (other, one))
    fewer, _ = compare(shop, here.name, there.name, samples=1)
    assert max(Counter(sample.kind for sample in fewer.samples).values(), default=0) <= 1
    same, statements = compare(shop, here.name, here.name)
    assert (same.differing, same.rows, statements) == (0, len(rows[0]), 1)


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(extent(4, 20)))
def test_relations_without_a_key_are_compared_as_bags(shop: Any, seed: int) -> None:
    draw = random.Random(seed)
    rows = [[draw.choice(drawn(draw)) for _ in range(size)] for size in (8, 5)]
    names = [shop.main.name("here"), shop.main.name("there")]
    make_plain(shop, names, rows)
    found, statements = compare(shop, *names)
    bags = [Counter(tuple(row.values()) for row in of_table) for of_table in rows]
    assert (found.only_here, found.only_there) == tuple(
        sum((one - other).values()) for one, other in (bags, bags[::-1])
    )
    assert (found.rows, found.base_rows, found.changed, found.key) == (8, 5, 0, ())
    assert statements == (2 if found.differing else 1)
    assert found.why == "it has no key, so whole rows were compared"
    # A declared key that is not unique is not a key.
    doubled = [[*of_table, of_table[0]] for of_table in rows]
    names = [shop.main.name("here_2"), shop.main.name("there_2")]
    make_plain(shop, names, doubled)
    found, _ = compare(shop, *names, keys=[("id", "line")])
    assert found.why == "id, line is not unique, so whole rows were compared"
    assert found.rows == 9


@pytest.mark.modelled
def test_a_declared_key_matches_rows_of_plain_tables(shop: Any) -> None:
    draw = random.Random(1)
    rows = [drawn(draw), drawn(draw)]
    names = [shop.main.name("here"), shop.main.name("there")]
    make_plain(shop, names, rows)
    found, _ = compare(shop, *names, keys=[("missing",), ("id", "line")])
    assert figures(found) == expected_by_key(*rows)
    assert found.key == ("id", "line")
    ignoring, _ = compare(shop, *names, keys=[("id", "line")], ignored=frozenset({"amount"}))
    assert (set(ignoring.columns), ignoring.schema) == ({"status"}, ())
    assert ignoring.ignored == {"amount"}


def make_plain(shop: Any, names: list[Name], rows: list[list[Row]]) -> None:
    cursor = shop.main.connection.cursor()
    for name, of_table in zip(names, rows, strict=True):
        listed = shop.table("any", TYPES).model(of_table)
        cursor.execute(f"CREATE TABLE {name.sql} USING iceberg AS {listed}")


@pytest.mark.modelled
def test_schema_differences_come_first(shop: Any) -> None:
    here = shop.table("here", {"id": "bigint", "amount": "bigint", "at": "date", "tag": "string"})
    there = shop.table(
        "there", {"ID": "bigint", "amount": "int", "at": "string", "gone": "int"}, unique_key="ID"
    )
    here.build([{"id": 1, "amount": 1, "at": "2026-01-31", "tag": "a"}])
    there.build([{"ID": 1, "amount": 2, "at": "x", "gone": 1}])
    found, _ = compare(shop, here.name, there.name)
    assert [str(one) for one in found.schema] == [
        "amount was int, is bigint",
        "at was string, is date",
        "tag string is new",
        "gone int is missing",
    ]
    assert (found.not_compared, found.changed, found.columns) == (("at",), 1, {"amount": 1})
    other = shop.table("other", {"key": "bigint"}, unique_key="key")
    other.build([{"key": 1}])
    nothing, statements = compare(shop, here.name, other.name)
    assert (nothing.state, statements) == ("not compared", 0)
    assert replace(nothing, schema=()).differs is False
