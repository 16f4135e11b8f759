"""``dbt_arctic.read`` finds the rows that Spark finds: types, versions, lookups, and tables of other engines.

``Orders.rows`` compares both in all other tests of this folder, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from dbt_arctic.catalog import table_scan
from dbt_arctic.errors import ConcurrentRun, ConfigError, OnlyBySpark, UnknownRelation, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column
from dbt_arctic.maintenance import table_read
from dbt_arctic.maintenance.table_read import read_table
from dbt_arctic.maintenance.timeline import history
from dbt_arctic.maintenance.versions import rows_at
from tests.spark.keyed.test_types import PAYLOAD, select


def by_spark(shop: Any, sql: str, like: pyarrow.Table) -> pyarrow.Table:
    return shop.main.connection.session.sql(sql).toArrow().select(like.column_names).cast(like.schema)


def in_order(table: pyarrow.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def require_equal(shop: Any, name: Name, at: str | None = None) -> pyarrow.Table:
    found = read_table(shop.main.catalog, name, at=at)
    sql = f"SELECT * FROM {name.sql}" if at is None else rows_at(shop.main.catalog, name, at, "test")
    assert in_order(found) == in_order(by_spark(shop, sql, found))
    return found


def test_every_type_is_read_exactly(shop: Any) -> None:
    types = {"id": "bigint", **{name: type_ for name, (type_, *_) in PAYLOAD.items() if type_ != "variant"}}
    columns = ", ".join(f"`{name}`" for name in types)

    def rows(*pairs: tuple[int, int]) -> str:
        return f"SELECT {columns} FROM ({' UNION ALL '.join(select(key, which) for key, which in pairs)})"

    orders = shop.table(types=types)
    orders.build_sql(rows((1, 1), (2, 2), (3, 0)))
    orders.upsert_sql(rows((2, 1), (3, 2), (4, 0)))
    found = require_equal(shop, orders.name)
    assert found.column_names == list(types)
    assert found.num_rows == 4
    orders.compact()
    require_equal(shop, orders.name)


KEYS: dict[str, list[Any]] = {
    "decimal(20,5)": [Decimal("1.5"), Decimal("-99999999999999.99999"), Decimal(0)],
    "timestamp": [datetime(2020, 1, 1, 0, 0, 0, 1, timezone.utc), datetime(1, 1, 1, tzinfo=timezone.utc)],
    "timestamp_ntz": [datetime(2020, 3, 29, 2, 30), datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "date": [date(2020, 2, 29), date(1, 1, 1)],
    "binary": [b"\x00\xff", b"", b"\x00\x00"],
    "string": ["ß", "", "A", "a", "a ", "x" * 40],
    "int": [-(2**31), 0, 7],
    "bigint": [-(2**63), 2**63 - 1, 0],
}


def test_a_key_of_each_type_is_looked_up(shop: Any) -> None:
    spark = shop.main.connection.session
    for place, (type_, keys) in enumerate(KEYS.items()):
        orders = shop.table(f"t{place}", types={"k": type_, "v": "int"}, unique_key="k", buckets=4)
        frame = spark.createDataFrame(list(zip(keys, range(len(keys)), strict=True)), f"k {type_}, v int")
        frame.createOrReplaceTempView("batch")
        orders.build_sql("SELECT * FROM batch")
        orders.upsert_sql("SELECT k, v + 10 AS v FROM batch WHERE v = 1")
        for value, key in enumerate(keys):
            read = read_table(shop.main.catalog, orders.name, ["v"], keys=[key])
            assert read.to_pylist() == [{"v": value + 10 if value == 1 else value}], key


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that are opened."""
    files: list[str] = []
    open_file = table_scan.open_file

    def opening(location: str, properties: Any) -> Any:
        files.append(location)
        return open_file(location, properties)

    monkeypatch.setattr(table_scan, "open_file", opening)
    return files


