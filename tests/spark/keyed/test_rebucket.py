"""More and fewer buckets by a full compaction: the same rows all the while, and then joins in place again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.compaction.plan import plan_table, requested_operation
from dbt_arctic.compaction.rebucket import rebucket
from dbt_arctic.compaction.rewrite import NOTHING, REWRITTEN, compact_full
from dbt_arctic.compaction.run import run_operation
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import TableStatus, measure_buckets, measure_keyed
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.table import MARKER_TXN, TXN
from dbt_arctic.maintenance.layout_checks import check_layout, check_properties
from dbt_arctic.maintenance.log_checks import check_markers
from dbt_arctic.maintenance.versions import rows_at
from dbt_arctic.store.state import head, load_base, load_change
from tests.spark.keyed.injected_failures import amounts
from tests.spark.keyed.test_one_sided_shuffle import exchanges, executed

COUNT = 200
"""So many that each of 8 buckets has some."""
ROWS = [{"id": number, "amount": number} for number in range(COUNT)]


def measured(orders: Any) -> TableStatus:
    catalog, table = orders.session.catalog, orders.table
    sides = load_base(catalog, table), load_change(catalog, table)
    return measure_keyed(catalog, table, *sides, orders.session.context.now_ms())


def specs(orders: Any) -> list[set[int]]:
    """The partition specs of the files of base and change table: one each, if all is well."""
    found, catalog = [], orders.session.catalog
    for side in (orders.table.base, orders.table.change):
        now = catalog.load_table(side.schema, side.identifier)
        files = catalog.placed_files(side.schema, side.identifier, now.current_snapshot_id)
        found.append({file.spec_id for file in files})
        assert now.spec_id in found[-1]
    return found


def findings(orders: Any) -> list[str]:
    catalog, table = orders.session.catalog, orders.table
    base, change = load_base(catalog, table), load_change(catalog, table)
    files = catalog.data_files(change.schema, change.name, head(change), TXN)
    found = [
        *check_layout(table, base, change),
        *check_properties(table, base, change),
        *check_markers(table, change, files),
    ]
    return [one.what for one in found]


def go_on(orders: Any, wanted: int) -> None:
    """What ``dbt-arctic compact`` does, which looks at what is due."""
    status, catalog, table = measured(orders), orders.session.catalog, orders.table
    settings = CompactionSettings(buckets=wanted)
    sides = load_base(catalog, table), load_change(catalog, table)
    buckets = measure_buckets(catalog, status, *sides, settings.target_file_bytes)
    for operation in plan_table(status, buckets, settings):
        if operation.kind in ("full", "minor"):
            assert run_operation(orders.session.context, operation).outcome in (REWRITTEN, NOTHING)


def shuffles(session: Any, query: str) -> int:
    session.query("SET spark.sql.autoBroadcastJoinThreshold = -1")
    session.query("RESET spark.sql.shuffle.partitions")
    return len(exchanges(executed(session, query, aqe=True)[0]))


def test_whatever_is_done_in_between(shop: Any) -> None:
    orders, payments = shop.table(buckets=4), shop.table("payments", buckets=8)
    orders.build(ROWS)
    payments.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.apply([{"id": n, "amount": -n} for n in range(20)], [{"id": 50}])
    model, start = amounts(orders), orders.version
    session, others, seen = shop.session(), orders.on(shop.session()), list[str]()

    def meanwhile(step: str) -> None:
        seen.append(step)
        at = 1000 + len(seen)
        others.apply([{"id": at, "amount": at}, {"id": len(seen), "amount": at}], [{"id": at - 1}])
        model.update({at: at, len(seen): at})
        model.pop(at - 1, None)
        assert amounts(orders) == model, step
        if step == "rewrite_base":
            # Old and new files in the base, which are merged and read by a shuffle.
            others.compact(grace=0)
            assert [len(side) for side in specs(orders)] == [2, 1]
            assert copy.run() == "upserted"
        if len(seen) == 3:
            # The base in 8 buckets, the changes in 4.
            assert shuffles(shop.main, f"SELECT amount FROM {orders.name.sql}") > 0
            others.compact(grace=3600)
            assert {row["id"]: row["amount"] for row in orders.base_rows()} == model

    session.statements.before = meanwhile
    result = rebucket(session.context, orders.name, 8)
    assert result.outcome == REWRITTEN
    assert result.note.startswith("4 buckets into 8, joins in place again after ")
    assert seen == [
        *(
            "change_bucket_count",
            "rewrite_base",
            "change_bucket_count",
            "leave_statistics_out",
            "drop_markers",
        ),
        *("mark_buckets", "keep_statistics", "rewrite_changes"),
    ]
    assert amounts(orders) == model
    assert ([len(side) for side in specs(orders)], findings(orders)) == ([1, 1], [])
    join = f"SELECT o.amount FROM {orders.name.sql} o JOIN {payments.name.sql} p ON o.id = p.id"
    alone = f"SELECT amount FROM {orders.name.sql}"
    assert (shuffles(shop.main, alone), shuffles(shop.main, join)) == (0, 0)
    assert measured(orders).table.layout.buckets == 8
    # Fewer again, with pending changes; versions of all layouts read as they were.
    orders.upsert([{"id": 7, "amount": 7}])
    model[7] = 7
    assert rebucket(shop.main.context, orders.name, 2).outcome == REWRITTEN
    assert (amounts(orders), shuffles(shop.main, alone), findings(orders)) == (model, 0, [])
    assert shuffles(shop.main, join) > 0
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model
    assert shuffles(shop.main, alone) == 0
    old = shop.main.read(rows_at(shop.main.catalog, orders.name, start.token, "test"), ["id", "amount"])
    assert {row["id"]: row["amount"] for row in old} == {
        n: -n if n < 20 else n for n in range(COUNT) if n != 50
    }
    assert copy.run() == "upserted"
    assert [{**row, "source": "orders"} for row in orders.rows()] == copy.rows()
    # A full refresh without a number of its own keeps that of now.
    free = orders.configured(buckets=None)
    free.build(ROWS)
    assert (free.table.layout.buckets, free.rows()) == (2, ROWS)


def test_a_small_table_shrinks_to_one_bucket(shop: Any) -> None:
    orders = shop.table(buckets=8)
    orders.build(ROWS)
    orders.apply([{"id": 7, "amount": 70}], [{"id": 50}])
    (due,) = plan_table(measured(orders), None, CompactionSettings())
    assert (due.kind, due.to_buckets) == ("full", 1)
    assert run_operation(shop.main.context, due).outcome == REWRITTEN
    assert amounts(orders) == {n: 70 if n == 7 else n for n in range(COUNT) if n != 50}
    assert (measured(orders).table.layout.buckets, findings(orders)) == (1, [])
    assert shuffles(shop.main, f"SELECT amount FROM {orders.name.sql}") == 0
    assert plan_table(measured(orders), None, CompactionSettings()) == []


@pytest.mark.modelled
def test_cut_off_anywhere(shop: Any, troubled: Any) -> None:
    orders = shop.table(buckets=2)
    orders.build(ROWS)
    model = amounts(orders)
    for at, attempt in troubled("delay", "lose_the_answer", "run_twice"):
        wanted = (4, 2)[at % 2]
        orders.apply([{"id": at, "amount": 100 + at}], [{"id": 30 + at}])
        model[at] = 100 + at
        model.pop(30 + at, None)
        attempt(lambda session, wanted=wanted: rebucket(session.context, orders.name, wanted))
        assert amounts(orders) == model
        if at % 4 == 3:
            orders.compact(grace=0)
        # What had been sent is a step of the same, before the same command goes on or after it.
        if at % 2:
            attempt.land()
        go_on(orders, wanted)
        attempt.land()
        go_on(orders, wanted)
        assert amounts(orders) == model
        assert (measured(orders).table.layout.buckets, findings(orders)) == (wanted, [])
    orders.compact()
    assert {row["id"]: row["amount"] for row in orders.base_rows()} == model


def test_markers_that_a_late_statement_has_taken_are_made_again(shop: Any, cut_off: Any) -> None:
    orders, payments = shop.table(buckets=4), shop.table("payments", buckets=4)
    orders.build(ROWS)
    payments.build(ROWS)
    slow = shop.session()
    slow.statements.delay(4)
    with pytest.raises(cut_off):
        rebucket(slow.context, orders.name, 2)
    assert "`_txn` IN (0)" in slow.statements.late, "its markers are about to be dropped"
    assert rebucket(shop.main.context, orders.name, 2).outcome == REWRITTEN
    assert findings(orders) == []
    slow.statements.land()
    # Those that a table begins with, only a person takes.
    shop.main.query(compact.trim(payments.table, [MARKER_TXN]))
    for table, buckets in ((orders, 2), (payments, 4)):
        table.upsert([{"id": 1, "amount": 1}])
        rows, settings = table.rows(), CompactionSettings(buckets=buckets)
        assert (len(findings(table)), measured(table).markers_lost) == (1, True)
        (due,) = plan_table(measured(table), None, settings)
        assert due == replace(requested_operation("full", measured(table), settings), why=due.why)
        assert due.why == "its bucket markers are missing, and joins shuffle until they are restored"
        base = table.commits()[1]
        assert run_operation(shop.main.context, due).outcome == REWRITTEN
        assert (findings(table), measured(table).markers_lost, table.commits()[1]) == ([], False, base)
        assert plan_table(measured(table), None, settings) == []
        assert table.rows() == rows
    for table in (orders, payments):
        assert shuffles(shop.main, f"SELECT amount FROM {table.name.sql}") == 0


@pytest.mark.modelled
def test_it_is_what_a_full_compaction_does_where_it_is_wanted(shop: Any) -> None:
    orders = shop.table(buckets=2)
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 9}])
    rows = orders.rows()
    planned = requested_operation("full", measured(orders), CompactionSettings(buckets=4))
    assert (planned.to_buckets, planned.scope) == (4, "all, into 4 buckets")
    assert planned.why == "grow from 2 to 4 buckets: set by the model; joins shuffle while changes are moved"
    done = run_operation(shop.main.context, planned)
    assert done.outcome == REWRITTEN
    assert "2 buckets into 4" in done.detail
    # A model that says another number goes on writing; it is a full compaction that brings it there.
    more = orders.configured(buckets=8)
    more.upsert([{"id": 2, "amount": 9}])
    assert more.rows() == [row if row["id"] != 2 else {"id": 2, "amount": 9} for row in rows]


def test_with_partitions_late_rows_and_any_name(shop: Any) -> None:
    types = {"line": "int", "k`ey, (2": "bigint", "v": "int"}
    config = {"unique_key": "k`ey, (2", "partition_by": ["line"], "sequence_by": "v", "buckets": 2}
    orders = shop.table("orders", types, **config)

    def row(key: int, line: int, v: int) -> dict[str, int]:
        return {"line": line, "k`ey, (2": key, "v": v}

    orders.build([row(key, key % 3, 5) for key in range(40)])
    # One that moves to another partition, one that is late, and one that goes and comes back too late.
    orders.apply([row(1, 2, 6), row(2, 0, 4)], [row(3, 0, 9)])
    orders.compact()
    orders.upsert([row(3, 1, 8), row(50, 1, 1)])
    rows = orders.rows()
    assert rebucket(shop.main.context, orders.name, 4).outcome == REWRITTEN
    assert (orders.rows(), findings(orders)) == (rows, [])
    assert [len(side) for side in specs(orders)] == [1, 1]
    base = load_base(shop.main.catalog, orders.table)
    assert base.partitioning == ("line", "bucket(4, k`ey, (2)")
    orders.compact()
    assert (orders.rows(), orders.base_rows()) == (rows, rows)
    assert compact_full(shop.main.context, orders.name).outcome in (REWRITTEN, NOTHING)
    assert orders.rows() == rows
