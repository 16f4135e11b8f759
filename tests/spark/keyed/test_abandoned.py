"""A run that is interrupted at any of its statements loses nothing: the next run produces the right rows.

There are two kinds of interruption: the process dies before a statement (so also right after the one before),
or a statement succeeds and its result is lost, after which the process cleans up. Each test repeats one
operation on one table, interrupted one statement later each time, until it completes. The long form tests
both kinds at each statement, the short form alternates. Operations that are left out of the short form are
interrupted in the stories of ``tests/model``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dbt_arctic.adapter.impl import visible
from dbt_arctic.compaction.major import trim_merged
from dbt_arctic.compaction.rewrite import compact_full, compact_minor
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.refresh.plain import begin_plain_write, execute_plain_write
from tests.extent import in_turn

Row = dict[str, Any]
ROWS = [{"id": number, "amount": number} for number in range(6)]
BOTH = ("die", "lose_the_answer")
EITHER_WAY = in_turn(*BOTH)


@pytest.fixture
def until_it_ends(shop: Any, cut_off: Any) -> Callable[..., int]:
    """``run(n, session)`` in a session that is cut off at its n-th statement, for each n that there is."""

    def repeat(run: Callable[[int, Any], Any], *ways: str) -> int:
        for at in range(20):
            session = shop.session()
            getattr(session.statements, ways[at % len(ways)] if ways else "die")(at)
            try:
                run(at, session)
            except cut_off:
                continue
            finally:
                session.connection.close()
            if len(session.statements.ran) <= at:
                return at
        raise AssertionError("more than 20 statements")

    return repeat


@pytest.fixture
def listed(shop: Any, schema: str) -> Callable[[], set[str]]:
    """What a listing of the schema shows."""
    return lambda: {entry.name for entry in visible(shop.main.catalog.list_relations(schema))}


def amounts(orders: Any) -> dict[int, int]:
    rows = orders.rows()
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


@pytest.mark.modelled
def test_a_first_build(shop: Any, schema: str, until_it_ends: Any, listed: Any) -> None:
    done: set[str] = set()

    def run(at: int, session: Any) -> None:
        orders = shop.table(f"orders{at}")
        done.add(orders.name.identifier)
        try:
            orders.on(session).build(ROWS)
        finally:
            if shop.main.catalog.load_view(schema, orders.name.identifier) is None:
                orders.build(ROWS)
            orders.upsert([{"id": 0, "amount": 7}])
            assert amounts(orders) == {**{n: n for n in range(6)}, 0: 7}

    assert until_it_ends(run) >= 7
    assert listed() == done


@pytest.mark.modelled
def test_a_full_refresh(shop: Any, until_it_ends: Any, listed: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = {row["id"]: row["amount"] for row in ROWS}

    def run(at: int, session: Any) -> None:
        new = {10 + at: at, 1: 100 + at}
        generation = orders.table.generation
        try:
            orders.on(session).build([{"id": key, "amount": value} for key, value in new.items()])
        finally:
            if orders.table.generation != generation:
                model.clear()
                model.update(new)
            orders.upsert([{"id": 500, "amount": at}])
            model[500] = at
            assert amounts(orders) == model
            assert listed() == {"orders"}

    assert until_it_ends(run) >= 7
    orders.build(ROWS)
    assert orders.rows() == ROWS
    assert listed() == {"orders"}


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.modelled
def test_an_upsert(shop: Any, until_it_ends: Any, way: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)

    def run(at: int, session: Any) -> None:
        batch = {at: 50, 20 + at: 1}
        rows = [{"id": key, "amount": value} for key, value in batch.items()]
        try:
            orders.on(session).upsert(rows)
        finally:
            assert amounts(orders) in (model, {**model, **batch}), "all of a batch or nothing"
            orders.upsert(rows)
            model.update(batch)
            assert amounts(orders) == model

    assert until_it_ends(run, way) == 1
    # The log shows that the commit landed, so a run without the result succeeds as well.
    change = orders.table.change
    state = shop.main.catalog.load_table(change.schema, change.identifier)
    written = sum("arctic.txn" in snapshot.summary for snapshot in state.snapshots)
    assert written == (4 if way == "lose_the_answer" else 3)


@EITHER_WAY
@pytest.mark.modelled
def test_a_compaction(shop: Any, until_it_ends: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)

    def run(at: int, session: Any) -> None:
        orders.apply([{"id": at, "amount": 100 + at}, {"id": 50, "amount": at}], [{"id": at - 1}])
        model.update({at: 100 + at, 50: at})
        model.pop(at - 1, None)
        try:
            orders.on(session).compact()
        finally:
            assert amounts(orders) == model
            orders.upsert([{"id": 51, "amount": at}])
            model[51] = at
            if at % 2:
                orders.compact()
                assert shop.main.log_of(orders.compact) == []
            assert amounts(orders) == model

    assert until_it_ends(run, *ways) >= 7
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


@EITHER_WAY
@pytest.mark.long
def test_a_compaction_of_another_kind(shop: Any, until_it_ends: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)

    def run(at: int, session: Any) -> None:
        for turn in range(2):
            orders.apply([{"id": at, "amount": 100 + turn}, {"id": 50, "amount": at}], [{"id": at - 1}])
        model.update({at: 101, 50: at})
        model.pop(at - 1, None)
        orders.compact(grace=3600)
        orders.upsert([{"id": 51, "amount": at}])
        model[51] = at
        try:
            compact_minor(session.context, orders.name)
            compact_full(session.context, orders.name)
            trim_merged(session.context, orders.name, 0)
        finally:
            assert amounts(orders) == model
            orders.upsert([{"id": 52, "amount": at}])
            model[52] = at
            assert amounts(orders) == model

    assert until_it_ends(run, *ways) == 3
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


@EITHER_WAY
@pytest.mark.long
def test_a_rollback(shop: Any, until_it_ends: Any, ways: Sequence[str]) -> None:
    orders = shop.table()
    orders.build(ROWS)
    built = orders.version.token
    orders.apply([{"id": 1, "amount": 100}, {"id": 50, "amount": 1}], [{"id": 2}])
    changed = amounts(orders)
    then = {row["id"]: row["amount"] for row in ROWS}

    def run(at: int, session: Any) -> None:
        try:
            roll_back(session.context, orders.name, built)
        finally:
            assert amounts(orders) in (changed, then), "all of it or nothing"

    assert until_it_ends(run, *ways) == 4
    assert amounts(orders) == then


@pytest.mark.parametrize("change", ["add", "drop", "widen"])
@pytest.mark.long
def test_an_evolution(shop: Any, until_it_ends: Any, change: str) -> None:
    old_types = {"id": "bigint", "amount": "int", "note": "string"}
    new_types = {
        "add": {**old_types, "extra": "string"},
        "drop": {"id": "bigint", "amount": "int"},
        "widen": {**old_types, "amount": "bigint"},
    }[change]
    mode = "append_new_columns" if change == "add" else "sync_all_columns"

    def run(at: int, session: Any) -> None:
        orders = shop.table(f"orders{at}", old_types, on_schema_change=mode)
        orders.build([{"id": 1, "amount": 1, "note": "a"}, {"id": 2, "amount": 2, "note": "b"}])
        orders.upsert([{"id": 2, "amount": 3, "note": "c"}])
        evolved = orders.with_types(new_types)
        all_columns = {"id": 1, "amount": 2**40 if change == "widen" else 9, "note": "z", "extra": "x"}
        row = {name: all_columns[name] for name in new_types}
        kept = {name: {"id": 2, "amount": 3, "note": "c", "extra": None}[name] for name in new_types}
        try:
            evolved.on(session).upsert([row])
        finally:
            shown = dict.fromkeys(orders.table.column_names, "")
            assert orders.with_types(shown).rows()[1]["amount"] == 3
            if at % 2:
                orders.compact()
            evolved.upsert([row])
            assert evolved.rows() == [row, kept]
            if at % 2:
                evolved.compact()
                assert evolved.base_rows() == [row, kept]
            if change == "drop":
                orders.upsert([{"id": 3, "amount": 3, "note": "back"}])
                notes = [line["note"] for line in orders.rows()]
                assert notes == [None, None, "back"], "what was dropped does not come back"

    assert until_it_ends(run) == (5 if change == "widen" else 4)


@pytest.mark.modelled
@EITHER_WAY
def test_a_write_of_two_statements_to_a_plain_table(
    shop: Any, until_it_ends: Any, ways: Sequence[str]
) -> None:
    target = shop.main.name("target")
    shop.main.query(f"CREATE TABLE {target.sql} (id BIGINT, amount INT) USING iceberg")

    def write(session: Any, key: int, amount: int) -> None:
        plan = begin_plain_write(session.context, target, statements=2, last_consumed={}, consumed={})
        at = target.branch(plan.branch)
        statements = [f"DELETE FROM {at} WHERE id = {key}", f"INSERT INTO {at} VALUES ({key}, {amount})"]
        execute_plain_write(session.context, plan, statements)

    def rows() -> dict[int, int]:
        found = shop.main.query(f"SELECT id, amount FROM {target.sql}")
        assert len(found) == len(dict(found))
        return dict(found)

    write(shop.main, 1, 0)  # to a table without a snapshot
    model = {1: 0}

    def run(at: int, session: Any) -> None:
        try:
            write(session, 1, 100 + at)
        finally:
            assert rows() in (model, {**model, 1: 100 + at}), "both statements or none"
            write(shop.main, 1, 100 + at)
            model[1] = 100 + at
            assert rows() == model

    assert until_it_ends(run, *ways) == 5


@pytest.mark.modelled
def test_a_plain_table_remembers_a_renamed_upstream_under_its_new_name_only(shop: Any) -> None:
    target = shop.main.name("target")
    shop.main.query(f"CREATE TABLE {target.sql} (id BIGINT) USING iceberg")
    reads = [
        {"lake.s.orders": Consumed("a", "5"), "lake.s.shops": Consumed("b", "1")},
        {"lake.s.sales": Consumed("a", "6")},
        {"lake.s.orders": Consumed("a", "7")},
    ]
    recorded: dict[str, Consumed] = {}
    for consumed in reads:
        plan = begin_plain_write(
            shop.main.context, target, statements=1, last_consumed=recorded, consumed=consumed
        )
        at = target.branch(plan.branch)
        execute_plain_write(shop.main.context, plan, [f"INSERT INTO {at} VALUES (1)"])
        recorded = consumed_versions(shop.main.catalog.load_table(target.schema, "target").history())
        assert recorded == {"lake.s.shops": Consumed("b", "1"), **consumed}