def test_a_lookup_opens_the_files_that_may_have_the_key(shop: Any, opened: list[str]) -> None:
    orders = shop.table(types={"id": "bigint", "v": "int"}, buckets=4)
    orders.build_sql("SELECT id, 0 AS v FROM range(400)")
    orders.upsert_sql("SELECT id, 1 AS v FROM range(0, 200)")
    orders.upsert_sql("SELECT id, 2 AS v FROM range(200, 400)")
    catalog, table = shop.main.catalog, orders.table
    sides = {"base": table.base, "change": table.change}
    for key in (7, 350, 1000):
        opened.clear()
        read = read_table(catalog, orders.name, keys=[key])
        assert read.to_pylist() == ([{"id": key, "v": 1 + (key >= 200)}] if key < 400 else [])
        ((bucket,),) = orders.session.query(f"SELECT lake.system.bucket(4, {key}L)")
        expected = 0
        for side in sides.values():
            state = catalog.load_table(side.schema, side.identifier)
            files = catalog.placed_files(side.schema, side.identifier, state.current_snapshot_id, "id")
            expected += sum(
                file.is_data
                and file.partition == (str(bucket),)
                and (file.bounds is None or file.bounds[0] <= key <= file.bounds[1])
                for file in files
            )
        assert len(opened) == expected
        assert expected <= 3  # a file of the base table, one of the changes, and a marker


