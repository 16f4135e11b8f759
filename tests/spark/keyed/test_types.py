"""Every type goes through build, upsert, compaction, pull and changes; every sensible scalar can be a key."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.keyed.null_safe_equality import same_row
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.refresh.pull import plan_changes
from tests.extent import first

PAYLOAD = {
    "flag": ("boolean", "true", "false"),
    "small": ("int", "1", "2147483647"),
    "big": ("bigint", "1", "-9223372036854775807"),
    "ratio": ("double", "0.1", "CAST('NaN' AS DOUBLE)"),
    "short_ratio": ("float", "0.5", "CAST('-0.0' AS FLOAT)"),
    "price": ("decimal(38,10)", "1.5", "9999999999999999999999999999.9999999999"),
    "day": ("date", "DATE'2020-02-29'", "DATE'1969-12-31'"),
    "at": ("timestamp", "TIMESTAMP'2020-01-01 00:00:00.000001Z'", "TIMESTAMP'1969-12-31 23:59:59.999999Z'"),
    "local": (
        "timestamp_ntz",
        "TIMESTAMP_NTZ'2020-01-01 00:00:00.000001'",
        "TIMESTAMP_NTZ'1900-01-01 00:00:00'",
    ),
    "name": ("string", "'it''s ß \\\\ \\n `x`'", "''"),
    "raw": ("binary", "X'00FF'", "X''"),
    "list": (
        "array<struct<a:int,m:map<string,int>>>",
        "array(named_struct('a', 1, 'm', map('x', 1)))",
        "array()",
    ),
    "nested": (
        "struct<a:int,s:struct<b:array<int>>>",
        "named_struct('a', 1, 's', named_struct('b', array(1, NULL)))",
        "named_struct('a', 1, 's', named_struct('b', array(1, 2)))",
    ),
    "pairs": ("map<string,int>", "map('a', 1, 'b', 2)", "map('a', 1, 'b', 3)"),
    "order": ("map<string,int>", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)"),
    "zeros": ("array<double>", "array(0D, NULL)", "array(CAST('-0.0' AS DOUBLE), NULL)"),
    "deep_zeros": (
        "struct<m:map<int,struct<f:float>>>",
        "named_struct('m', map(1, named_struct('f', CAST(0 AS FLOAT))))",
        "named_struct('m', map(1, named_struct('f', CAST('-0.0' AS FLOAT))))",
    ),
    "deep": ("map<int,map<date,array<int>>>", "map(1, map(DATE'2020-01-01', array(1)))", "map(1, map())"),
    "any": ("variant", "parse_json('{\"a\": [1, 2]}')", "parse_json('{\"a\": [1, 3]}')"),
}


def select(key: int, which: int) -> str:
    """A row with the first or the second value of each type; with 0, with NULLs."""
    values = ", ".join(
        f"CAST({('NULL', *literals)[which]} AS {type_}) AS `{name}`"
        for name, (type_, *literals) in PAYLOAD.items()
    )
    return f"SELECT {key}L AS id, {values}"


def rows_as_text(session: Any, sql: str) -> list[tuple[Any, ...]]:
    """Rows of texts: a variant is no value of Python."""
    columns = ", ".join(
        f"{'to_json' if type_ == 'variant' else 'string'}(`{name}`)" for name, (type_, *_) in PAYLOAD.items()
    )
    return sorted(session.query(f"SELECT id, {columns} FROM (\n{sql}\n) AS q"))


def test_every_type_as_payload(shop: Any) -> None:
    session = shop.main
    types = {"id": "bigint", **{name: type_ for name, (type_, *_) in PAYLOAD.items()}}
    orders = shop.table(types=types)
    orders.build_sql(f"{select(1, 1)} UNION ALL {select(2, 1)} UNION ALL {select(3, 0)}")
    before = orders.version
    consumer = shop.consumer("copy", orders)
    consumer.run()
    orders.upsert_sql(f"{select(2, 2)} UNION ALL {select(3, 2)} UNION ALL {select(1, 1)}")
    expected = rows_as_text(session, f"{select(1, 1)} UNION ALL {select(2, 2)} UNION ALL {select(3, 2)}")
    view = f"SELECT * FROM {orders.name.sql}"
    assert rows_as_text(session, view) == expected
    # A row that was written again as it is has not changed.
    changed = plan_changes(session.catalog, orders.name, before.token, None, "after", "test")
    assert rows_as_text(session, changed) == expected[1:]
    consumer.run()
    assert rows_as_text(session, f"SELECT * FROM {consumer.orders.name.sql}") == expected
    orders.compact()
    assert rows_as_text(session, f"SELECT * FROM {orders.table.base.sql}") == expected
    then = rows_as_text(session, merge_on_read(orders.table, before))
    roll_back(session.context, orders.name, before.token)
    assert rows_as_text(session, view) == then


def test_a_change_of_one_value_is_a_change_and_of_none_is_none(shop: Any) -> None:
    """By the expressions that `changes()` is made of."""
    sides = [f"({select(which, which)})" for which in (1, 2, 0)]
    found = []
    for name, (type_, *_) in PAYLOAD.items():
        same = same_row("o", "n", {name: type_})
        found.append(
            f"(SELECT collect_list(o.id * 10 + n.id) FROM t o JOIN t n ON o.id <= n.id WHERE {same})"
        )
    rows = shop.main.query(f"WITH t AS ({' UNION ALL '.join(sides)}) SELECT {', '.join(found)}")
    by_name = {name: sorted(alike) for name, alike in zip(PAYLOAD, rows[0], strict=True)}
    # Each of the three rows is like itself, and like no other.
    assert by_name == {name: [0, 11, 22] for name in PAYLOAD}


KEYS = {
    "decimal(20,5)": ["1.50000", "-99999999999999.99999", "0"],
    "timestamp": [
        "TIMESTAMP'2020-01-01 00:00:00.000001Z'",
        "TIMESTAMP'1969-12-31 23:59:59Z'",
        "TIMESTAMP'0001-01-01 00:00:00Z'",
    ],
    "timestamp_ntz": ["TIMESTAMP_NTZ'2020-03-29 02:30:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'"],
    "date": ["DATE'2020-02-29'", "DATE'0001-01-01'"],
    "binary": ["X'00FF'", "X''", "X'0000'"],
    "string": ["'ß'", "'日本'", "'it\\'s \"`'", "''", "'a\\nb\\\\'", "'A'", "'a'", "'a '"],
    "int": ["-2147483648", "0"],
}


@pytest.mark.parametrize("type_", first(4, KEYS))
def test_every_sensible_scalar_as_key(shop: Any, type_: str) -> None:
    """With a flag as the other part of the key, which cannot be bucketed."""
    orders = shop.table(types={"k": type_, "flag": "boolean", "v": "int"}, unique_key=["flag", "k"])
    keys = [(value, flag) for value in KEYS[type_] for flag in ("true", "false")]

    def batch(values: dict[int, int]) -> str:
        return " UNION ALL ".join(
            f"SELECT CAST({keys[at][0]} AS {type_}) AS k, {keys[at][1]} AS flag, {value} AS v"
            for at, value in values.items()
        )

    def kept() -> list[int]:
        return sorted(row[0] for row in shop.main.query(f"SELECT v FROM {orders.name.sql}"))

    model = {at: at for at in range(len(keys))}
    orders.build_sql(batch(model))
    orders.upsert_sql(batch({0: 100, 1: 101}))
    orders.upsert_sql(f"SELECT *, 'D' AS _action FROM ({batch({2: 0})})")
    model |= {0: 100, 1: 101}
    del model[2]
    assert kept() == sorted(model.values())
    orders.compact()
    assert kept() == sorted(model.values())
    orders.upsert_sql(batch({2: 102, 3: 103}))
    model |= {2: 102, 3: 103}
    assert kept() == sorted(model.values())


@pytest.mark.modelled
def test_an_upsert_moves_a_row_to_another_partition(shop: Any) -> None:
    orders = shop.table(types={"id": "bigint", "day": "date", "v": "int"}, partition_by=["day"])
    first = {"id": 1, "day": "2020-01-01", "v": 1}
    orders.build([first, {"id": 2, "day": "2020-01-02", "v": 2}])
    moved = {"id": 1, "day": "2020-01-02", "v": 10}
    orders.upsert([moved])
    expected = [moved, {"id": 2, "day": "2020-01-02", "v": 2}]
    assert orders.rows() == expected
    orders.compact()
    assert orders.base_rows() == expected
    orders.upsert([first])
    orders.upsert([{**first, "day": None}])
    orders.compact()
    assert orders.rows() == [{**first, "day": None}, expected[1]]
