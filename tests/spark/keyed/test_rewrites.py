"""Minor and full compaction, and the merge of small files: other files, the same rows in the same order."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.compaction.rewrite import (
    NOTHING,
    OVERTAKEN,
    REWRITTEN,
    compact_full,
    compact_minor,
    merge_small_files,
)
from dbt_arctic.compaction.run import trim_when_due
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.refresh.pull import plan_changes
from tests.extent import first

ROWS = [{"id": number, "amount": number} for number in range(40)]


def files(orders: Any, side: str) -> list[PlacedFile]:
    name = getattr(orders.table, side)
    state = orders.session.catalog.load_table(name.schema, name.identifier)
    found: list[PlacedFile] = orders.session.catalog.placed_files(
        name.schema, name.identifier, state.current_snapshot_id, "_txn" if side == "change" else "id"
    )
    return found


def ages(orders: Any) -> list[Any]:
    """The rows of the change table with their place in the order, and those of the base with their ids."""
    found = []
    for side, columns in ((orders.table.change, "_txn, _action"), (orders.table.base, "1")):
        order = "_row_id, _last_updated_sequence_number"
        found.append(sorted(orders.session.query(f"SELECT id, {order}, {columns} FROM {side.sql}")))
    return found


def test_a_minor_keeps_the_order_of_commits_and_leaves_the_markers_where_they_are(shop: Any) -> None:
    orders, other = shop.table(), shop.session()
    orders.build(ROWS)
    # The transaction that was created first lands last: its number does not determine the order.
    mine, theirs = orders, orders.on(other)
    other.statements.before = lambda step: mine.upsert([{"id": 1, "amount": 100}, {"id": 2, "amount": 100}])
    theirs.upsert([{"id": 1, "amount": 200}, {"id": 3, "amount": 200}])
    other.statements.before = None
    mine.delete([{"id": 3}])
    before, rows, start = ages(orders), orders.rows(), orders.version
    assert (rows[1]["amount"], rows[2]["amount"], rows[3]["id"]) == (200, 100, 4)
    result = compact_minor(shop.main.context, orders.name)
    assert (result.outcome, result.files_after) == (REWRITTEN, 2)
    assert (ages(orders), orders.rows()) == (before, rows)
    in_buckets = sorted((file.partition, file.bounds == (0, 0)) for file in files(orders, "change"))
    assert in_buckets == [(("0",), False), (("0",), True), (("1",), False), (("1",), True)]
    assert compact_minor(shop.main.context, orders.name).outcome == NOTHING
    mine.upsert([{"id": 2, "amount": 300}])
    sql = plan_changes(shop.main.catalog, orders.name, start.token, None, "both", "test")
    assert sorted(shop.main.query(f"SELECT _action, amount FROM ({sql})")) == [("-U", 100), ("U", 300)]
    rows = orders.rows()
    assert orders.compact().merged == 4
    assert (orders.rows(), orders.base_rows()) == (rows, rows)
    # What was trimmed out of files with several commits is hidden there, and goes with the next one.
    assert sum(not file.is_data for file in files(orders, "change")) > 0
    assert compact_minor(shop.main.context, orders.name).files_after == 0
    assert [file.bounds for file in files(orders, "change")] == [(0, 0), (0, 0)]


def test_a_full_leaves_sorted_files_without_hidden_rows_in_the_buckets_that_were_named(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    start = orders.version
    for turn in range(2):
        orders.apply([{"id": n, "amount": turn} for n in range(turn, 20, 2)], [{"id": 30 + turn}])
        orders.compact()
    rows, before = orders.rows(), ages(orders)
    kept = [file for file in files(orders, "base") if file.partition == ("0",)]
    result = compact_full(shop.main.context, orders.name, (1,))
    assert (result.outcome, result.files_after) == (REWRITTEN, 1)
    assert (orders.rows(), ages(orders)) == (rows, before)
    found = files(orders, "base")
    assert [file for file in found if file.partition == ("0",)] == kept
    (one,) = [file for file in found if file.partition == ("1",)]
    assert one.rows == sum(
        row[0] for row in shop.main.query(f"SELECT count(*) FROM {orders.table.base.sql} WHERE "
        "lake.system.bucket(2, id) = 1")
    )  # fmt: skip
    # Many files, each with a range of its own. 1 KiB: one row is more.
    compact_full(shop.main.context, orders.name, target_bytes=1024)
    for number in ("0", "1"):
        ranges = sorted(file.bounds for file in files(orders, "base") if file.partition == (number,))
        assert len(ranges) > 1
        assert all(one[1] < two[0] for one, two in pairwise(ranges)), ranges
    assert (orders.rows(), ages(orders)) == (rows, before)
    orders.upsert([{"id": 5, "amount": 99}])
    sql = plan_changes(shop.main.catalog, orders.name, start.token, None, "after", "test")
    changed = {key for (key,) in shop.main.query(f"SELECT id FROM ({sql})")}
    assert changed == {*range(2, 20), 30, 31}


@pytest.mark.parametrize("partition_by", first(2, ["line", "days(at)", "truncate(2, line)"]))
def test_of_a_table_with_partitions_those_are_rewritten_that_need_it(shop: Any, partition_by: str) -> None:
    types = {"id": "bigint", "line": "string", "at": "timestamp"}
    orders = shop.table("orders", types, partition_by=partition_by)
    columns = (
        "id, CASE id % 3 WHEN {} THEN 'xyz' WHEN 1 THEN 'it\\'s' END AS line, "
        "timestamp_seconds({} * 86400) AS at"
    )
    orders.build_sql(f"SELECT {columns.format(0, 'id % 3')} FROM range(60)")
    # In one partition a row is hidden, and in it, or another one, there is one more.
    for key in (1, 4):
        orders.upsert_sql(f"SELECT {columns.format(0, '1')} FROM range({key}, {key} + 1)")
        orders.compact()
    rows, before = orders.rows(), files(orders, "base")
    touched = {file.partition for file in before if not file.is_data}
    assert touched
    assert touched < {file.partition for file in before}
    assert compact_full(shop.main.context, orders.name, target_bytes=1024).outcome == REWRITTEN
    after = files(orders, "base")
    assert [one for one in after if one.partition not in touched] == [
        one for one in before if one.partition not in touched
    ]
    assert all(file.is_data for file in after)
    for place in touched:
        ranges = sorted(file.bounds for file in after if file.partition == place)
        assert len(ranges) > 1
        assert all(one[1] < two[0] for one, two in pairwise(ranges)), ranges
    # They are put together again, and then there is nothing to do.
    assert compact_full(shop.main.context, orders.name, (0, 1)).files_before == sum(
        file.partition in touched for file in after
    )
    assert compact_full(shop.main.context, orders.name).outcome == NOTHING
    assert orders.rows() == rows


@pytest.mark.modelled
def test_a_trim_that_is_due_rides_along_with_a_write(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 9}])
    orders.compact(grace=3600)
    settings, now_ms = CompactionSettings(), shop.main.context.now_ms
    assert trim_when_due(shop.main.context, orders.name, settings) is None
    later = replace(shop.main.context, now_ms=lambda: now_ms() + 11 * 60_000)
    assert trim_when_due(later, orders.name, CompactionSettings(shed=True)) is None
    assert trim_when_due(later, orders.name, CompactionSettings(trim_grace_s=3600)) is None
    done = trim_when_due(later, orders.name, settings)
    assert (done.outcome, done.detail) == ("trimmed", "0 commits merged; 1 trimmed")
    assert done.after.read_amplification < done.before.read_amplification
    assert shop.main.log_of(lambda: trim_when_due(later, orders.name, settings)) == []


def test_small_files_of_a_plain_table_are_put_together(shop: Any) -> None:
    name = shop.main.name("events")
    shop.main.query(f"CREATE TABLE {name.sql} USING iceberg AS SELECT 0L AS id")
    for number in range(1, 4):
        shop.main.query(f"INSERT INTO {name.sql} VALUES ({number})")
    result = merge_small_files(shop.main.context, name)
    assert (result.files_before, result.files_after) == (4, 1)
    assert sorted(shop.main.query(f"SELECT id FROM {name.sql}")) == [(0,), (1,), (2,), (3,)]
    assert merge_small_files(shop.main.context, name).outcome == NOTHING


@pytest.mark.modelled
def test_in_the_middle_of_a_major_it_loses_nothing(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for turn, (rewrite, step) in enumerate(
        [(compact_minor, step) for step in ("create_branch", "merge", "fast_forward", "trim")]
        + [(compact_full, step) for step in ("merge", "trim")]
    ):
        orders.apply([{"id": 1, "amount": turn}, {"id": 2 + turn, "amount": 9}], [{"id": 30 + turn}])
        orders.compact(grace=3600)
        orders.upsert([{"id": 1, "amount": 100 + turn}])
        rows, session = orders.rows(), shop.session()

        def meanwhile(at: str, session: Any = session, step: str = step, rewrite: Any = rewrite) -> None:
            if at == step:
                session.statements.before = None
                assert rewrite(shop.main.context, orders.name).outcome == REWRITTEN

        session.statements.before = meanwhile
        outcome = orders.on(session).compact().outcome
        faster = (rewrite, step) == (compact_full, "merge")
        assert outcome == ("another compaction was faster" if faster else "compacted")
        assert orders.rows() == rows
    orders.compact()
    assert (orders.rows(), orders.base_rows()) == (rows, rows)


def test_all_kinds_at_once_beside_writers(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    stop = threading.Event()
    outcomes: list[str] = []

    def write(number: int) -> None:
        mine = orders.on(shop.session())
        for turn in range(4):
            mine.upsert([{"id": 5, "amount": number}, {"id": 100 + number * 10 + turn, "amount": 1}])

    def again(action: Any) -> None:
        context = shop.session().context
        while not stop.is_set():
            outcomes.append(action(context).outcome)

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        others = [
            pool.submit(again, lambda context: compact_minor(context, orders.name)),
            pool.submit(again, lambda context: compact_full(context, orders.name)),
        ]
        majors = orders.on(shop.session())
        try:
            while not all(writer.done() for writer in writers):
                majors.compact()
        finally:
            stop.set()
        for future in (*writers, *others):
            future.result()
    assert set(outcomes) <= {REWRITTEN, NOTHING, OVERTAKEN}
    rows = orders.rows()
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows)
    assert found.pop(5) in (0, 1)
    added = {100 + number * 10 + turn: 1 for number in range(2) for turn in range(4)}
    assert found == {**{n: n for n in range(40) if n != 5}, **added}
    orders.compact()
    assert (orders.rows(), orders.base_rows()) == (rows, rows)
