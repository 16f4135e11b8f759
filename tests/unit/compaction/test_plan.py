"""What is pending, what a read costs, and what is due in which order: from the totals of two logs."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.compaction import run
from dbt_arctic.compaction.metrics import BucketMetrics, SideMetrics, bucket_metrics
from dbt_arctic.compaction.plan import Operation, most_valuable_first, needs_buckets, plan_table
from dbt_arctic.compaction.run import OperationResult
from dbt_arctic.compaction.settings import CompactionSettings, Trigger, parse_settings
from dbt_arctic.compaction.status import measure_plain
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed import operations
from dbt_arctic.keyed.compact import PROPERTY_NOTHING_TO_TRIM
from dbt_arctic.keyed.names import Name
from tests.unit.compaction.conftest import MB, MINUTE, NOW, Log, Orders, txn

DEFAULT = CompactionSettings()


def kinds(orders: Orders, **trigger: Any) -> list[str]:
    settings = CompactionSettings(Trigger(**trigger)) if trigger else DEFAULT
    return [one.kind for one in plan_table(orders.status, None, settings)]


def test_a_table_without_changes_is_as_good_as_new(orders: Orders) -> None:
    status = orders.status
    assert (status.files, status.base.live_rows, status.pending.rows) == (2, 1000, 0)
    assert status.read_amplification == 1.0
    assert kinds(orders) == []


def test_pending_is_what_the_log_of_the_base_does_not_name(orders: Orders) -> None:
    first = orders.upsert(60, rows=10)
    orders.upsert(30, rows=7)
    pending = orders.status.pending
    assert (pending.commits, pending.rows, pending.since_ms) == (2, 17, NOW - 60 * 60_000)
    orders.merge(20, first)
    pending = orders.status.pending
    assert (pending.commits, pending.rows, pending.waiting_rows, pending.trim_due) == (1, 7, 10, True)
    orders.trim(5, rows=10)
    pending = orders.status.pending
    assert (pending.rows, pending.waiting_rows, pending.trim_due) == (7, 0, False)


def test_within_the_grace_no_trim_is_due(orders: Orders) -> None:
    orders.merge(9, orders.upsert(60))
    assert orders.status.pending.waiting_rows == 10
    assert not orders.status.pending.trim_due


def test_deletes_that_a_trim_has_left_are_not_due_for_another(orders: Orders) -> None:
    orders.merge(60, orders.upsert(90))
    orders.trim(30, rows=6, files=0, size=0)
    assert orders.status.pending.waiting_rows == 4
    assert not orders.status.pending.trim_due


def test_where_nothing_but_deletes_was_merged_no_trim_is_due_until_they_may_go(orders: Orders) -> None:
    """A trim that finds nothing commits nothing, and says so by a property."""
    generation = replace(orders.table.generation, sequence_by="seq")
    orders.table = replace(orders.table, generation=generation, tombstone_retention_s=3600)
    orders.merge(60, orders.upsert(90))
    assert orders.status.pending.trim_due

    def due(merged: int, looked: int) -> bool:
        """With the note of a trim that looked at merges until then."""
        times = [NOW - merged * MINUTE, NOW - looked * MINUTE]
        orders.change.properties[PROPERTY_NOTHING_TO_TRIM] = json.dumps(times)
        return orders.status.pending.trim_due

    assert due(90, 40), "it looked with a longer grace, and so not at the merge"
    assert not due(60, 40)
    orders.merge(30, orders.upsert(35))
    assert due(60, 15)
    assert not due(30, 15)
    orders.table = replace(orders.table, tombstone_retention_s=600)
    assert due(30, 15), "deletes may go by now"


@pytest.mark.parametrize("side", ["base", "change"])
def test_the_files_decide_if_a_log_was_expired(orders: Orders, side: str) -> None:
    old, new = orders.upsert(600, rows=10), orders.upsert(30, rows=7)
    if side == "base":
        orders.merge(300, old)
        orders.base.commit(200, "replace")
        orders.trim(100, rows=10)
        orders.base.expire(2)
        orders.files = {"orders__change_1": [PlacedFile(True, 7, MB, ("0",), (new, new))]}
        assert orders.status.pending.rows == 7, "the old one is neither named nor there"
    else:
        orders.change.expire(2)
        orders.files = {
            "orders__change_1": [
                PlacedFile(True, 1, 900, ("0",), (0, 0)),
                PlacedFile(True, 10, MB, ("0",), (old, old)),
                PlacedFile(True, 7, MB, ("0",), (new, new)),
            ]
        }
        pending = orders.status.pending
        assert (pending.commits, pending.rows, pending.since_ms) == (2, 17, NOW - 600 * 60_000)


def test_a_log_that_begins_with_an_empty_table_needs_no_files(orders: Orders) -> None:
    orders.merge(400, orders.upsert(500))
    orders.trim(300, rows=10)
    orders.upsert(30, rows=7)
    orders.change.expire(2)
    orders.base.commit(200, "replace")
    orders.base.expire(2)
    assert orders.status.pending.rows == 7


def test_each_trigger_has_its_reason(orders: Orders) -> None:
    orders.upsert(60, rows=99)
    assert kinds(orders) == []
    orders.upsert(50, rows=1)
    (due,) = plan_table(orders.status, None, DEFAULT)
    assert (due.kind, due.why) == ("major", "10% of the rows are pending")
    assert plan_table(orders.status, None, CompactionSettings(trigger=None)) == []
    assert kinds(orders, pending=0.5) == []
    assert kinds(orders, pending=0.5, age_s=3600) == ["major"]
    assert kinds(orders, pending=0.5, files=2) == ["minor"]


def test_change_files_are_counted_by_partition_too(orders: Orders) -> None:
    """A minor leaves one in each, so it would be due for ever."""
    orders.table = replace(orders.table, layout=replace(orders.table.layout, partition_by=("day",)))
    orders.upsert(5, rows=30, files=60)
    assert needs_buckets(orders.status, DEFAULT.trigger)

    def due(partitions: int, files: int) -> list[str]:
        side = SideMetrics(files=files, size_bytes=MB, rows=10)
        places = [
            replace(bucket(number), partition=(str(day), str(number)), change=side)
            for day in range(partitions)
            for number in range(2)
        ]
        often = CompactionSettings(Trigger(read_amplification=99))
        return [one.why for one in plan_table(orders.status, places, often) if one.kind == "minor"]

    assert due(15, 2) == []
    assert due(1, 30) == ["60 change files in 2 buckets"]


def test_reads_that_would_soon_pay_for_it_are_a_reason(orders: Orders) -> None:
    orders.upsert(60, rows=20, size=300 * MB)
    (due,) = plan_table(orders.status, None, DEFAULT)
    assert (due.kind, due.why) == ("major", "pending changes make a read 12.8 times as expensive")


def test_what_is_merged_and_not_trimmed_yet_is_no_reason_to_merge_again(orders: Orders) -> None:
    done = orders.upsert(60, rows=60, size=60 * MB)
    orders.merge(9, done)
    orders.upsert(1, rows=1, size=MB)
    assert (orders.status.read_amplification > 3, orders.status.pending_amplification < 1.2) == (True, True)
    assert kinds(orders) == [], "within the grace"
    orders.base.snapshots.pop()
    orders.merge(11, done)
    assert kinds(orders) == ["trim"]
    orders.upsert(1, rows=30, size=30 * MB)
    due = plan_table(orders.status, None, DEFAULT)
    assert [one.kind for one in due] == ["trim", "major"]
    assert due[1].gain_s < due[0].gain_s, "each for its own rows"


def test_a_base_of_many_small_files_is_no_reason_to_let_more_be_pending(orders: Orders) -> None:
    orders.upsert(30, rows=50, files=80, size=MB)
    before = plan_table(orders.status, None, DEFAULT)
    assert [one.why for one in before] == ["pending changes make a read 1.8 times as expensive"]
    orders.base.commit(20, rows=100, files=72, size=MB)
    assert plan_table(orders.status, None, CompactionSettings(Trigger(files=99)))[0].why == before[0].why


def test_in_a_small_table_opened_files_are_none(orders: Orders) -> None:
    orders = Orders()
    orders.build(size=2000)
    orders.upsert(60, rows=20, files=4, size=4000)
    assert orders.status.read_amplification > 2
    assert kinds(orders) == []


def test_files_with_nothing_but_hidden_rows_go_with_a_minor(orders: Orders) -> None:
    orders.merge(60, orders.upsert(90))
    orders.change.commit(30, "delete", hidden=10, vectors=2)
    assert orders.status.pending.waiting_rows == 0
    assert kinds(orders) == ["minor"]


def bucket(number: int, **base: int) -> BucketMetrics:
    side = SideMetrics(**{"files": 1, "size_bytes": 50 * MB, "rows": 500, **base})
    return BucketMetrics((str(number),), side, SideMetrics(), max(0, side.files - 1), 0, 1)


def test_only_the_buckets_that_need_it_are_rewritten(orders: Orders) -> None:
    assert not needs_buckets(orders.status, DEFAULT.trigger)
    orders.merge(60, hidden=200)
    assert needs_buckets(orders.status, DEFAULT.trigger)
    (due,) = plan_table(orders.status, [bucket(0, deleted=200, delete_files=1), bucket(1)], DEFAULT)
    assert (due.kind, due.buckets, due.why) == ("full", (0,), "40% of the stored rows are deleted")
    (due,) = plan_table(orders.status, [bucket(0, files=21), bucket(1, files=30)], DEFAULT)
    assert (due.buckets, due.why) == ((), "20 small files in a bucket")


def test_small_files_that_reads_would_soon_pay_for_are_a_reason(orders: Orders) -> None:
    """Far fewer than the trigger ``files``, where a bucket's rows are few."""
    slow, tidy = bucket(0, files=8, delete_files=1, size_bytes=2 * MB), bucket(1)
    many = Trigger(files=99)
    assert not needs_buckets(orders.status, many)
    orders.base.commit(60, rows=100, files=40, size=MB)
    assert needs_buckets(orders.status, many)
    (due,) = plan_table(orders.status, [slow] * 8, DEFAULT)
    assert (due.kind, due.why) == ("full", "its files make a read 3.7 times as expensive")
    assert plan_table(orders.status, [slow] * 2 + [tidy] * 6, DEFAULT) == [], "two are not worth it"
    large = bucket(0, files=8, delete_files=1, size_bytes=500 * MB)
    assert plan_table(orders.status, [large] * 8, DEFAULT) == [], "its files are opened, and then read"
    few = bucket(0, files=4, delete_files=4, size_bytes=MB)
    assert plan_table(orders.status, [few] * 99, DEFAULT) == [], "the next major adds another"
    calm = CompactionSettings(Trigger(read_amplification=9))
    assert plan_table(orders.status, [slow] * 8, calm) == []


