"""The interval of a batch: as SQL for each type of event time, and what cannot be one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.assignment import mismatches
from dbt_arctic.refresh.event_time import Interval, batch_interval, refuse_pull

DAY = Interval.of("At", "2020-01-01T00:00:00+00:00", "2020-01-02T00:00:00Z")


@pytest.mark.parametrize(
    ("type_", "start", "end"),
    [
        ("timestamp", "TIMESTAMP '2020-01-01 00:00:00+00:00'", "TIMESTAMP '2020-01-02 00:00:00+00:00'"),
        ("timestamp_ntz", "TIMESTAMP_NTZ '2020-01-01 00:00:00'", "TIMESTAMP_NTZ '2020-01-02 00:00:00'"),
        ("date", "DATE '2020-01-01'", "DATE '2020-01-02'"),
    ],
)
def test_its_ends_have_the_type_of_the_column(type_: str, start: str, end: str) -> None:
    assert DAY.condition("m", [("id", "bigint"), ("at", type_)]) == f"`at` >= {start} AND `at` < {end}"


@pytest.mark.parametrize(
    ("type_", "first", "last"),
    [("date", 18262, 18262), ("timestamp", 1577836800_000000, 1577923199_999999)],
)
def test_its_ends_as_iceberg_stores_them_are_both_in_it(type_: str, first: int, last: int) -> None:
    assert DAY.stored_range(type_) == (first, last)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ([("id", "bigint")], "its columns are: id"),
        ([("at", "bigint")], "of type bigint"),
        ([("at", "string")], "of type string"),
    ],
)
def test_a_column_that_holds_no_time_is_refused(columns: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        DAY.condition("m", columns)


def test_its_name_may_be_in_backticks() -> None:
    """dbt puts the event time of an upstream into SQL as it is, so a name with a space needs them there."""
    day = Interval.of("`the ``at`", DAY.start, DAY.end)
    assert day.condition("m", [("The `at", "date")]).startswith("`The ``at` >= DATE '2020-01-01'")
    assert day.is_local([("The `at", "date")])


def test_days_have_no_hours() -> None:
    hour = Interval.of("at", "2020-01-01T23:00:00Z", "2020-01-02T00:00:00Z")
    assert hour.condition("m", [("at", "timestamp")])
    with pytest.raises(ConfigError, match="is a date, but the batches are hours"):
        hour.condition("m", [("at", "date")])


TIMES = ("date", "timestamp", "timestamp_ntz")


def instant(local: datetime, zone: str) -> datetime:
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)


def in_batch(local: datetime, type_: str, zone: str, batch: Interval) -> bool:
    at = instant(local, zone) if type_ == "timestamp" else local.replace(tzinfo=timezone.utc)
    return batch.start <= at < batch.end


def in_session(zone: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """The only query of a check, as Spark answers it."""

    def answer(sql: str) -> list[tuple[Any, ...]]:
        pairs = re.findall(r"CAST\(DATE '(.+?)' AS TIMESTAMP\) >= TIMESTAMP '(.+?)'", sql)
        assert len(pairs) == 2
        kept = [instant(datetime.fromisoformat(day), zone) >= datetime.fromisoformat(at) for day, at in pairs]
        return [(zone, all(kept))]

    return answer


def is_accepted(produced: str, stored: str, zone: str, batch: Interval) -> bool:
    """Whether a batch of one type is written to a table of another."""
    if mismatches("at", produced, stored):
        return False
    try:
        batch.require_same_batches("m", [("at", produced)], [("id", "int"), ("AT", stored)], in_session(zone))
    except SchemaChanged:
        return False
    return True


@pytest.mark.parametrize("first", [datetime(2020, 1, 1), datetime(2024, 3, 30), datetime(2024, 10, 27)])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Europe/London", "America/New_York", "Asia/Beirut"])
@pytest.mark.parametrize("stored", TIMES)
@pytest.mark.parametrize("produced", TIMES)
def test_a_row_that_is_stored_is_in_the_same_batch_by_both_types(
    produced: str, stored: str, zone: str, first: datetime
) -> None:
    """Refused are types that a table does not store, and those with which a row is in another batch."""
    step = 24 if produced == "date" else 1
    for day in range(3):
        batch = Interval.of("At", first + timedelta(day), first + timedelta(day + 1))
        moments = [first + timedelta(day - 2, hours=hour) for hour in range(0, 120, step)]
        is_same = all(
            in_batch(at, produced, zone, batch) == in_batch(at, stored, zone, batch) for at in moments
        )
        is_exact = produced in (stored, "date")
        assert is_accepted(produced, stored, zone, batch) == (is_exact and is_same)


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        ([("id", "int")], "does not have"),
        ([("at", "string")], "stores as string"),
        ([("at", "void")], "as void"),
    ],
)
def test_a_table_without_a_time_has_no_batches(stored: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(SchemaChanged, match=told):
        DAY.require_same_batches("m", [("at", "date")], stored, in_session("UTC"))


def test_a_date_that_is_stored_in_another_batch_is_refused_with_the_reason() -> None:
    with pytest.raises(SchemaChanged, match=r"midnight in Asia/Beirut.*before midnight in UTC") as told:
        DAY.require_same_batches("m", [("at", "date")], [("at", "timestamp")], in_session("Asia/Beirut"))
    assert "--full-refresh --select m" in str(told.value)


def test_its_ends_are_in_utc_whatever_the_zone_they_are_given_in() -> None:
    berlin = datetime(2020, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert Interval.of("at", berlin, datetime(2020, 1, 2)) == Interval.of("at", "2020-01-01", "2020-01-02")


def model(**config: Any) -> dict[str, Any]:
    return {"name": "m", "config": {"event_time": "at", **config}}


def test_only_microbatch_has_batches_and_it_always_does() -> None:
    assert batch_interval(model()) is None
    with pytest.raises(ConfigError, match="without a batch"):
        batch_interval(model(incremental_strategy="microbatch"))


def test_a_batch_and_an_automatic_model_do_not_pull() -> None:
    refuse_pull(model(incremental_strategy="append"))
    with pytest.raises(ConfigError, match="microbatch"):
        refuse_pull(model(incremental_strategy="microbatch"))
    automatic = {"materialized": "incremental", "incremental_strategy": "auto"}
    for config in (automatic, {"materialized": "materialized_view"}):
        with pytest.raises(ConfigError, match=r"write ref\(\) instead"):
            refuse_pull(model(**config))