def test_each_version_is_read_as_by_spark(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    catalog = shop.main.catalog
    # A name that dbt-arctic uses in its statements is no reserved name.
    types = {"id": "bigint", "v": "int", "_arctic_commit": "int"}
    orders = shop.table(types={**types, "s": "struct<a: int>"}, on_schema_change="append_new_columns")

    def row(key: int) -> dict[str, Any]:
        struct = chance.choice([None, {"a": None}, {"a": 1}])
        return {"id": key, "v": chance.randrange(9), "_arctic_commit": -key, "s": struct}

    orders.build([row(key) for key in range(6)])
    orders.apply([row(key) for key in (1, 2, 7)], [{"id": 3}])
    orders.compact()
    wider = orders.with_types({**types, "s": "struct<a: int, b: string>", "w": "string"})
    wider.upsert([{"id": 8, "v": 1, "_arctic_commit": 0, "s": {"a": 1, "b": "x"}, "w": "new"}])
    wider.apply([], [{"id": 1}])
    wider.compact()
    versions = [entry.version.token for entry in history(catalog, orders.name) if entry.version is not None]
    assert len(versions) > 4
    for version in versions:
        require_equal(shop, orders.name, version)
    # An older generation keeps its types.
    other = wider.with_types({"id": "bigint", "v": "int", "w": "string", "later": "date"})
    other.build([{"id": 1, "v": 1, "w": "rebuilt", "later": None}])
    for columns in (None, ["later"], ["later", "v"]):
        found = read_table(catalog, orders.name, columns, at=versions[0])
        expected = by_spark(shop, rows_at(catalog, orders.name, versions[0], "test"), found)
        assert in_order(found) == in_order(expected)
    # A column that is dropped after the view was read is not NULL.
    pinned, stale = table_read.pinned_pair, [Column("dropped", "int")]

    def pinned_before_the_drop(*where: Any) -> Any:
        table, *states = pinned(*where)
        return (replace(table, columns=(*table.columns, stale.pop())) if stale else table, *states)

    monkeypatch.setattr(table_read, "pinned_pair", pinned_before_the_drop)
    assert read_table(catalog, orders.name).column_names == ["id", "v", "w", "later"]
    stale.extend([Column("dropped", "int")] * 5)
    with pytest.raises(ConcurrentRun, match="changed 5 times while they were read"):
        read_table(catalog, orders.name)


@pytest.fixture
def plain(shop: Any) -> Iterator[Name]:
    name = shop.main.name("plain")
    yield name
    shop.main.query(f"DROP TABLE IF EXISTS {name.sql}")


@pytest.mark.parametrize("version", [2, 3])
def test_a_plain_table_with_deleted_rows_and_other_columns(shop: Any, plain: Name, version: int) -> None:
    """Files of deleted positions in format version 2, deletion vectors in version 3."""
    run = shop.main.query
    run(
        f"CREATE TABLE {plain.sql} (id INT, `x-y` STRUCT<`a b`: INT>, gone STRING, day DATE) USING iceberg "
        "PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    run(
        f"INSERT INTO {plain.sql} SELECT /*+ REPARTITION(1) */ CAST(id AS INT),"
        " named_struct('a b', CAST(id AS INT)), 'x', date_add(DATE'2020-01-01', CAST(id % 2 AS INT))"
        " FROM range(100)"
    )
    run(f"DELETE FROM {plain.sql} WHERE id % 7 = 3")
    first = shop.main.catalog.load_table(plain.schema, plain.identifier).current_snapshot_id
    require_equal(shop, plain)
    run(f"DELETE FROM {plain.sql} WHERE id % 5 = 1")
    run(f"ALTER TABLE {plain.sql} DROP COLUMN gone")
    run(f"ALTER TABLE {plain.sql} RENAME COLUMN id TO number")
    run(f"ALTER TABLE {plain.sql} ALTER COLUMN number TYPE BIGINT")
    run(f"ALTER TABLE {plain.sql} ADD COLUMN gone STRING")
    run(f"ALTER TABLE {plain.sql} ADD COLUMN `x-y`.c INT")
    run(f"INSERT INTO {plain.sql} SELECT 1000L, NULL, NULL, 'back'")
    found = require_equal(shop, plain)
    assert found.num_rows == 100 - len({n for n in range(100) if n % 7 == 3 or n % 5 == 1}) + 1
    then = read_table(shop.main.catalog, plain, at=str(first))
    assert sorted(then.column("number").to_pylist()) == [n for n in range(100) if n % 7 != 3]
    assert set(then.column("gone").to_pylist()) == {None}


def test_what_cannot_be_read(shop: Any, plain: Name, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, run = shop.main.catalog, shop.main.query
    with pytest.raises(UnknownRelation, match="there is no table"):
        read_table(catalog, plain)
    run(f"CREATE TABLE {plain.sql} (id INT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    with pytest.raises(OnlyBySpark, match="type that pyiceberg does not support"):
        read_table(catalog, plain)
    run(f"DROP TABLE {plain.sql}")
    run(f"CREATE TABLE {plain.sql} (id INT) USING iceberg")
    assert read_table(catalog, plain).to_pylist() == []
    run(f"INSERT INTO {plain.sql} VALUES (1)")
    assert read_table(catalog, plain, []).num_rows == read_table(catalog, plain, [], limit=5).num_rows == 1
    with pytest.raises(ConfigError, match="-1 is not a number of rows"):
        read_table(catalog, plain, limit=-1)
    with pytest.raises(ConfigError, match="which has no key"):
        read_table(catalog, plain, keys=[1])
    with pytest.raises(ConfigError, match="has no column v"):
        read_table(catalog, plain, ["v"])
    with pytest.raises(VersionUnavailable, match="has no version '17'"):
        read_table(catalog, plain, at="17")
    with pytest.raises(VersionUnavailable, match="has no version '1999-01-01'"):
        read_table(catalog, plain, at="1999-01-01")
    view = shop.main.name("over_plain")
    run(f"CREATE VIEW {view.sql} AS SELECT * FROM {plain.sql}")
    with pytest.raises(OnlyBySpark, match="it is a view"):
        read_table(catalog, view)
    run(f"DROP VIEW {view.sql}")
    orders = shop.table(types={"id": "bigint", "o": "struct<a: int>"}, sequence_by="o")
    orders.build([{"id": 1, "o": {"a": 1}}])
    with pytest.raises(OnlyBySpark, match="o, which its rows are compared by, has fields"):
        read_table(catalog, orders.name)
    scanned = table_scan.scanned_files

    def with_equality_deletes(*where: Any) -> Any:
        return [file._replace(content=2) for file in scanned(*where)]

    monkeypatch.setattr(table_scan, "scanned_files", with_equality_deletes)
    with pytest.raises(OnlyBySpark, match="equality deletes"):
        read_table(catalog, plain)


def test_a_limit_reads_files_until_there_are_enough_rows(shop: Any, opened: list[str]) -> None:
    for config in ({}, {"sequence_by": "v"}):
        orders = shop.table(f"limited{len(config)}", {"id": "bigint", "v": "int"}, buckets=8, **config)
        orders.build_sql("SELECT id, 5 AS v FROM range(80)")
        orders.upsert_sql("SELECT id, CAST(id % 10 AS INT) AS v FROM range(0, 120)")
        orders.upsert_sql("SELECT id, 99 AS v, 'D' AS _action FROM range(3, 50)")
        every = {row["id"]: row["v"] for row in orders.rows()}
        assert len(every) == 73
        for limit in (0, 1, 20, 73, 100):
            opened.clear()
            read = read_table(shop.main.catalog, orders.name, limit=limit)
            assert read.num_rows == min(limit, 73)
            assert all(every[row["id"]] == row["v"] for row in read.to_pylist())
        assert len(set(read.column("id").to_pylist())) == 73
        orders.compact()
        opened.clear()
        assert read_table(shop.main.catalog, orders.name, limit=1).num_rows == 1
        assert len([one for one in opened if "__base_" in one]) == 1
