"""A keyed table whose names, values and comments try everything, through its whole life on real Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt_arctic.adapter.target_session import size_of
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.rewrite import REWRITTEN
from dbt_arctic.compaction.run import record, run_operation
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import make_savepoint
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.refresh.build import build_generation, drop_keyed
from dbt_arctic.refresh.comments import describe
from dbt_arctic.refresh.config import parse_config

EVIL = "`; DROP TABLE x; -- ' \" \\ ${env:HOME} {{ 1 }} /* %s ü😀"
COMMENT = f"{EVIL}\n\x00012\r\t$$ */ '\\''"
IDENTIFIER = "or`ders' -- ${env:HOME} \\ \" ü"
KEY, AMOUNT, NESTED, ADDED = f"key {EVIL}", f"amount) {EVIL}", f"s,: {EVIL}", f"added\n{EVIL}"
FIELD = "a b`> '${env:HOME}"
TYPES = {
    KEY: "string",
    AMOUNT: "int",
    NESTED: f"struct<`{FIELD.replace('`', '``')}`:map<string,int>>",
}
VALUES = [EVIL, "\n\r\t", "'", "\\", "`", "${env:HOME}", "\\u0024", "a\\'b", "''", "--", "\u0000012"]


def row(value: str, amount: int) -> dict[str, Any]:
    return {KEY: value, AMOUNT: amount, NESTED: {FIELD: {value: amount}}}


def amounts(orders: Any) -> dict[str, int]:
    rows = orders.rows()
    assert all(one[NESTED] == {FIELD: {one[KEY]: one[AMOUNT]}} for one in rows)
    return {one[KEY]: one[AMOUNT] for one in rows}


def test_nothing_but_names_and_values_comes_of_hostile_ones(shop: Any, schema: str) -> None:
    settings = {
        "unique_key": KEY,
        "tblproperties": {f"p {EVIL}": EVIL},
        "on_schema_change": "append_new_columns",
        "sort_by": [AMOUNT],
    }
    orders = shop.table(IDENTIFIER, TYPES, **settings)
    session, model = shop.main, dict(zip(VALUES, range(20), strict=False))
    session.context = replace(session.context, run_id=EVIL)
    config = parse_config(IDENTIFIER, orders.config)
    rows = orders.model([row(value, amount) for value, amount in model.items()])
    build_generation(
        session.context,
        orders.name,
        config,
        rows,
        {},
        owner=EVIL,
        comment=COMMENT,
        column_comments={KEY: COMMENT},
    )
    assert amounts(orders) == model

    orders.apply([row(EVIL, 100)], [{KEY: "'"}])
    model[EVIL] = 100
    del model["'"]
    make_savepoint(session.context, orders.name, "before")
    consumer = shop.consumer(f"pull of {IDENTIFIER}", orders.name, unique_key=[KEY, "source"])
    consumer = replace(consumer, orders=consumer.orders.with_types({**TYPES, "source": "string"}))
    assert consumer.run() == "built"
    orders.upsert([row("new", 7)])
    assert consumer.run() == "upserted"
    assert {one[KEY]: one[AMOUNT] for one in consumer.rows()} == {**model, "new": 7}
    assert consumer.run() == "skipped"

    orders.compact()
    roll_back(session.context, orders.name, "before")
    assert amounts(orders) == model
    plan = plan_by_values(session.context, orders.name, [(KEY, "a\\'b")])
    erase_keys(session.context, plan, True, lambda path: True)
    del model["a\\'b"]
    assert amounts(orders) == model

    describe(session.context, orders.name, COMMENT + "!", {KEY: COMMENT, AMOUNT: COMMENT + "!"})
    wider = orders.with_types({**TYPES, ADDED: "int"})
    wider.upsert([{**row("`", 5), ADDED: 1}])
    model["`"] = 5
    assert amounts(orders) == model
    planned = Operation("minor", orders.name, EVIL, 1.0, 1.0, target_file_bytes=2**20)
    minor = run_operation(session.context, planned)
    orders.compact()
    full = run_operation(session.context, replace(planned, kind="full", buckets=(0, 1, 5)))
    assert (minor.outcome, full.outcome) == (REWRITTEN, REWRITTEN)
    record(session.context, orders.name, [minor, full])
    operations = orders.name.sibling("arctic_operations")
    recorded = session.query(f"SELECT DISTINCT why, table_name, run FROM {operations.sql}")
    assert recorded == [(EVIL, orders.name.dotted, EVIL)]
    assert amounts(orders) == model

    table = orders.table
    assert table.owner == EVIL
    assert [column.comment for column in table.columns] == [COMMENT, COMMENT + "!", "", ""]
    view = session.catalog.load_view(schema, IDENTIFIER)
    assert view.comment == COMMENT + "!"
    base = session.catalog.load_table(schema, table.base.identifier)
    assert base.properties[f"p {EVIL}"] == EVIL
    by_sql = SparkSqlCatalog("lake", session.query).load_table(schema, table.base.identifier)
    assert [(one.name, one.type) for one in by_sql.columns] == [(one.name, one.type) for one in base.columns]
    inventory = take_inventory(session.catalog, "lake", schema)
    found = verify_schema(session.catalog, inventory, session.context.now_ms(), size_of, session.query)
    assert found == []
    drop_keyed(session.context, table)
    left = {entry.name for entry in session.catalog.list_relations(schema)}
    assert all(name.startswith("pull of ") for name in left - {"arctic_operations"})
