"""Estimates learn from what earlier operations took, and never from their own corrections."""

from __future__ import annotations

import random
from statistics import median

import pytest

from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.retention import DEFAULT_S, longest_history
from dbt_arctic.compaction.run import OperationResult
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import Record

ORDERS, EVENTS = Name("lake", "shop", "orders"), Name("lake", "shop", "events")


def operation(kind: str = "major", name: Name = ORDERS, cost_s: float = 2.0) -> Operation:
    return Operation(kind, name, "due", cost_s, 1.0)  # type: ignore[arg-type]


def result_of(
    seconds: float,
    estimated: float = 2.0,
    kind: str = "major",
    table: Name = ORDERS,
    outcome: str = "compacted",
) -> Record:
    numbers = (estimated, seconds, 1.0, 1.0, 1, 1, 1, 1)
    return Record(0, "", kind, table.dotted, "all", "", outcome, "", *numbers)


def test_without_experience_an_estimate_stays() -> None:
    assert MeasuredDurations().applied([operation()]) == [operation()]


def test_the_median_of_the_newest_of_the_same_table_and_kind_counts() -> None:
    records = [
        result_of(6),
        result_of(60),
        result_of(10),
        result_of(8),
        result_of(7),
        result_of(9999),
        result_of(9999),
    ]
    others = [result_of(500, kind="full"), result_of(500, table=EVENTS), result_of(1, outcome="failed")]
    learned = MeasuredDurations([*others, *records])
    assert learned.factor(operation()) == 4.0, "6, 7, 8, 10 and 60 seconds instead of 2"
    assert learned.applied([operation(cost_s=3.0)])[0].cost_s == 12.0


def test_of_other_tables_it_takes_three() -> None:
    two = [result_of(10, table=EVENTS), result_of(12, table=EVENTS)]
    assert MeasuredDurations(two).factor(operation()) == 1.0
    assert MeasuredDurations([*two, result_of(20, table=EVENTS)]).factor(operation()) == 6.0


@pytest.mark.parametrize("outcome", ["failed", "nothing to do", "overtaken"])
def test_what_did_not_come_to_its_end_teaches_nothing(outcome: str) -> None:
    assert MeasuredDurations([result_of(50, outcome=outcome)]).factor(operation()) == 1.0


def test_what_took_no_time_or_was_not_estimated_teaches_nothing() -> None:
    assert MeasuredDurations([result_of(0), result_of(5, estimated=0)]).factor(operation()) == 1.0


def test_it_settles_on_what_operations_take_and_stays_there() -> None:
    chance, records = random.Random(1), []
    for _ in range(50):
        learned = MeasuredDurations(records)
        (planned,) = learned.applied([operation()])
        seconds = 10.0 * chance.uniform(0.9, 1.1)
        (done,) = learned.undone([OperationResult(planned, "compacted", seconds=seconds)])
        assert done.operation == operation(), "what is recorded is the estimate without experience"
        records = [result_of(seconds, done.operation.cost_s), *records]
    assert MeasuredDurations(records).applied([operation()])[0].cost_s == pytest.approx(10, rel=0.1)
    assert MeasuredDurations(records).factor(operation()) == median(one.seconds / 2.0 for one in records[:5])


def test_the_longest_history_of_any_model_is_kept() -> None:
    assert longest_history([("a", None), ("b", {"trigger": "never"})]) == DEFAULT_S
    assert longest_history([("a", {"history": "1 day"}), ("b", None)]) == 24 * 3600
    with pytest.raises(ConfigError, match="history"):
        longest_history([("a", {"history": "soon"})])
