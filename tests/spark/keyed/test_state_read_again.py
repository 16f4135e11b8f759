"""State is read again right before something is dropped, forgotten, published or treated as a leftover,
because other runs may change it between the first read and the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError, ConcurrentRun
from dbt_arctic.keyed.branch import create_branch, drop_branch
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.clean import remove_leftovers
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import Retention, find_leftovers
from dbt_arctic.maintenance.restore import restore_table, undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.undo_adoption import undo_adoption
from dbt_arctic.store import computed_write
from dbt_arctic.store.branches import publish
from dbt_arctic.store.state import head, load_change

ROWS = [{"id": number, "amount": number} for number in range(4)]
NEW = [{"id": 1, "amount": 100}, {"id": 20, "amount": 20}]
LATE = [{"id": 7, "amount": "seven"}]


def amounts(orders: Any) -> dict[int, Any]:
    rows = orders.rows()
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


def at(session: Any, step: str, action: Callable[[], Any]) -> Any:
    """Let others act once, right before a statement of a session."""

    def before(now: str) -> None:
        if now == step:
            session.statements.before = None
            action()

    session.statements.before = before
    return session


@pytest.fixture
def orders(shop: Any) -> Any:
    made = shop.table()
    made.build(ROWS)
    return made


@pytest.mark.modelled
def test_an_erasure_drops_no_generation_that_is_shown_since_it_was_planned(shop: Any, orders: Any) -> None:
    session, context, plans = shop.session(), shop.main.context, []

    def plan() -> None:
        plans.append(plan_by_values(context, orders.name, [("id", "1")]))
        with pytest.raises(ConcurrentRun, match="being rebuilt"):
            erase_keys(context, plans[0], force=True)

    at(session, "publish_view", plan)
    orders.on(session).build(NEW)
    assert [thing.kind for thing in plans[0].in_the_way] == ["generation"] * 2
    with pytest.raises(ConcurrentRun, match="a new generation"):
        erase_keys(context, plans[0], force=True)
    assert amounts(orders) == {1: 100, 20: 20}
    erase_keys(context, plan_by_values(context, orders.name, [("id", "1")]), force=True)
    assert amounts(orders) == {20: 20}


def test_a_branch_that_is_dropped_under_a_write_is_not_published(shop: Any, orders: Any) -> None:
    """The write's commit makes it again, from what main has become by then: it would be fast-forwarded to."""
    context, table = shop.main.context, orders.table
    pinned = load_change(context.catalog, table)
    shop.main.query(create_branch(table.change, "arctic_1", head(pinned)))
    orders.upsert(NEW)
    slowly = "java_method('java.lang.Thread', 'sleep', 3000L) IS NULL"
    rows = f"SELECT * FROM {table.change.sql} WHERE `_txn` = 0 AND {slowly} LIMIT 1"
    worker = shop.session()
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(worker.query, f"INSERT INTO {table.change.sql}.`branch_arctic_1` {rows}")
        tracker = worker.connection.session.sparkContext.statusTracker()
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        shop.main.query(drop_branch(table.change, "arctic_1"))
        written.result()
    state = load_change(context.catalog, table)
    made = next(one for one in state.snapshots if one.snapshot_id == state.branches["arctic_1"])
    assert made.parent_id == head(state), "Iceberg makes it again, from main"
    assert not publish(context, table.change, "arctic_1", table, head(pinned))
    assert head(load_change(context.catalog, table)) == head(state)
    assert amounts(orders) == {0: 0, 1: 100, 2: 2, 3: 3, 20: 20}