def test_a_bucket_is_determined_by_its_files() -> None:
    merged, pending = txn(90), txn(5)
    base = [PlacedFile(True, 100, 10 * MB, ("0",)), PlacedFile(False, 30, 900, ("0",))]
    change = [
        PlacedFile(True, 1, 900, ("0",), (0, 0)),
        PlacedFile(True, 1, 900, ("1",), (0, 0)),
        PlacedFile(True, 5, MB, ("0",), (merged, merged)),
        PlacedFile(True, 6, MB, ("1",), (pending, pending)),
    ]
    zero, one = bucket_metrics(base, change, frozenset([merged]), 5 * MB)
    assert (zero.base.live_rows, zero.base.delete_ratio, zero.pending_rows) == (70, 0.3, 0)
    assert (zero.ideal_files, zero.small_files, zero.change.files) == (2, 0, 1)
    assert (one.base.rows, one.pending_rows, one.ideal_files) == (0, 6, 0)


def test_small_files_of_a_table_without_a_key() -> None:
    log = Log("events")
    log.commit(60, rows=100, files=30, size=30 * MB)
    status = measure_plain(None, Name("lake", "shop", "events"), log.state, NOW)  # type: ignore[arg-type]
    assert needs_buckets(status, DEFAULT.trigger), "nobody tells how it is partitioned"
    files = [PlacedFile(True, 3, MB, (str(number % 2),)) for number in range(30)]
    (due,) = plan_table(status, bucket_metrics(files, [], frozenset()), DEFAULT)
    assert (due.kind, due.why) == ("merge", "28 files more than its rows need")
    apart = [PlacedFile(True, 3, MB, (str(number),)) for number in range(30)]
    assert plan_table(status, bucket_metrics(apart, [], frozenset()), DEFAULT) == []


