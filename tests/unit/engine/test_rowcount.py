"""Which metrics of a write are requested from the JVM; `tests/spark/engine` checks the numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.engine.rowcount import written_rows


class Plan:
    """An executed command with metrics, as py4j presents it. ``requested`` are those that were read."""

    def __init__(self, name: str, metrics: dict[str, int]) -> None:
        self._name = name
        self._values = metrics
        self.requested: list[str] = []

    def getClass(self) -> Any:  # noqa: N802  # Java's
        return SimpleNamespace(getSimpleName=lambda: self._name)

    def metrics(self) -> Any:
        return SimpleNamespace(get=self._get, isEmpty=lambda: not self._values)

    def children(self) -> Any:
        return SimpleNamespace(iterator=lambda: SimpleNamespace(hasNext=lambda: False))

    def _get(self, name: str) -> Any:
        self.requested.append(name)
        value = self._values.get(name)
        return SimpleNamespace(
            isDefined=lambda: value is not None, get=lambda: SimpleNamespace(value=lambda: value)
        )


MANY = {f"metric{number}": number for number in range(20)}


@pytest.mark.parametrize(
    ("name", "metrics", "verb", "rows"),
    [
        ("AppendDataExec", {"addedRecords": 7}, "INSERT", 7),
        ("AppendDataExec", {"addedRecords": 0}, "INSERT", 0),
        ("AppendDataExec", {}, "INSERT", None),
        ("WriteDeltaExec", {"addedRecords": 5}, "UPDATE", 5),
        ("WriteDeltaExec", {"addedPositionalDeletes": 5, "removedPositionalDeletes": 2}, "DELETE", 3),
        ("ReplaceDataExec", {"removedRecords": 5, "addedRecords": 2}, "DELETE", 3),
        ("ReplaceDataExec", {"removedRecords": 5, "addedRecords": 5}, "UPDATE", None),
        ("MergeRowsExec", {"addedRecords": 5}, "MERGE", None),
    ],
)
def test_rows_come_from_few_of_the_metrics(
    name: str, metrics: dict[str, int], verb: str, rows: int | None
) -> None:
    plan = Plan(name, {**MANY, **metrics})
    assert written_rows(plan, verb) == rows
    assert len(plan.requested) <= 3


def test_a_write_without_metrics_has_an_unknown_number_of_rows() -> None:
    assert written_rows(Plan("WriteDeltaExec", {}), "DELETE") is None
