"""How many buckets a table should have, and what is due where files lie in another number of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_arctic.catalog.api import PlacedFile
from dbt_arctic.compaction.bucketing import wanted_buckets
from dbt_arctic.compaction.metrics import bucket_metrics
from dbt_arctic.compaction.plan import Operation, needs_buckets, plan_table, requested_operation
from dbt_arctic.compaction.settings import CompactionSettings, parse_settings
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import Layout, count_buckets
from tests.unit.compaction.conftest import MB, Orders, txn

GB = 1024 * MB
DEFAULT = CompactionSettings()


def status(buckets: int, size: int, partition_by: tuple[str, ...] = ()) -> TableStatus:
    made = Orders(buckets)
    made.table = replace(made.table, layout=Layout(buckets, "id", partition_by, ("id",)))
    made.build(size=size)
    return made.status


@pytest.mark.parametrize(
    ("now", "size", "wanted"),
    [
        (8, 4 * GB, 8),
        (8, 8 * GB, 8),
        (8, 9 * GB, 32),
        (32, 9 * GB, 32),
        (8, 100 * GB, 256),
        (256, 20 * GB, 256),
        (256, 16 * GB, 32),
        (64, 100 * MB, 8),
        (32, 0, 1),
        (8, 15 * MB, 1),
        (8, 17 * MB, 8),
        (4, 15 * MB, 4),
        (1, 50 * MB, 1),
        (1, 200 * MB, 4),
        (1, 2 * GB, 8),
    ],
)
def test_the_number_follows_the_volume_by_powers_of_two_and_not_to_and_fro(
    now: int, size: int, wanted: int
) -> None:
    found = wanted_buckets(status(now, size), DEFAULT)
    assert found == wanted
    assert wanted_buckets(status(found, size), DEFAULT) == found, "it would be changed again"


def test_the_target_size_follows_the_number_of_tasks_that_read_a_table() -> None:
    settings = CompactionSettings(parallelism=100)
    assert wanted_buckets(status(8, 100 * MB), settings) == 8
    assert wanted_buckets(status(8, 2 * GB), settings) == 64
    assert wanted_buckets(status(8, 16 * GB), settings) == 128


def test_a_model_may_say_it_and_what_is_partitioned_is_left_alone() -> None:
    assert wanted_buckets(status(8, GB), CompactionSettings(buckets=2)) == 2
    assert wanted_buckets(status(8, 900 * GB, ("day",)), DEFAULT) == 8
    assert wanted_buckets(status(8, GB, ("day",)), CompactionSettings(buckets=16)) == 16
    assert wanted_buckets(status(0, 900 * GB), DEFAULT) == 0


def test_it_is_due_with_its_reason_and_goes_before_other_rewrites() -> None:
    outgrown = status(8, 12 * GB)
    (due,) = plan_table(outgrown, None, DEFAULT)
    assert due == requested_operation("full", outgrown, DEFAULT)
    assert (due.kind, due.to_buckets, due.scope) == ("full", 32, "all, into 32 buckets")
    assert due.why == (
        "grow from 8 to 32 buckets: 1.5 GB per bucket, the target is 512.0 MB; "
        "joins shuffle while changes are moved"
    )
    assert plan_table(outgrown, None, CompactionSettings(trigger=None)) == []
    assert requested_operation("full", status(8, GB), DEFAULT).to_buckets is None
    (due,) = plan_table(status(512, 12 * GB), None, DEFAULT)
    assert due.why.startswith("shrink from 512 to 32 buckets: 24.0 MB per bucket, ")


def half_way(made: Orders, base: list[int], change: list[int], **state: object) -> list[Operation]:
    """What is due where files have these specs, and 1 is that of now."""
    seen = replace(made.status, has_old_specs=True, **state)  # type: ignore[arg-type]
    assert needs_buckets(seen, DEFAULT.trigger)
    placed = [
        [PlacedFile(True, 5, MB, ("0",), (txn(5), txn(5)), spec) for spec in side] for side in (base, change)
    ]
    return plan_table(seen, bucket_metrics(*placed, frozenset(), specs=(1, 1)), DEFAULT)


def test_what_was_cut_off_goes_on(orders: Orders) -> None:
    assert half_way(orders, [1], []) == []
    orders.upsert(5)
    assert half_way(orders, [1, 1], [1]) == []
    (due,) = half_way(orders, [0, 1], [1])
    assert (due.kind, due.to_buckets) == ("full", 2)
    (due,) = half_way(orders, [1], [1], change_buckets=8)
    assert (due.to_buckets, due.why) == (2, "its changes have 8 buckets, its base 2, and joins shuffle")
    (due,) = half_way(orders, [1], [1], rebucketing_interrupted=True)
    assert (due.to_buckets, due.why) == (
        2,
        "the change of its number of buckets to 2 was interrupted, and joins shuffle",
    )
    # A writer that began before it is a little late: the next minor takes its file along.
    (due,) = half_way(orders, [1], [0, 1])
    assert (due.kind, due.why) == ("minor", "changes have a different number of buckets, and joins shuffle")


def test_buckets_of_another_number_are_no_place_to_rewrite() -> None:
    old, new = bucket_metrics(
        [PlacedFile(True, 9, MB, ("0",), None, 0), PlacedFile(True, 9, MB, ("0",), None, 1)], [], frozenset()
    )
    assert [(one.partition, one.is_old) for one in (old, new)] == [(("0",), False), (("0",), True)]


def test_what_the_catalog_says_counts() -> None:
    layout = Layout(8, "id", ("day",), ("id",))
    assert count_buckets(("day", "bucket(32, id)"), layout) == 32
    assert count_buckets(("day", "bucket(32, other)"), layout) == 8
    assert count_buckets(("day",), layout) == count_buckets((), layout) == count_buckets(None, layout) == 8
    assert count_buckets(("bucket(3, id)",), Layout(0, "id")) == 0


def test_settings() -> None:
    given = parse_settings("orders", {"target_bucket_size": "1 GB", "parallelism": 64}, "auto")
    assert (given.target_bucket_bytes, given.parallelism, given.buckets) == (GB, 64, None)
    assert parse_settings("orders", None, 16).buckets == 16
    with pytest.raises(ConfigError, match="parallelism is 0"):
        parse_settings("orders", {"parallelism": 0})
    with pytest.raises(ConfigError, match="set buckets=16"):
        parse_settings("orders", None, 10)
