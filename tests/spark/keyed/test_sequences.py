"""``sequence_by`` on Spark: rows come late, in any order, and the newest of each key is read and stored."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError, NoSequence, SchemaChanged
from dbt_arctic.keyed.compact import NothingToTrim
from dbt_arctic.keyed.table import PROPERTY_TOMBSTONES
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.store.state import load_base, load_change, load_keyed

Row = dict[str, Any]
TYPES = {"id": "bigint", "seq": "int", "amount": "int"}
STEPS = 11


@pytest.fixture
def orders(shop: Any) -> Any:
    return shop.table("orders", TYPES, sequence_by="seq")


def row(id_: int, seq: int | None, amount: int) -> Row:
    return {"id": id_, "seq": seq, "amount": amount}


def deletion(id_: int, seq: int) -> Row:
    return {"id": id_, "seq": seq}


@pytest.mark.modelled
def test_the_newest_of_each_key_is_read_whatever_comes_late(shop: Any, orders: Any) -> None:
    """Compared with a dict after each step, a consumer that pulls included."""
    chance = random.Random(7)
    consumer = shop.consumer("copy", orders)
    newest: dict[int, tuple[int, bool, int | None]] = {}

    def event() -> tuple[int, int, int | None]:
        return chance.randrange(8), chance.randrange(12), chance.choice([None, *range(5)])

    def take(id_: int, seq: int, amount: int | None) -> None:
        known = newest.get(id_)
        if known is None or (seq, amount is None) >= known[:2]:
            newest[id_] = (seq, amount is None, amount)

    def expected() -> list[Row]:
        return [
            row(key, seq, amount) for key, (seq, _, amount) in sorted(newest.items()) if amount is not None
        ]

    def write(first: bool) -> None:
        batch = {id_: (seq, amount) for id_, seq, amount in (event() for _ in range(chance.randrange(1, 6)))}
        upserts = [row(id_, seq, amount) for id_, (seq, amount) in batch.items() if amount is not None]
        deletes = [deletion(id_, seq) for id_, (seq, amount) in batch.items() if amount is None]
        if first:
            orders.build_sql(
                orders.model([*upserts, *({**one, "_action": "D"} for one in deletes)], actions=True)
            )
        else:
            orders.apply(upserts, deletes)
        for id_, (seq, amount) in batch.items():
            take(id_, seq, amount)

    write(first=True)
    consumer.run()
    for step in range(STEPS):
        if chance.random() < 0.35:
            orders.compact(chance.choice([0, 3600]))
        else:
            write(first=False)
        assert orders.rows() == expected(), step
        if step % 4 == 3:
            consumer.run()
            assert [{name: one[name] for name in TYPES} for one in consumer.rows()] == expected(), step
    orders.compact()
    assert orders.base_rows() == expected()


@pytest.mark.modelled
def test_a_delete_is_remembered_until_no_older_row_can_come(shop: Any, orders: Any) -> None:
    orders = orders.configured(tombstone_retention="1 day")
    orders.build([row(1, 1, 10), row(2, 1, 20)])
    orders.delete([deletion(1, 5)])
    assert orders.compact().trimmed == 0  # nothing but the delete, and that stays
    noted = NothingToTrim.of(load_change(shop.main.catalog, orders.table).properties)
    merged_ms = load_base(shop.main.catalog, orders.table).history()[0].timestamp_ms
    assert noted is not None
    assert merged_ms == noted.merged_ms <= noted.looked_ms <= shop.main.context.now_ms()
    assert shop.main.log_of(orders.compact) == [], "and that is noted once"
    assert orders.compact().outcome == "nothing to do"
    orders.upsert([row(1, 4, 40)])
    assert orders.rows() == [row(2, 1, 20)]
    assert orders.compact().trimmed == 1
    assert orders.base_rows() == [row(2, 1, 20)]
    later = shop.session()
    context = later.context
    later.context = replace(context, now_ms=lambda: context.now_ms() + 2 * 86_400_000)
    result = orders.on(later).compact()
    assert (result.trimmed, result.pending) == (1, 0)
    orders.upsert([row(1, 4, 40)])  # later than rows may come: nothing speaks against it any more
    assert orders.rows() == [row(1, 4, 40), row(2, 1, 20)]


@pytest.mark.modelled
def test_deletes_of_the_first_build_are_remembered_too(orders: Any) -> None:
    orders.build_sql(orders.model([row(1, 1, 10), {**deletion(2, 5), "_action": "D"}], actions=True))
    orders.upsert([row(2, 4, 20)])
    assert orders.rows() == [row(1, 1, 10)]
    orders.upsert([row(2, 6, 30)])
    assert orders.rows() == [row(1, 1, 10), row(2, 6, 30)]


@pytest.mark.modelled
def test_a_row_without_a_sequence_is_refused_beside_others_of_its_key(orders: Any) -> None:
    orders.build([row(1, 5, 1)])
    with pytest.raises(NoSequence):
        orders.upsert([row(2, None, 1), row(2, 6, 2)])
    assert orders.rows() == [row(1, 5, 1)]


@pytest.mark.modelled
def test_a_late_loser_does_not_travel_downstream(shop: Any, orders: Any) -> None:
    consumer = shop.consumer("copy", orders)
    orders.build([row(1, 5, 50), row(2, 5, 60)])
    consumer.run()
    orders.compact()
    orders.upsert([row(1, 4, 40)])
    orders.delete([deletion(2, 4)])
    consumer.run()
    assert [(one["seq"], one["amount"]) for one in consumer.rows()] == [(5, 50), (5, 60)]
    orders.delete([deletion(2, 6)])
    consumer.run()
    assert [one["id"] for one in consumer.rows()] == [1]


@pytest.mark.modelled
def test_a_batch_is_ordered_by_what_is_stored(shop: Any) -> None:
    """The table has texts, of which '9' is greater than '10'. The model has numbers since."""
    orders = shop.table("orders", {**TYPES, "seq": "string"}, sequence_by="seq")
    orders.build([{"id": 1, "seq": "5", "amount": 5}, {"id": 2, "seq": "5", "amount": 5}])
    orders.with_types(TYPES).upsert([row(1, 10, 10), row(1, 9, 9), row(2, 10, 10)])
    first = [{"id": 1, "seq": "9", "amount": 9}, {"id": 2, "seq": "5", "amount": 5}]
    assert orders.rows() == first
    orders.with_types(TYPES).upsert([row(1, 10, 10)])
    assert orders.rows() == first, "the same rows in two batches have the same result"
    sql = f"UPDATE {orders.name.sql} SET seq = 10, amount = 1 WHERE id = 1"
    with pytest.raises(NoSequence):
        modify(shop.main.context, orders.name, parse_modification(sql))
    assert orders.rows() == first
    # A number that the type cannot store is refused, and not taken for a missing one.
    numbers = shop.table("numbers", TYPES, sequence_by="seq")
    numbers.build([row(1, 5, 5)])
    with pytest.raises(SchemaChanged, match="seq cannot store"):
        numbers.with_types({**TYPES, "seq": "bigint"}).upsert([row(1, 3_000_000_000, 1)])
    assert numbers.rows() == [row(1, 5, 5)]


@pytest.mark.modelled
def test_what_orders_a_table_is_part_of_it(shop: Any, orders: Any) -> None:
    orders.build([row(1, 1, 10)])
    properties = orders.session.catalog.load_view(orders.name.schema, orders.name.identifier).properties
    # A program that knows nothing of sequences must not read it.
    assert properties["arctic.protocol"] == "2"
    for other in ({"sequence_by": None}, {"sequence_by": "amount"}):
        with pytest.raises(ConfigError, match="sequence_by changed from seq") as caught:
            orders.configured(**other).upsert([row(1, 2, 20)])
        assert "set sequence_by back to seq, or rebuild the table: dbt run --full-" in str(caught.value)
    with pytest.raises(ConfigError, match="sequence_by is missing"):
        orders.configured(sequence_by="missing").build([row(1, 2, 20)])
    orders.configured(tombstone_retention="2 days").upsert([row(1, 2, 20)])
    table = load_keyed(orders.session.catalog, orders.name)
    assert (table.tombstone_retention_s, table.sequence_by) == (172_800, "seq")
    properties = orders.session.catalog.load_view(orders.name.schema, orders.name.identifier).properties
    assert properties[PROPERTY_TOMBSTONES] == "172800"
    # In the order of arrival again, with a generation of its own; the one before is still read by its order.
    plain = orders.configured(sequence_by=None)
    before = orders.version
    plain.build([row(1, 9, 90)])
    plain.upsert([row(1, 3, 30)])
    assert plain.rows() == [row(1, 3, 30)]
    retired = replace(plain.table, generation=plain.table.previous, previous=None)
    assert retired.sequence_by == "seq"
    assert plain.session.read(f"SELECT * FROM {retired.base.at(before.base_snapshot)}", list(TYPES)) == [
        row(1, 1, 10)
    ]


def test_reads_and_merges_stay_in_place(shop: Any) -> None:
    table = shop.table("orders", TYPES, sequence_by="seq", buckets=4)
    session = shop.main
    session.plans_as_for_users()
    session.query("SET spark.sql.autoBroadcastJoinThreshold = -1")
    table.build_sql("SELECT id, 1 AS seq, 1 AS amount FROM range(1000)")
    table.upsert_sql("SELECT id, CAST(id % 3 AS INT) AS seq, 2 AS amount FROM range(400)")
    spark = session.connection.session
    frame = spark.sql(f"SELECT id, amount FROM {table.name.sql}")
    assert len(frame.collect()) == 1000
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    assert "Exchange" not in plan, plan


@pytest.mark.modelled
def test_deletes_travel_to_a_table_with_the_same_order(shop: Any, orders: Any) -> None:
    consumer = shop.consumer("copy", orders)
    consumer.orders = consumer.orders.configured(sequence_by="seq")

    def copied() -> list[dict[str, Any]]:
        return [{name: one[name] for name in TYPES} for one in consumer.rows()]

    orders.build([row(1, 5, 50), row(2, 5, 60), row(3, 5, 70)])
    consumer.run()
    orders.delete([deletion(1, 6)])
    consumer.run()
    assert copied() == orders.rows() == [row(2, 5, 60), row(3, 5, 70)]
    orders.upsert([row(1, 4, 10)])  # too late: the result is the delete that has won
    consumer.run()
    assert copied() == orders.rows()
    orders.delete([deletion(3, 9)])
    orders.compact()
    orders.upsert([row(3, 8, 80), row(1, 7, 71)])
    consumer.run()
    assert copied() == orders.rows() == [row(1, 7, 71), row(2, 5, 60)]
    assert consumer.run() == "skipped"
