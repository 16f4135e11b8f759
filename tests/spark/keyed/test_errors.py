"""An error says what, where and how to go on, and leaves the table as it was."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.errors import (
    ArcticError,
    ConfigError,
    DamagedKeyedTable,
    DuplicateKey,
    KeyColumnMissing,
    NewerProtocol,
    NullKey,
    SchemaChanged,
    UnknownRelation,
)

ROWS = [{"id": 1, "amount": 1}, {"id": 2, "amount": 2}]


@pytest.fixture
def orders(shop: Any) -> Any:
    table = shop.table(on_schema_change="fail")
    table.build(ROWS)
    table.upsert([{"id": 2, "amount": 20}])
    return table


BAD_BATCHES: dict[str, tuple[str, type[ArcticError], list[str]]] = {
    "NULL key": (
        "SELECT CAST(NULL AS BIGINT) AS id, 7 AS amount UNION ALL SELECT 5, 5",
        NullKey,
        ["AR-303", "orders", "coalesce"],
    ),
    "duplicate key": (
        "SELECT CAST(41 AS BIGINT) AS id, 1 AS amount UNION ALL SELECT 41, 2 UNION ALL SELECT 5, 5",
        DuplicateKey,
        ["AR-304", "41", "orders", "deduplicate_by"],
    ),
    "identical rows of one key": (
        "SELECT CAST(41 AS BIGINT) AS id, 1 AS amount FROM range(2)",
        DuplicateKey,
        ["41", "deduplicate_by"],
    ),
    "unknown _action": (
        "SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, 'X' AS _action",
        ConfigError,
        ["_action", "X", "orders", "'U' and 'D'"],
    ),
    "NULL _action": (
        "SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, CAST(NULL AS STRING) AS _action",
        ConfigError,
        ["_action", "NULL", "orders"],
    ),
    "a column twice": (
        "SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, 2 AS Amount",
        ConfigError,
        ["2 columns named amount", "orders", "id, amount, Amount"],
    ),
    "no key column": ("SELECT 1 AS amount", KeyColumnMissing, ["id", "orders", "unique_key"]),
    "a column gone": ("SELECT CAST(1 AS BIGINT) AS id", SchemaChanged, ["amount", "--full-refresh"]),
    "a new column": ("SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, 2 AS more", SchemaChanged, ["more int"]),
    "_txn": ("SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, 2 AS _txn", ArcticError, ["_txn"]),
    "_offset": ("SELECT CAST(1 AS BIGINT) AS id, 1 AS amount, 2 AS _offset", ArcticError, ["_offset"]),
}


def test_a_bad_batch_writes_nothing(orders: Any) -> None:
    before = (orders.rows(), orders.commits())
    for label, (sql, kind, words) in BAD_BATCHES.items():
        with pytest.raises(kind) as raised:
            orders.upsert_sql(sql)
        assert [word for word in words if word not in str(raised.value)] == [], label
        assert orders.commits() == before[1], label
    assert orders.rows() == before[0]


@pytest.mark.modelled
def test_a_bad_first_build_or_full_refresh_publishes_nothing(shop: Any, orders: Any) -> None:
    before = (orders.rows(), orders.table)
    new = shop.table("new")
    for label, (sql, kind, _) in BAD_BATCHES.items():
        if label in ("a column gone", "a new column"):
            continue
        for table in (orders, new):
            with pytest.raises(kind):
                table.build_sql(sql)
        assert shop.main.catalog.load_view(new.name.schema, "new") is None, label
    assert (orders.rows(), orders.table) == before


@pytest.mark.modelled
def test_reserved_names_are_refused_in_any_case(shop: Any) -> None:
    for name in ("_TXN", "_Offset", "_ROW_ID", "_last_updated_sequence_number"):
        with pytest.raises(ConfigError, match="with AS"):
            shop.table("new").build_sql(f"SELECT CAST(1 AS BIGINT) AS id, 1 AS {name}")


def test_columns_are_matched_whatever_their_case(orders: Any) -> None:
    orders.configured(unique_key="ID").upsert_sql(
        "SELECT CAST(7 AS BIGINT) AS Id, 70 AS AMOUNT, 'U' AS _ACTION"
    )
    assert orders.rows() == [{"id": 1, "amount": 1}, {"id": 2, "amount": 20}, {"id": 7, "amount": 70}]
    orders.upsert_sql("SELECT CAST(7 AS BIGINT) AS iD, 70 AS Amount, 'D' AS _Action")
    assert [row["id"] for row in orders.rows()] == [1, 2]


def test_deduplicate_by_decides_and_ties_are_an_error(orders: Any) -> None:
    rows = (
        "SELECT CAST(column1 AS BIGINT) AS id, column2 AS amount FROM VALUES (5, 1), (5, 3), (5, 2), (6, 0)"
    )
    latest = orders.configured(deduplicate_by=["amount"])
    latest.upsert_sql(rows.replace("column", "col"))
    assert [row for row in orders.rows() if row["id"] in (5, 6)] == [
        {"id": 5, "amount": 3},
        {"id": 6, "amount": 0},
    ]
    with pytest.raises(DuplicateKey):
        latest.upsert_sql("SELECT 5L AS id, 3 AS amount UNION ALL SELECT 5L, 3")


@pytest.mark.modelled
def test_delete_when_makes_deletes_in_a_build_as_in_an_upsert(orders: Any) -> None:
    gone = orders.configured(delete_when="amount < 0")
    gone.upsert([{"id": 1, "amount": -1}, {"id": 3, "amount": 3}, {"id": 9, "amount": -5}])
    assert [row["id"] for row in orders.rows()] == [2, 3]
    gone.build([{"id": 1, "amount": -1}, {"id": 3, "amount": 3}])
    assert [row["id"] for row in orders.rows()] == [3]


@pytest.mark.modelled
def test_a_changed_key_or_layout_asks_for_a_full_refresh(orders: Any) -> None:
    before = (orders.rows(), orders.commits())
    for changed in (
        {"unique_key": ["id", "amount"]},
        {"unique_key": "amount"},
        {"sort_by": ["amount"]},
        {"partition_by": ["amount"]},
    ):
        with pytest.raises(ConfigError, match="--full-refresh --select orders"):
            orders.configured(**changed).upsert([{"id": 5, "amount": 5}])
    assert (orders.rows(), orders.commits()) == before
    new = orders.configured(unique_key=["id", "amount"], partition_by=["amount"], buckets=4)
    new.build(before[0])
    new.upsert([{"id": 5, "amount": 5}])
    assert len(new.rows()) == 3


def drop(side: str) -> Callable[[Any], None]:
    return lambda orders: orders.session.query(f"DROP TABLE {getattr(orders.table, side).sql} PURGE")


def recreate(side: str) -> Callable[[Any], None]:
    def act(orders: Any) -> None:
        name = getattr(orders.table, side).sql
        ((ddl,),) = orders.session.query(f"SHOW CREATE TABLE {name}")
        drop(side)(orders)
        columns = ddl[: ddl.index("LOCATION")] if "LOCATION" in ddl else ddl
        orders.session.query(columns)
        orders.session.query(f"INSERT INTO {name} SELECT * FROM {name} WHERE false")

    return act


def test_a_side_table_that_was_dropped_or_made_again_by_hand_is_noticed(orders: Any) -> None:
    """One after the other: each full refresh makes a table that is whole."""
    for damage, side in itertools.product((drop, recreate), ("base", "change")):
        damage(side)(orders)
        attempts = [lambda: orders.version, lambda: orders.compact()]
        if side == "change":
            attempts.append(lambda: orders.upsert([{"id": 1, "amount": 1}]))
        for attempt in attempts:
            with pytest.raises(DamagedKeyedTable, match="--full-refresh --select orders"):
                attempt()
        orders.build(ROWS)
        assert orders.rows() == ROWS


@pytest.mark.modelled
def test_a_table_of_a_newer_protocol_is_left_alone(orders: Any) -> None:
    orders.session.query(f"ALTER VIEW {orders.name.sql} SET TBLPROPERTIES ('arctic.protocol' = '99')")
    for attempt in (
        lambda: orders.upsert([{"id": 1, "amount": 1}]),
        lambda: orders.compact(),
        lambda: orders.build(ROWS),
    ):
        with pytest.raises(NewerProtocol, match="upgrade"):
            attempt()
    orders.session.query(f"ALTER VIEW {orders.name.sql} SET TBLPROPERTIES ('arctic.protocol' = '1')")
    assert orders.rows() == [{"id": 1, "amount": 1}, {"id": 2, "amount": 20}]


@pytest.mark.modelled
def test_an_upsert_without_a_table_says_what_to_run(shop: Any) -> None:
    with pytest.raises(UnknownRelation, match="dbt run --select orders"):
        shop.table().upsert(ROWS)


def test_a_model_that_did_not_change_is_not_taken_for_changed(shop: Any) -> None:
    types = {
        "id": "int",
        "a": "tinyint",
        "b": "smallint",
        "c": "float",
        "d": "timestamp_ntz",
        "e": "struct<a: smallint, b: string>",
    }
    table = shop.table("same", types, on_schema_change="fail")
    row = dict.fromkeys(types)
    table.build([{**row, "id": 1}])
    table.upsert([{**row, "id": 2, "a": 1}])
    assert [line["a"] for line in table.rows()] == [None, 1]
