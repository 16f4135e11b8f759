"""The bytes of statements, while Spark removes older executions from its store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt_arctic.engine.traffic import traffic_of

METRIC = "v2Custom_org.apache.iceberg.spark.source.metrics.TotalDataFileSize"


def sequence(entries: list[Any]) -> Any:
    """A list of Scala, as py4j gives it."""
    return SimpleNamespace(
        isEmpty=lambda: not entries,
        head=lambda: entries[0],
        mkString=lambda separator: separator.join(map(str, entries)),
    )


def store(executions: list[int], removed: list[int]) -> Any:
    """Executions that each ran one job of the same number and read that many bytes; oldest first.

    :param removed: how many of the oldest are removed before each look.
    """

    def execution(number: int) -> Any:
        return SimpleNamespace(
            executionId=lambda: number,
            jobs=lambda: SimpleNamespace(keySet=lambda: sequence([number])),
            metrics=lambda: sequence([f"SQLPlanMetric(size,1,{METRIC})"]),
        )

    def listed(place: int, length: int) -> Any:
        if removed:
            del executions[: removed.pop(0)]
        return sequence([execution(one) for one in executions[place : place + length]])

    return SimpleNamespace(
        executionsCount=lambda: len(executions),
        executionsList=listed,
        executionMetrics=lambda number: sequence([f"1 -> {number}"]),
    )


def test_bytes_are_those_of_the_jobs() -> None:
    assert traffic_of(store([1, 2, 3, 4], []), {2, 4}) == (6, 0, 2)


def test_no_execution_is_missed_or_counted_twice_while_older_ones_are_removed() -> None:
    for removed in ([1], [0, 1], [2], [1, 1], [0, 2]):
        assert traffic_of(store([1, 2, 3, 4], list(removed)), {3, 4}) == (7, 0, 2), removed
    assert traffic_of(store([1, 2, 3, 4], [4]), {3, 4}) == (0, 0, 2)