@pytest.mark.modelled
def test_a_build_looks_again_after_it_has_replayed(
    shop: Any, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A computed write that takes its lease for over, while it replays what landed before."""
    first = orders.version.token
    orders.upsert([{"id": 1, "amount": 10}])
    monkeypatch.setattr(computed_write, "refuse_during_build", lambda *of: None)
    monkeypatch.setattr(computed_write, "_require_no_switch", lambda *of: None)
    session = shop.session()

    def land() -> None:
        orders.upsert([{"id": 2, "amount": 20}])
        at(session, "replay", lambda: roll_back(shop.main.context, orders.name, first))

    at(session, "keep_statistics", land)
    with pytest.raises(ConcurrentRun, match="cannot carry over"):
        orders.on(session).build(NEW)
    assert amounts(orders) == {0: 0, 1: 1, 2: 2, 3: 3}


@pytest.mark.modelled
def test_a_clean_up_forgets_no_generation_that_was_retired_since(shop: Any, orders: Any) -> None:
    copy = shop.consumer("copy", orders)
    orders.build(ROWS)
    copy.run()
    orders.upsert([{"id": 9, "amount": 9}])
    context = at(shop.session(), "forget_previous", lambda: orders.build([*ROWS, *NEW[1:]])).context
    week = Retention()
    late_ms = context.now_ms() + 8 * 24 * 3600 * 1000
    found = find_leftovers(take_inventory(context.catalog, "lake", orders.name.schema), late_ms, week)
    assert {one.kind for one in found.removals} == {"previous"}
    remove_leftovers(replace(context, now_ms=lambda: late_ms), "lake", found.removals, week)
    assert orders.table.previous is not None
    assert copy.run() == "upserted"
    assert {row["id"]: row["amount"] for row in copy.rows()} == amounts(orders)
    undo_full_refresh(shop.main.context, orders.name)
    assert amounts(orders) == {0: 0, 1: 1, 2: 2, 3: 3, 9: 9}


@pytest.fixture
def interrupted_build(shop: Any) -> Any:
    """A table with rows that landed during a full refresh and do not fit into it. They wait for the user."""
    orders = shop.table(types={"id": "bigint", "amount": "string"})
    orders.build([{"id": 1, "amount": "1"}])
    new = orders.with_types({"id": "bigint", "amount": "int"})
    late = at(shop.session(), "upsert", lambda: new.build(NEW))
    with pytest.raises(ArcticError, match="amount is string"):
        orders.on(late).upsert(LATE)
    return new


@pytest.mark.modelled
def test_rows_that_wait_for_a_person_outlive_a_restored_view(shop: Any, interrupted_build: Any) -> None:
    restore_table(shop.main.context, interrupted_build.name)
    with pytest.raises(ConcurrentRun, match="cannot be carried over"):
        interrupted_build.upsert([{"id": 8, "amount": 8}])
    undo_full_refresh(shop.main.context, interrupted_build.name)
    assert amounts(interrupted_build.with_types({"id": "bigint", "amount": "string"})) == {1: "1", 7: "seven"}


@pytest.mark.modelled
def test_rows_that_wait_for_a_person_are_not_released(shop: Any, interrupted_build: Any) -> None:
    with pytest.raises(ConcurrentRun, match="cannot be carried over"):
        undo_adoption(shop.main.context, interrupted_build.name)
    undo_full_refresh(shop.main.context, interrupted_build.name)
    assert amounts(interrupted_build.with_types({"id": "bigint", "amount": "string"})) == {1: "1", 7: "seven"}


def test_who_wrote_to_a_column_that_was_made_anew_says_so(shop: Any) -> None:
    types = {"id": "bigint", "amount": "int"}
    orders = shop.table("orders", types, on_schema_change="append_new_columns")
    orders.build(ROWS)
    wide = orders.with_types({**types, "note": "string"})
    change = orders.table.change.sql
    session = shop.session()

    def made_anew() -> None:
        shop.main.query(f"ALTER TABLE {change} DROP COLUMN note")
        shop.main.query(f"ALTER TABLE {change} ADD COLUMN note STRING")

    original = session.context.run

    def run(step: str, sql: str, table: Any = None) -> int | None:
        rows = original(step, sql, table)
        if step == "upsert":
            made_anew()
        return rows

    session.context = replace(session.context, run=run)
    with pytest.raises(ConcurrentRun, match=r"dropped and added columns of .* again"):
        wide.on(session).upsert([{"id": 1, "amount": 5, "note": "n"}])
    wide.upsert([{"id": 1, "amount": 5, "note": "n"}])
    assert {"id": 1, "amount": 5, "note": "n"} in wide.rows()


@pytest.mark.modelled
def test_what_is_read_under_another_name_does_not_expire(shop: Any, orders: Any) -> None:
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert(NEW)
    shop.main.query(f"ALTER VIEW {orders.name.sql} RENAME TO {orders.name.schema}.sold")
    sold = shop.main.name("sold")
    context = shop.main.context
    claims = find_claims(context.catalog, "lake")
    claims.unknown.clear()  # what other tests have left broken in this warehouse
    expire_versions(context, sold, claims, context.now_ms() + 1000)
    renamed = type(copy)(copy.orders, (sold,))
    assert renamed.run() == "upserted"
    assert {row["id"]: row["amount"] for row in renamed.rows()} == {0: 0, 1: 100, 2: 2, 3: 3, 20: 20}
    assert list(renamed.expected) == [sold.dotted], "what it had read by the old name holds nothing back"
