"""A plain Iceberg table becomes a keyed one in its own files, and a plain one again; no row is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.errors import (
    ConcurrentRun,
    ConfigError,
    DuplicateKey,
    KeyColumnMissing,
    NullKey,
    StatementError,
    VersionUnavailable,
)
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed
from dbt_arctic.maintenance.adopt import adopt_table, finish_adoption, plan_adoption
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.restore import restore_table
from dbt_arctic.maintenance.timeline import history
from dbt_arctic.maintenance.undo_adoption import undo_adoption
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.maintenance.versions import rows_at
from dbt_arctic.refresh.external_append import AppendOptions, append_rows
from dbt_arctic.refresh.pull import plan_pull
from tests.extent import first


def plain(shop: Any, name: str = "orders", version: int = 2, layout: str = "") -> None:
    """A table as another program has made it: updated in place, with delete files."""
    sql = shop.main.query
    sql(
        f"CREATE TABLE {shop.main.name(name).sql} (id BIGINT, amount INT) USING iceberg {layout} "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.merge.mode'='copy-on-write', 'owner-team'='sales')"
    )
    sql(f"INSERT INTO {shop.main.name(name).sql} VALUES (0, 0), (1, 1), (2, 2), (3, 3)")
    sql(f"DELETE FROM {shop.main.name(name).sql} WHERE id = 3")
    sql(f"INSERT INTO {shop.main.name(name).sql} VALUES (4, 4)")


def adopted(shop: Any, name: str = "orders", at: Any = None, key: tuple[str, ...] = ("id",)) -> KeyedTable:
    context = (at or shop.main).context
    return adopt_table(context, plan_adoption(context, shop.main.name(name), key))


def files(shop: Any, identifier: str) -> set[str]:
    state = shop.main.catalog.load_table(shop.main.schema, identifier)
    stored = shop.main.catalog.stored_files(shop.main.schema, identifier, state.current_snapshot_id)
    return {file.path for file in stored}


def findings(shop: Any, schema: str) -> set[str]:
    session, catalog = shop.main, shop.main.catalog
    inventory = take_inventory(catalog, "lake", schema)
    found = verify_schema(catalog, inventory, session.context.now_ms(), shop.size_of, session.query)
    return {finding.kind for finding in found}


def test_an_adopted_table_keeps_its_files_and_goes_on_as_a_keyed_one(
    shop: Any, schema: str, warehouse: Path
) -> None:
    plain(shop)
    before = files(shop, "orders")
    first = shop.main.catalog.load_table(schema, "orders").history()[-1].snapshot_id
    consumed = plan_pull(shop.main.catalog, shop.main.name("orders"), None, model="daily").consumed
    table = adopted(shop)
    assert files(shop, table.base.identifier) == before
    state = shop.main.catalog.load_table(schema, table.base.identifier)
    assert (state.properties["format-version"], state.properties["owner-team"]) == ("3", "sales")
    assert table.layout.buckets == 0

    orders = shop.table(buckets=None)
    rows = {0: 0, 1: 1, 2: 2, 4: 4}

    def shown() -> dict[int, int]:
        return {row["id"]: row["amount"] for row in orders.rows()}

    assert shown() == rows
    assert findings(shop, schema) == set()
    kinds = [entry.kind for entry in history(shop.main.catalog, orders.name)]
    assert kinds == ["adoption", "adoption", "before adoption", "before adoption", "before adoption"]

    consumer = shop.consumer("daily", orders)
    orders.apply([{"id": 1, "amount": 10}, {"id": 5, "amount": 5}], [{"id": 2}])
    # A model that read the plain table gets the changes since then.
    pull = plan_pull(shop.main.catalog, orders.name, consumed, model="daily")
    changed = shop.main.read(pull.sql, ["id", "_action"])
    assert sorted((row["id"], row["_action"]) for row in changed) == [(1, "U"), (2, "D"), (5, "U")]
    with pytest.raises(VersionUnavailable, match="is not the table that this model last read"):
        plan_pull(shop.main.catalog, orders.name, Consumed("elsewhere", consumed.version), model="daily")
    consumer.run()
    orders.compact()
    rows = {0: 0, 1: 10, 4: 4, 5: 5}
    assert shown() == rows
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == rows
    orders.upsert([{"id": 6, "amount": 6}])
    assert consumer.run() == "upserted"
    assert [row["id"] for row in consumer.rows()] == [0, 1, 4, 5, 6]
    old = rows_at(shop.main.catalog, orders.name, f"1.{_first_change(shop, table)}.{first}", "test")
    assert {row["id"] for row in shop.main.read(old, ["id"])} == {0, 1, 2, 3}
    assert findings(shop, schema) == set()
    # The view's metadata is not in the folder of the table's files, now and when it is replaced.
    orders.build([{"id": 7, "amount": 7}])
    folder = warehouse / schema
    assert len(list((folder / "orders__view" / "metadata").glob("*.metadata.json"))) > 1
    names = [path.name for path in (folder / "orders" / "metadata").glob("*.metadata.json")]
    assert len(names) == len({name.partition("-")[0] for name in names}), "of one relation only"


def _first_change(shop: Any, table: KeyedTable) -> int:
    state = shop.main.catalog.load_table(shop.main.schema, table.change.identifier)
    return int(state.history()[-1].snapshot_id)


@pytest.mark.modelled
@pytest.mark.without_views
def test_what_cannot_be_adopted_is_told_before_anything_changes(shop: Any, schema: str) -> None:
    context, sql = shop.main.context, shop.main.query
    plain(shop)
    name = shop.main.name("orders")
    sql(f"INSERT INTO {name.sql} VALUES (1, 7), (NULL, 8)")
    with pytest.raises(DuplicateKey, match=r'has 1 duplicate key, for instance {"id":1}'):
        plan_adoption(context, name, ["id"])
    sql(f"DELETE FROM {name.sql} WHERE amount = 7")
    with pytest.raises(NullKey, match="has 1 row with NULL"):
        plan_adoption(context, name, ["ID"])
    with pytest.raises(KeyColumnMissing, match="no column price"):
        plan_adoption(context, name, ["id", "price"])
    sql(f"ALTER TABLE {name.sql} ADD COLUMN _txn BIGINT")
    with pytest.raises(ConfigError, match="reserved name of keyed tables"):
        plan_adoption(context, name, ["id"])
    views = {"v"} if shop.main.catalog.has_views() else set()
    for view in views:
        sql(f"CREATE VIEW {name.sibling(view).sql} AS SELECT 1 AS id")
        with pytest.raises(ConfigError, match="is a view"):
            plan_adoption(context, name.sibling(view), ["id"])
    assert {entry.name for entry in shop.main.catalog.list_names(schema)} == {"orders", *views}


@pytest.mark.modelled
@pytest.mark.without_views
def test_cut_off_anywhere_the_table_is_found_again(
    shop: Any, schema: str, warehouse: Path, cut_off: tuple[type[Exception], ...]
) -> None:
    """Adopted and released again and again, and cut off one statement later each time."""
    plain(shop, version=3, layout="PARTITIONED BY (bucket(2, id))")
    sql, name = shop.main.query, shop.main.name("orders")
    rows = [(0, 0), (1, 1), (2, 2), (4, 4)]
    before = files(shop, "orders")
    gaps = 0
    for undo in (False, True):
        for at in range(20):
            worker = shop.session()
            worker.statements.die(at)
            try:
                if undo:
                    undo_adoption(worker.context, name)
                else:
                    adopted(shop, at=worker)
            except cut_off:
                if finish_adoption(shop.main.context, name) is not None:
                    gaps += 1
                assert sorted(sql(f"SELECT * FROM {name.sql}")) == rows, worker.statements.steps
                if not undo and shop.main.catalog.load_table(schema, "orders") is None:
                    undo_adoption(shop.main.context, name)
                if undo and shop.main.catalog.load_table(schema, "orders") is not None:
                    undo_adoption(shop.main.context, name)
                    adopted(shop)
            else:
                break
    assert gaps == 2, "once each way, nothing has the name"
    state = shop.main.catalog.load_table(schema, "orders")
    assert files(shop, "orders") == before
    assert {entry.name for entry in shop.main.catalog.list_names(schema)} == {"orders"}
    assert not [key for key in state.properties if key.startswith("arctic.")]
    assert state.properties["write.merge.mode"] == "copy-on-write"
    assert "write.update.mode" not in state.properties
    assert sorted(sql(f"SELECT * FROM {name.sql}")) == rows
    assert findings(shop, schema) == set()


@pytest.mark.modelled
@pytest.mark.without_views
def test_who_writes_while_a_table_changes_its_kind_loses_nothing(shop: Any, schema: str) -> None:
    plain(shop, layout="PARTITIONED BY (bucket(2, id))")
    name, other = shop.main.name("orders"), shop.session()

    def adopted_beside(writes: dict[str, str]) -> KeyedTable:
        """Before the commit that says from where on the table is a base, and before it is renamed."""
        worker = shop.session()

        def write(step: str) -> None:
            if step in writes:
                other.query(f"INSERT INTO {name.sql} VALUES {writes.pop(step)}")

        worker.statements.before = write
        return adopted(shop, at=worker)

    for step in ("mark_adopted", "rename"):
        with pytest.raises(DuplicateKey):
            adopted_beside({step: "(1, 7)"})
        assert len(shop.main.query(f"SELECT * FROM {name.sql}")) == 5, "the plain table that it was"
        shop.main.query(f"DELETE FROM {name.sql} WHERE amount = 7")
    table = adopted_beside({"mark_adopted": "(10, 1)", "rename": "(11, 1)"})
    assert table.layout.buckets == 2

    orders = shop.table()
    orders.upsert([{"id": 12, "amount": 2}])
    with pytest.raises(ConfigError, match=r"has 1 commit not merged"):
        undo_adoption(shop.main.context, name)
    orders.compact()
    undo_adoption(shop.main.context, name)
    assert len(shop.main.query(f"SELECT * FROM {name.sql}")) == 7


@pytest.mark.modelled
@pytest.mark.without_views
def test_a_table_that_becomes_plain_again_still_records_what_it_has_read_and_who_appended(
    shop: Any, schema: str, cut_off: tuple[type[Exception], ...]
) -> None:
    orders = shop.table("orders", buckets=2)
    orders.build([{"id": 1, "amount": 1}])
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 2, "amount": 2}])
    copy.run()
    options = AppendOptions(key="monday")
    context, name = shop.main.context, copy.orders.name
    rows = "SELECT 7L AS id, 7 AS amount, 'other' AS source"
    assert append_rows(context, name, rows, options).written
    copy.orders.compact()
    read = copy.expected
    for at in range(20):
        worker = shop.session()
        worker.statements.die(at)
        try:
            undo_adoption(worker.context, name)
        except cut_off:
            finish_adoption(context, name)
            if shop.main.catalog.load_table(schema, "copy") is None:
                assert findings(shop, schema) == set()
                assert copy.expected == read
        else:
            break
    state = shop.main.catalog.load_table(schema, "copy")
    assert list(read) == [orders.name.dotted]
    assert consumed_versions(state.history()) == read
    assert sum(PROPERTY_CONSUMED in one.summary for one in state.history()) == 1, "once, however often"
    assert not append_rows(context, name, rows, options).written


@pytest.mark.modelled
@pytest.mark.without_views
def test_the_view_of_an_adoption_replaces_nothing_not_even_when_it_is_late(
    shop: Any, cut_off: tuple[type[Exception], ...]
) -> None:
    plain(shop)
    name, late, worker = shop.main.name("orders"), shop.session(), shop.session()
    late.statements.delay(shop.main.log_of(lambda: _adopted_as(shop, "other")).index("publish_view"))
    with pytest.raises(cut_off, match="before publish_view"):
        adopted(shop, at=late)
    finish_adoption(shop.main.context, name)
    orders = shop.table()
    orders.build([{"id": 7, "amount": 7}])
    late.statements.land()
    assert orders.rows() == [{"id": 7, "amount": 7}], "the rows of before would have come back"
    # Files of other programs stay there, and the rows are where the error says.
    plain(shop, "third")

    def take_the_name(step: str) -> None:
        if step == "publish_view":
            if shop.main.catalog.has_views():
                shop.main.query(f"CREATE VIEW {shop.main.name('third').sql} AS SELECT 1 AS one")
            else:
                plain(shop, "third")

    worker.statements.before = take_the_name
    with pytest.raises(ConcurrentRun, match="third__base_1"):
        adopted(shop, "third", at=worker)
    taken = [(1,)] if shop.main.catalog.has_views() else [(0, 0), (1, 1), (2, 2), (4, 4)]
    assert sorted(shop.main.query(f"SELECT * FROM {shop.main.name('third').sql}")) == taken
    assert len(shop.main.query(f"SELECT * FROM {shop.main.name('third__base_1').sql}")) == 4


def _adopted_as(shop: Any, name: str) -> None:
    plain(shop, name)
    adopted(shop, name)


def test_a_view_that_is_made_again_stays_out_of_the_folder_of_the_tables_files(
    shop: Any, schema: str, warehouse: Path
) -> None:
    plain(shop)
    adopted(shop)
    orders = shop.table(buckets=None)
    drop = f"DROP VIEW {orders.name.sql}"
    shop.main.query(drop)
    folder = warehouse / schema / "orders__view" / "metadata"
    restore_table(shop.main.context, orders.name)
    assert len(orders.rows()) == 4
    assert list(folder.iterdir())
    shop.main.query(drop)
    orders.build([{"id": 7, "amount": 7}])
    assert orders.rows() == [{"id": 7, "amount": 7}]
    names = [path.name for path in (warehouse / schema / "orders" / "metadata").glob("*.json")]
    assert len(names) == len({name.partition("-")[0] for name in names}), "of one relation only"
    assert list(folder.iterdir())


STORED = {
    "boolean": ("true", "false"),
    "tinyint": ("1", "-128"),
    "smallint": ("1", "-32768"),
    "int": ("1", "2147483647"),
    "bigint": ("1", "-9223372036854775808"),
    "float": ("0.5", "'-0.1'"),
    "double": ("0.1", "'NaN'"),
    "decimal(4,2)": ("1.5", "-99.99"),
    "decimal(38,10)": ("1.5", "9999999999999999999999999999.9999999999"),
    "date": ("DATE'2020-02-29'", "DATE'0001-01-01'"),
    "timestamp": ("TIMESTAMP'2020-01-01 00:00:00.000001Z'", "TIMESTAMP'1969-12-31 23:59:59Z'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2020-03-29 02:30:00'", "TIMESTAMP_NTZ'1900-01-01 00:00:00.000001'"),
    "string": ("'a'", "'ß '"),
    "char(5)": ("'a'", "'b'"),
    "varchar(5)": ("'a'", "'b '"),
    "string collate utf8_lcase": ("'a'", "'B'"),
    "binary": ("X'00FF'", "X''"),
    "struct<a:int,s:struct<b:array<int>>>": (
        "named_struct('a', 1, 's', named_struct('b', array(1, NULL)))",
        "named_struct('a', NULL, 's', named_struct('b', array()))",
    ),
    "array<struct<a:int,b:string>>": ("array(named_struct('a', 1, 'b', 'x'))", "array()"),
    "map<string,map<date,array<double>>>": ("map('a', map(DATE'2020-01-01', array(1.5D)))", "map()"),
}
"""The types that Spark writes to a table of any format version, each with two values."""
STORED_IN_V3 = {"variant": ("parse_json('{\"a\": [1, 2]}')", "parse_json('2')"), "void": ("NULL", "NULL")}
NOT_STORED = ("interval year to month", "interval day to second", "interval", "time", "geometry(4326)")
NESTED = ("struct", "array", "map", "variant", "void")


def typed(value: str, type_: str) -> str:
    """A value as it is stored: Iceberg has no lengths and no collations."""
    if type_.startswith(("char", "varchar", "string")):
        return f"CAST({value} AS STRING)"
    return f"CAST({value} AS {type_})"


@pytest.mark.parametrize("version", [2, 3])
def test_a_table_with_a_column_of_each_type_is_adopted(shop: Any, version: int) -> None:
    """Each type as a value, and each one that can be a key as a part of the key."""
    session, name = shop.main, shop.main.name("orders")
    types = STORED | (STORED_IN_V3 if version == 3 else {})
    keys = {f"k{at}": type_ for at, type_ in enumerate(types) if not type_.startswith(NESTED)}
    values = {f"v{at}": type_ for at, type_ in enumerate(types)}
    columns = keys | values

    def row(key: int, value: int | None) -> str:
        """A row with the first or second value of each type in the key and in the other columns."""
        sides = [(keys, key), (values, value)]
        return "SELECT " + ", ".join(
            f"{typed('NULL' if which is None else types[type_][which], type_)} AS {column}"
            for side, which in sides
            for column, type_ in side.items()
        )

    def found(sql: str) -> list[tuple[str, ...]]:
        texts = (
            f"{'to_json' if one == 'variant' else 'string'}({column})" for column, one in columns.items()
        )
        return sorted(session.query(f"SELECT {', '.join(texts)} FROM (\n{sql}\n)"), key=repr)

    session.query(
        f"CREATE TABLE {name.sql} ({', '.join(f'{column} {type_}' for column, type_ in columns.items())}) "
        f"USING iceberg TBLPROPERTIES ('format-version'='{version}')"
    )
    session.query(f"INSERT INTO {name.sql} {row(0, 0)}")
    adopted(shop, key=tuple(keys))
    orders = shop.table(types=columns, unique_key=list(keys), buckets=None)
    assert found(f"SELECT * FROM {name.sql}") == found(row(0, 0))
    for values_of in ((1, None), (None, 1)):
        rows = " UNION ALL ".join(row(key, value) for key, value in enumerate(values_of))
        orders.upsert_sql(rows)
        expected = found(rows)
        assert found(f"SELECT * FROM {name.sql}") == expected
    orders.compact()
    assert found(f"SELECT * FROM {orders.table.base.sql}") == expected
    orders.upsert_sql(f"SELECT *, 'D' AS _action FROM ({row(1, 1)})")
    assert found(f"SELECT * FROM {name.sql}") == found(row(0, None))


def test_the_types_that_are_not_adopted_are_not_stored_or_no_keys(shop: Any, schema: str) -> None:
    for type_ in NOT_STORED:
        with pytest.raises(StatementError):
            shop.main.query(f"CREATE TABLE {shop.main.name('none').sql} (v {type_}) USING iceberg")
    values = {
        kind: next(one for one in {**STORED, **STORED_IN_V3} if one.startswith(kind)) for kind in NESTED
    }
    name = shop.main.name("nested")
    columns = ", ".join(f"k_{kind} {type_}" for kind, type_ in values.items())
    shop.main.query(
        f"CREATE TABLE {name.sql} (id INT, {columns}) USING iceberg TBLPROPERTIES ('format-version'='3')"
    )
    for kind in NESTED:
        for key in ([f"k_{kind}"], ["id", f"k_{kind}"]):
            with pytest.raises(ConfigError, match=f"cannot have the key {', '.join(key)}"):
                plan_adoption(shop.main.context, name, key)
    assert {entry.name for entry in shop.main.catalog.list_names(schema)} == {"nested"}


@pytest.mark.parametrize("type_", first(2, [one for one in STORED if not one.startswith(NESTED)]))
def test_each_simple_type_is_a_key_by_itself(shop: Any, type_: str) -> None:
    name, (one, other) = shop.main.name("orders"), STORED[type_]
    shop.main.query(f"CREATE TABLE {name.sql} (k {type_}, v INT) USING iceberg")
    shop.main.query(f"INSERT INTO {name.sql} SELECT {typed(one, type_)}, 1")
    adopted(shop, key=("k",))
    orders = shop.table(types={"k": type_, "v": "int"}, unique_key="k", buckets=None)
    orders.upsert_sql(f"SELECT {typed(one, type_)} AS k, 2 AS v UNION ALL SELECT {typed(other, type_)}, 3")
    for _ in range(2):
        assert sorted(row[0] for row in shop.main.query(f"SELECT v FROM {name.sql}")) == [2, 3]
        orders.compact()
