"""Corrects estimates by the durations of earlier operations. Pure functions.

The rates in ``plan`` are not those of any specific machine. The ratio between the actual and the estimated
durations on this machine corrects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import OperationResult
from dbt_arctic.keyed.operations import Record

OF_THE_TABLE = 5
"""The number of newest operations of the same kind and table that are used. Tables grow, and machines are
replaced.
"""
OF_THE_KIND = 10
MIN_SAMPLES = 3
"""Minimum number of operations of other tables: a single one may have been the first statement of a cold
Spark.
"""


@dataclass(frozen=True)
class MeasuredDurations:
    """The durations of earlier compactions of a table, used to correct estimates.

    :param records: newest first. Their estimates are the uncorrected ones of ``plan``. Otherwise each
        correction would correct the previous one.
    """

    records: Sequence[Record] = ()

    def factor(self, operation: Operation) -> float:
        """The median ratio of actual to estimated duration of similar operations; 1.0 if unknown."""
        ratios = [
            (one.table_name, one.seconds / one.estimated_s)
            for one in self.records
            if one.kind == operation.kind and one.outcome in _DONE and one.seconds > 0 and one.estimated_s > 0
        ]
        own = [ratio for table, ratio in ratios if table == operation.name.dotted][:OF_THE_TABLE]
        if own:
            return median(own)
        others = [ratio for _, ratio in ratios][:OF_THE_KIND]
        return median(others) if len(others) >= MIN_SAMPLES else 1.0

    def applied(self, operations: Sequence[Operation]) -> list[Operation]:
        """The operations with corrected durations."""
        return [replace(one, cost_s=one.cost_s * self.factor(one)) for one in operations]

    def undone(self, done: Sequence[OperationResult]) -> list[OperationResult]:
        """Finished operations with the uncorrected estimates of ``plan``, as they are recorded."""
        return [
            replace(
                one,
                operation=replace(one.operation, cost_s=one.operation.cost_s / self.factor(one.operation)),
            )
            for one in done
        ]


_DONE = ("compacted", "trimmed", "rewritten")
"""Outcomes of operations that did their work. The duration of others is not representative."""
