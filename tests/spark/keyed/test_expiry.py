"""An expiry that is cut off at any of its statements: nothing that is needed is gone, and the same command
goes on where it was."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.version import PROPERTY_SOURCE
from dbt_arctic.maintenance.claims import Claims, find_claims
from dbt_arctic.maintenance.expire import expire_versions, plan_expiry
from dbt_arctic.maintenance.expire_plan import oldest_of_kept, plan_keyed
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import make_savepoint
from dbt_arctic.maintenance.versions import rows_at
from tests.spark.keyed.injected_failures import ROWS, amounts


def claims_of(session: Any) -> Claims:
    # A broken table of another test in this warehouse may be a consumer, and nothing would expire.
    found = find_claims(session.catalog, "lake")
    return Claims(found.by_id, by_savepoint=found.by_savepoint)


def snapshots(*tables: Any) -> list[int]:
    return [count for table in tables for count in table.commits()]


@pytest.mark.modelled
def test_of_a_consumer_and_of_what_it_reads(shop: Any, troubled: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    model = amounts(orders)
    for at, attempt in troubled("delay", "lose_the_answer"):
        orders.apply([{"id": at, "amount": 100 + at}], [{"id": at - 1}])
        model[at] = 100 + at
        model.pop(at - 1, None)
        orders.compact()
        copy.run()
        # So that its newest commit does not contain the consumed versions: they must be carried forward.
        copy.orders.compact()
        # What copy has read of this is the version to go on from, which the next upsert leaves behind.
        orders.upsert([{"id": 50, "amount": at}])
        model[50] = at
        shown, before_ms = orders.version, shop.main.context.now_ms()

        def run(session: Any, before_ms: int = before_ms) -> None:
            for table in (copy.orders, orders):
                expire_versions(session.context, table.name, claims_of(session), before_ms)

        attempt(run)
        assert amounts(orders) == model
        assert copy.expected["lake." + orders.name.schema + ".orders"] is not None
        run(shop.main)
        attempt.land()
        # A consumer that has read less continues from there, and the visible version stays readable.
        assert copy.run() == "upserted"
    assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
    sql = rows_at(shop.main.catalog, orders.name, shown.token, "test")
    assert {row["id"] for row in shop.main.read(sql, ["id"])} == model.keys()
    # It is not that nothing ever goes: without these there would be some for each turn.
    assert max(snapshots(orders, copy.orders)) < at > 5
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


@pytest.mark.modelled
def test_a_full_refresh_lets_go_what_came_before_unless_it_has_replayed_something(shop: Any) -> None:
    def untouched() -> list[str]:
        """Why nothing of it goes."""
        plan = plan_keyed(orders.session.context, orders.table, Claims({}), shop.main.context.now_ms())
        return [hold.why for hold in plan.holds if "replays commits" in hold.why]

    orders = shop.table()
    orders.build(ROWS)
    orders.build(ROWS)
    assert untouched() == [], "with nothing beside it, nothing has to be remembered"
    building = shop.session()
    building.statements.before = lambda step: (
        orders.upsert([{"id": 50, "amount": 50}]) if step == "publish_view" else None
    )
    orders.on(building).build(ROWS)
    assert untouched()
    orders.upsert([{"id": 51, "amount": 51}])  # which says that the switch is settled
    assert untouched() == []
    assert {50, 51} <= amounts(orders).keys()


@pytest.mark.modelled
def test_a_pull_beside_a_full_refresh_holds_nothing(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    building = shop.session()

    def beside(step: str) -> None:
        if step == "publish_view":
            orders.upsert([{"id": 50, "amount": 50}])
            assert copy.run() == "upserted"

    building.statements.before = beside
    copy.on(building).run(rebuild=True)
    copy.run()
    plan = plan_keyed(building.context, copy.orders.table, Claims({}), shop.main.context.now_ms())
    assert [hold.why for hold in plan.holds] == []


def test_what_a_consumer_has_read_of_a_plain_table_that_was_replaced_or_rolled_back_stays(shop: Any) -> None:
    session, name = shop.main, shop.main.name("events")

    def write(statement: str) -> None:
        session.query(statement.format(events=name.sql))

    def expire() -> tuple[list[str], int]:
        done = expire_versions(session.context, name, claims_of(session), session.context.now_ms())
        assert done is not None
        return [hold.holder for hold in done.plan.holds], done.snapshots

    write("CREATE TABLE {events} (id BIGINT, amount INT) USING iceberg")
    write("INSERT INTO {events} VALUES (1, 1), (2, 2)")
    write("INSERT INTO {events} VALUES (3, 3)")
    copy = shop.consumer("copy", name)
    copy.run()
    # The snapshot that it has read is no ancestor of the current one.
    write("CREATE OR REPLACE TABLE {events} USING iceberg AS SELECT 2L AS id, 20 AS amount")
    write("INSERT INTO {events} VALUES (4, 4)")
    assert expire() == ([copy.orders.name.dotted], 1)
    assert copy.run() == "upserted"
    assert [(row["id"], row["amount"]) for row in copy.rows()] == [(2, 20), (4, 4)]
    write("INSERT INTO {events} VALUES (5, 5)")
    copy.run()
    state = session.catalog.load_table(name.schema, name.identifier)
    back = state.history()[1].snapshot_id
    session.query(
        f"CALL lake.system.rollback_to_snapshot(table => {name.procedure_argument()}, snapshot_id => {back})"
    )
    write("INSERT INTO {events} VALUES (6, 6)")
    assert expire() == ([copy.orders.name.dotted], 3)
    assert copy.run() == "upserted"
    assert [row["id"] for row in copy.rows()] == [2, 4, 6]
    assert expire() == ([], 1)

    # A savepoint keeps what its model needs to continue from there, in the tables that belong to the model.
    make_savepoint(session.context, copy.orders.name, "opening")
    write("INSERT INTO {events} VALUES (7, 7)")
    copy.run()
    plan = plan_expiry(session.context, name, claims_of(session), session.context.now_ms())
    assert plan is not None
    assert (plan.holds, plan.expired) == ((), 1), "the table of somebody else"
    write(f"ALTER TABLE {{events}} SET TBLPROPERTIES ('{PROPERTY_SOURCE}'='landing.events')")
    assert expire() == ([f"savepoint opening of {copy.orders.name.dotted}"], 0)
    roll_back(session.context, copy.orders.name, "opening")
    assert copy.run() == "upserted"
    assert [row["id"] for row in copy.rows()] == [2, 4, 6, 7]


@pytest.mark.modelled
def test_a_host_whose_clock_is_behind() -> None:
    commits = [
        Snapshot(number, number - 1, number, at, "append", {}) for number, at in enumerate((10, 40, 30, 35))
    ]
    newest_first = commits[::-1]
    assert [oldest_of_kept(newest_first, one) for one in commits] == [10, 30, 30, 35]