def test_the_most_valuable_comes_first_and_a_table_keeps_its_order() -> None:
    def made(kind: Any, table: str, gain: float) -> Operation:
        return Operation(kind, Name("lake", "shop", table), "", 1.0, gain)

    planned = [
        made("full", "a", 9), made("major", "a", 1), made("major", "b", 5), made("trim", "c", 0),
        made("merge", "d", 7),
    ]  # fmt: skip
    order = [(one.kind, one.name.identifier) for one in most_valuable_first(planned)]
    assert order == [("trim", "c"), ("major", "a"), ("full", "a"), ("merge", "d"), ("major", "b")]


def test_settings_are_read_with_their_units() -> None:
    given = {
        "trigger": {"pending": 0.05, "age": "2 hours"},
        "budget": "5 minutes",
        "target_file_size": "64 MB",
    }
    settings = parse_settings("orders", given)
    assert settings.trigger == Trigger(pending=0.05, age_s=7200)
    assert (settings.budget_s, settings.target_file_bytes) == (300, 64 * MB)
    assert parse_settings("orders", None) == DEFAULT
    assert parse_settings("orders", {"trigger": "never"}).trigger is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("often", "compaction is 'often'"),
        ({"triger": {}}, "compaction has no setting 'triger'"),
        ({"triger": {}}, "did you mean trigger?"),
        ({"rows": 3}, "remove it, or use one of these"),
        ({"trigger": {"rows": 3}}, "trigger has no setting 'rows'"),
        ({"trigger": "always"}, "the trigger 'always'"),
        ({"trigger": {"pending": -1}}, "pending is -1"),
        ({"trigger": {"files": True}}, "files is True"),
        ({"budget": "soon"}, "budget is 'soon'"),
        ({"target_file_size": 512}, "target_file_size is 512"),
        ({"target_file_size": "0 MB"}, "target_file_size is '0 MB'"),
    ],
)
def test_a_setting_that_is_wrong_is_an_error(value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_settings("orders", value)


def test_what_does_not_fit_into_the_budget_stays_due(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    ran = []

    def run_one(context: Any, operation: Operation, grace_s: float, clock: Any) -> OperationResult:
        nonlocal now
        now += 2 * operation.cost_s  # the machine is slower than estimated
        ran.append(operation.name.identifier)
        return OperationResult(operation, "compacted", seconds=2 * operation.cost_s)

    monkeypatch.setattr(run, "run_operation", run_one)
    context = SimpleNamespace(now_ms=lambda: 0)
    planned = [
        Operation("major", Name("lake", "shop", table), "", cost, 1.0)
        for table, cost in (("a", 10), ("b", 30), ("c", 15), ("d", 5))
    ]
    told: list[OperationResult] = []
    done = run.run_operations(context, planned, 60, report=told.append, clock=lambda: now)  # type: ignore[arg-type]
    # 40 seconds are left after the first, and the second would take not 30 but 60.
    assert ran == ["a", "c", "d"]
    assert [one.outcome == run.OVER_BUDGET for one in done] == [False, True, False, False]
    assert told == done
    assert ran == [one.operation.name.identifier for one in done if one.was_tried]


def test_a_record_is_a_row_whatever_its_texts_are() -> None:
    record = operations.Record(
        1_700_000_000_123, "it's", "major", "lake.shop.orders", "all", "10%", "failed", "AR-404 no\nwhy: 'x'",
        1.5, 2.25, 3.0, 1.0, 10, 2, 1000, 900,
    )  # fmt: skip
    sql = operations.insert(Name("lake", "shop", "arctic_operations"), [record, record])
    assert sql.count("timestamp_millis(1700000000123), 'it\\'s'") == 2
    assert "'AR-404 no\\nwhy: \\'x\\''" in sql


def test_files_of_a_bucket_overlap_where_a_look_for_a_key_opens_several() -> None:
    def base(*ranges: tuple[int, int] | None) -> list[PlacedFile]:
        return [PlacedFile(True, 10, MB, ("0",), one) for one in ranges]

    def found(*files: PlacedFile) -> int | None:
        (only,) = bucket_metrics(list(files), [], frozenset())
        return only.overlap

    assert found(*base((0, 9), (10, 19), (20, 29))) == 1
    assert found(*base((0, 29), (3, 4), (5, 20), (20, 22))) == 3
    assert found(*base((0, 9), None)) is None
    assert found(*base((0, 9)), PlacedFile(False, 1, 10, ("0",))) == 1, "what deletes has no keys"
