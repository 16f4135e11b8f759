"""The bytes of statements, while Spark removes older executions from its store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt_arctic.engine.traffic import traffic_of

METRIC = "v2Custom_org.apache.iceberg.spark.source.metrics.TotalDataFileSize"


class Sequence:
    """A list as py4j gives it."""

    def __init__(self, entries: list[Any]) -> None:
        self.entries = entries

    def isEmpty(self) -> bool:  # noqa: N802
        return not self.entries

    def head(self) -> Any:
        return self.entries[0]

    def mkString(self, separator: str) -> str:  # noqa: N802
        return separator.join(map(str, self.entries))


class Store:
    """Executions that each ran one job of the same number and read that many bytes; oldest first.

    :param removed: how many of the oldest are removed before each look.
    """

    def __init__(self, executions: list[int], removed: list[int]) -> None:
        self.executions, self.removed = executions, removed

    def executionsCount(self) -> int:  # noqa: N802
        return len(self.executions)

    def executionsList(self, place: int, length: int) -> Sequence:  # noqa: N802
        if self.removed:
            del self.executions[: self.removed.pop(0)]
        return Sequence([self.execution(one) for one in self.executions[place : place + length]])

    def execution(self, number: int) -> Any:
        return SimpleNamespace(
            executionId=lambda: number,
            jobs=lambda: SimpleNamespace(keySet=lambda: Sequence([number])),
            metrics=lambda: Sequence([f"SQLPlanMetric(size,1,{METRIC})"]),
        )

    def executionMetrics(self, number: int) -> Sequence:  # noqa: N802
        return Sequence([f"1 -> {number}"])


def test_bytes_are_those_of_the_jobs() -> None:
    assert traffic_of(Store([1, 2, 3, 4], []), {2, 4}) == (6, 0, 2)


def test_no_execution_is_missed_or_counted_twice_while_older_ones_are_removed() -> None:
    for removed in ([1], [0, 1], [2], [1, 1], [0, 2]):
        assert traffic_of(Store([1, 2, 3, 4], list(removed)), {3, 4}) == (7, 0, 2), removed
    assert traffic_of(Store([1, 2, 3, 4], [4]), {3, 4}) == (0, 0, 2)
