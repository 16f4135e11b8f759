"""The embedded reader and the SQL reader return the same for tables of a real Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.catalog.api import (
    CatalogColumn,
    CatalogReader,
    DataFile,
    ListedFile,
    RelationEntry,
    TableState,
)
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.api import Connection
from dbt_arctic.errors import CatalogUnavailable, UnknownRelation, VersionUnavailable

Sql = Callable[[str], list[tuple[Any, ...]]]

# pyspark leaves the sockets that it collects rows through to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

EVERY_TYPE = {
    "bo": "boolean",
    "ti": "tinyint",
    "sm": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "dec": "decimal(12,2)",
    "s": "string",
    "ch": "char(3)",
    "vc": "varchar(9)",
    "bin": "binary",
    "dt": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
    "v": "variant",
    "arr": "array<timestamp>",
    "m": "map<string,array<decimal(38,0)>>",
    "st": "struct<plain:bigint,inner:struct<x:int,y:map<int,string>>>",
    "odd `name`": "struct<`a b`:int>",
    "wide": "struct<" + ",".join(f"f{number}:int" for number in range(40)) + ">",
}


@pytest.fixture(params=["embedded", "by_sql"])
def catalog(request: pytest.FixtureRequest) -> CatalogReader:
    reader: CatalogReader = request.getfixturevalue(request.param)
    return reader


def loaded(catalog: CatalogReader, schema: str, name: str) -> TableState:
    table = catalog.load_table(schema, name)
    assert table is not None
    return table


def test_types_are_spelled_as_spark_spells_them(
    sql: Sql, connection: Connection, schema: str, at: str, catalog: CatalogReader
) -> None:
    columns = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in EVERY_TYPE.items())
    sql(f"CREATE TABLE {at}.t ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    wanted = connection.query_schema(f"SELECT * FROM {at}.t")
    found = loaded(catalog, schema, "t").columns
    assert [(column.name, column.type) for column in found] == [tuple(column) for column in wanted]


def test_columns_comments_and_properties(sql: Sql, schema: str, at: str, catalog: CatalogReader) -> None:
    sql(
        f"CREATE TABLE {at}.t"
        " (id BIGINT NOT NULL COMMENT 'the \\'key\\', NOT NULL', d DECIMAL(12, 2))"
        " USING iceberg COMMENT 'a table' PARTITIONED BY (bucket(4, id))"
        " TBLPROPERTIES ('format-version' = '3', 'k' = 'it\\'s, [v]')"
    )
    table = loaded(catalog, schema, "t")
    assert table.columns == (
        CatalogColumn("id", "bigint", "the 'key', NOT NULL", nullable=False),
        CatalogColumn("d", "decimal(12,2)"),
    )
    assert table.properties["k"] == "it's, [v]"
    assert table.properties["comment"] == "a table"
    assert table.properties["format-version"] == "3"
    assert (table.snapshots, table.branches, table.current_snapshot_id) == ((), {}, None)


def test_both_readers_tell_whether_the_rows_of_the_head_have_ids(
    sql: Sql, schema: str, at: str, embedded: EmbeddedCatalog, by_sql: SparkSqlCatalog
) -> None:
    sql(f"CREATE TABLE {at}.t (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    sql(f"INSERT INTO {at}.t VALUES (1), (2)")
    sql(f"ALTER TABLE {at}.t SET TBLPROPERTIES ('format-version' = '3')")
    for has_ids in (False, True):
        for reader in (embedded, by_sql):
            table = loaded(reader, schema, "t")
            assert table.history()[0].has_row_ids is has_ids
        sql(f"INSERT INTO {at}.t VALUES (3)")


def test_both_readers_agree_on_a_table_with_a_history(
    sql: Sql, schema: str, at: str, embedded: EmbeddedCatalog, by_sql: SparkSqlCatalog
) -> None:
    name = f"{at}.t"
    sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg COMMENT 'c' TBLPROPERTIES ('format-version' = '3')")
    sql(f"INSERT INTO {name} VALUES (1), (2)")
    sql(f"INSERT INTO {name} WITH (`snapshot-property.arctic.txn` = 'it''s') SELECT 3L AS id")
    sql(f"ALTER TABLE {name} CREATE BRANCH side")
    sql(f"INSERT INTO {name}.branch_side VALUES (4)")
    sql(f"INSERT INTO {name} WITH (`snapshot-property.arctic.empty` = 'y') SELECT id FROM {name} WHERE false")
    sql(f"DELETE FROM {name} WHERE id = 1")
    sql(f"ALTER TABLE {name} CREATE TAG kept")
    sql(f"ALTER TABLE {name} ADD COLUMN later STRING AFTER id")
    sql(f"ALTER TABLE {name} RENAME COLUMN id TO number")
    sql(f"INSERT INTO {name} WITH (`snapshot-property.n` = 'last') SELECT 5L, 'x'")
    table, same = loaded(embedded, schema, "t"), loaded(by_sql, schema, "t")
    # No statement returns the current spec, or the version of snapshots other than the head.
    head = next(one for one in same.snapshots if one.snapshot_id == same.current_snapshot_id)
    assert head.has_row_ids
    with_ids = tuple(replace(snapshot, has_row_ids=True) for snapshot in same.snapshots)
    assert table == replace(same, spec_id=0, snapshots=with_ids)
    for snapshot in table.snapshots:
        found = embedded.columns_at(schema, "t", snapshot.snapshot_id)
        then = by_sql.columns_at(schema, "t", snapshot.snapshot_id)
        if snapshot.summary.get("n") == "last":
            assert then == {
                "number": CatalogColumn("number", "bigint"),
                "later": CatalogColumn("later", "string"),
            }
            assert {name: (column.name, column.type) for name, column in found.items()} == {
                name: (column.name, column.type) for name, column in then.items()
            }
        else:
            assert then == {"id": CatalogColumn("id", "bigint")}, "by SQL only names tell"
            assert (found.keys(), found["number"].name) == ({"number"}, "id")
    assert [snapshot.sequence_number for snapshot in table.snapshots] == [1, 2, 3, 4, 5, 6]
    assert set(table.branches) == {"main", "side"}
    assert set(table.tags) == {"kept"}
    assert [snapshot.sequence_number for snapshot in table.history()] == [6, 5, 4, 2, 1]
    assert [snapshot.sequence_number for snapshot in table.history(table.branches["side"])] == [3, 2, 1]
    assert table.snapshots[1].summary["arctic.txn"] == "it's"
    assert table.snapshots[3].summary["arctic.empty"] == "y"


def test_both_readers_agree_on_a_view(
    sql: Sql, schema: str, at: str, embedded: EmbeddedCatalog, by_sql: SparkSqlCatalog
) -> None:
    sql(
        f"CREATE VIEW {at}.v (id COMMENT 'the key', x) COMMENT 'a view'"
        " TBLPROPERTIES ('arctic.kind' = 'keyed', 'q' = 'it\\'s') AS SELECT 1L AS a,\n  map('k', 1.5) AS b"
    )
    view, same = embedded.load_view(schema, "v"), by_sql.load_view(schema, "v")
    assert view is not None
    assert same is not None
    # DESCRIBE does not show whether a column of a view may be NULL.
    assert replace(view, columns=()) == replace(same, columns=())
    assert [(c.name, c.type, c.comment) for c in view.columns] == [
        (c.name, c.type, c.comment) for c in same.columns
    ]
    assert view.sql == "SELECT 1L AS a,\n  map('k', 1.5) AS b"
    assert view.comment == "a view"
    assert view.properties == {"arctic.kind": "keyed", "q": "it's", "comment": "a view"}


def test_what_is_replaced_renamed_or_dropped_is_seen_so(
    sql: Sql, schema: str, at: str, catalog: CatalogReader
) -> None:
    at_home = at.removeprefix("lake.")  # Spark puts a new name in the old one's catalog
    assert catalog.list_relations(schema) == []
    sql(f"CREATE TABLE {at}.t (id BIGINT) USING iceberg")
    sql(f"CREATE VIEW {at}.v TBLPROPERTIES ('n' = '1') AS SELECT 1 AS a")
    sql("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 1 AS a")
    assert catalog.list_relations(schema) == [
        RelationEntry(schema, "t", "table"),
        RelationEntry(schema, "v", "view", {"n": "1"}),
    ]
    assert catalog.load_table(schema, "v") is None
    assert catalog.load_view(schema, "t") is None
    sql(f"CREATE OR REPLACE VIEW {at}.v TBLPROPERTIES ('n' = '2') AS SELECT 1 AS a")
    sql(f"ALTER VIEW {at}.v SET TBLPROPERTIES ('m' = '3')")
    sql(f"ALTER TABLE {at}.t RENAME TO {at_home}.moved")
    assert catalog.list_relations(schema) == [
        RelationEntry(schema, "moved", "table"),
        RelationEntry(schema, "v", "view", {"n": "2", "m": "3"}),
    ]
    sql(f"ALTER VIEW {at}.v RENAME TO {at_home}.w")
    sql(f"DROP TABLE {at}.moved")
    assert [entry.name for entry in catalog.list_relations(schema)] == ["w"]
    assert catalog.load_table(schema, "moved") is None
    sql(f"DROP VIEW {at}.w")
    assert catalog.list_relations(schema) == []
    assert schema in catalog.list_schemas()
    sql(f"DROP NAMESPACE {at}")
    assert schema not in catalog.list_schemas()
    assert catalog.list_relations(schema) == []
    assert catalog.load_table(schema, "t") is None


def test_data_files_and_their_bounds(sql: Sql, schema: str, at: str, catalog: CatalogReader) -> None:
    name = f"{at}.t"
    sql(
        f"CREATE TABLE {name} (id BIGINT, `_txn` BIGINT, s STRING) USING iceberg"
        " PARTITIONED BY (bucket(4, id))"
        " TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read',"
        " 'commit.manifest.min-count-to-merge' = '2')"
    )
    sql(f"INSERT INTO {name} SELECT id, 7L, 'x' FROM range(100)")
    first = loaded(catalog, schema, "t").current_snapshot_id
    sql(f"INSERT INTO {name} SELECT id, -9223372036854775808L, 'y' FROM range(50)")
    sql(f"INSERT INTO {name} VALUES (1, NULL, 'z')")
    sql(f"DELETE FROM {name} WHERE id = 3")  # a deletion vector: the files stay
    sql(f"DELETE FROM {name} WHERE `_txn` = 7")  # whole files
    last = loaded(catalog, schema, "t").current_snapshot_id
    assert first is not None
    assert last is not None
    for snapshot, files in ((first, 4), (last, 5)):
        wanted = sql(
            "SELECT file_path, record_count, file_size_in_bytes, readable_metrics.`_txn`.lower_bound,"
            " readable_metrics.`_txn`.upper_bound, readable_metrics.`_txn`.null_value_count"
            f" FROM {name}.data_files VERSION AS OF {snapshot}"
        )
        found = catalog.data_files(schema, "t", snapshot, "_TXN")
        assert set(found) == {DataFile(*row) for row in wanted}
        assert sum(file.nulls or 0 for file in found) == (snapshot == last)
        assert len(found) == files
        paths = sql(f"SELECT file_path, file_size_in_bytes FROM {name}.files VERSION AS OF {snapshot}")
        stored = [(file.path, file.size_bytes) for file in catalog.stored_files(schema, "t", snapshot)]
        assert sorted(stored) == sorted(paths)  # deletion vectors as well
    with pytest.raises(VersionUnavailable):
        catalog.data_files(schema, "t", 1, "id")
    with pytest.raises(UnknownRelation):
        catalog.data_files(schema, "t", first, "nothing")
    with pytest.raises(UnknownRelation):
        catalog.data_files(schema, "nothing", first, "id")


def test_bounds_of_dates_are_days(sql: Sql, schema: str, at: str, catalog: CatalogReader) -> None:
    sql(
        f"CREATE TABLE {at}.t USING iceberg AS SELECT DATE '1970-01-11' AS day UNION SELECT DATE '1969-12-31'"
    )
    snapshot = loaded(catalog, schema, "t").current_snapshot_id
    assert snapshot is not None
    found = catalog.data_files(schema, "t", snapshot, "day")
    assert (min(file.lower for file in found), max(file.upper for file in found)) == (-1, 10)


def test_a_property_that_spark_hides_is_not_taken_for_its_value(
    sql: Sql, schema: str, at: str, embedded: EmbeddedCatalog, by_sql: SparkSqlCatalog
) -> None:
    sql(f"CREATE TABLE {at}.t (id INT) USING iceberg TBLPROPERTIES ('other' = 'my token')")
    assert loaded(by_sql, schema, "t").properties["other"] != "my token", "Spark hides nothing any more"
    sql(f"ALTER TABLE {at}.t SET TBLPROPERTIES ('arctic.key' = '[\"session_token\"]')")
    assert loaded(embedded, schema, "t").properties["arctic.key"] == '["session_token"]'
    with pytest.raises(CatalogUnavailable, match=r"Spark hides arctic\.key of .*"):
        by_sql.load_table(schema, "t")


def test_files_are_told_by_partition_with_what_they_hide(
    sql: Sql, schema: str, at: str, catalog: CatalogReader
) -> None:
    sql(
        f"CREATE TABLE {at}.placed (id BIGINT, day DATE) USING iceberg "
        "PARTITIONED BY (day, bucket(1, id)) TBLPROPERTIES ('format-version' = '3', "
        "'write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'hash')"
    )
    sql(f"INSERT INTO {at}.placed SELECT id, if(id < 4, DATE'2026-01-02', NULL) FROM range(1, 5)")
    sql(f"DELETE FROM {at}.placed WHERE id = 2")
    snapshot = loaded(catalog, schema, "placed").current_snapshot_id
    assert snapshot is not None
    found = catalog.placed_files(schema, "placed", snapshot, "id")
    told = sorted((one.is_data, one.rows, one.partition, one.bounds) for one in found)
    assert told == [
        (False, 1, ("2026-01-02", "0"), None),
        (True, 1, ("NULL", "0"), (4, 4)),
        (True, 3, ("2026-01-02", "0"), (1, 3)),
    ]
    assert all(one.size_bytes > 0 for one in found if one.is_data)
    assert {one.bounds for one in catalog.placed_files(schema, "placed", snapshot)} == {None}
    sql(f"CREATE TABLE {at}.whole USING iceberg AS SELECT 1L AS id")
    whole = loaded(catalog, schema, "whole").current_snapshot_id
    assert whole is not None
    assert [one.partition for one in catalog.placed_files(schema, "whole", whole)] == [()]
    with pytest.raises(UnknownRelation):
        catalog.placed_files(schema, "nothing", whole)


def test_the_rows_of_a_small_table(sql: Sql, schema: str, at: str, catalog: CatalogReader) -> None:
    sql(
        f"CREATE TABLE {at}.small (at TIMESTAMP, name STRING, took DOUBLE, files BIGINT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    assert catalog.read_rows(schema, "small", ["name"]) == []
    sql(
        f"INSERT INTO {at}.small VALUES (timestamp_millis(1001), 'it''s', 1.5D, 9), "
        "(timestamp_millis(2002), NULL, 2D, NULL), (timestamp_millis(3003), 'gone', 0D, 0)"
    )
    sql(f"INSERT INTO {at}.small VALUES (timestamp_millis(4004), 'later', 3D, 1)")
    sql(f"DELETE FROM {at}.small WHERE name = 'gone'")  # a deletion vector
    rows = catalog.read_rows(schema, "small", ["files", "at", "name", "took"])
    told = sorted((round(at.timestamp() * 1000), name, took, files) for files, at, name, took in rows)
    assert told == [(1001, "it's", 1.5, 9), (2002, None, 2.0, None), (4004, "later", 3.0, 1)]
    first = loaded(catalog, schema, "small").history()[-1].snapshot_id
    assert {name for (name,) in catalog.read_rows(schema, "small", ["name"], first)} == {"it's", None, "gone"}
    with pytest.raises(UnknownRelation):
        catalog.read_rows(schema, "nothing", ["name"])


def test_the_files_below_a_folder(catalog: CatalogReader, tmp_path: Path) -> None:
    for name in ("a [1].json", "day=1/b%20+c.json", "day=1/deep/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    expected = {
        ListedFile(str(path), path.stat().st_mtime_ns // 1_000_000, path.stat().st_size)
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert set(catalog.list_files(str(tmp_path))) == expected
    assert catalog.list_files(str(tmp_path / "nothing")) == []
