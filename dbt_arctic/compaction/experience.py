"""What earlier operations took, to estimate those to come. The rates of ``plan`` are those of no machine in
particular; how many times longer an operation took here than they said corrects them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import Done
from dbt_arctic.keyed.operations import Record

OF_THE_TABLE = 5
"""Operations of one kind and table that count: the newest. A table grows, and a machine is replaced."""
OF_THE_KIND = 10
LEAST_OF_THE_KIND = 3
"""Of other tables it takes a few: one may have been the first statement of a cold Spark."""


@dataclass(frozen=True)
class Experience:
    """What earlier compactions of a table took, to correct estimates by.

    :param records: newest first. Their estimates are those of ``plan``, without any experience: else each
    correction would correct the one before.
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
        return median(others) if len(others) >= LEAST_OF_THE_KIND else 1.0

    def applied(self, operations: Sequence[Operation]) -> list[Operation]:
        """The same operations with the times that they are likely to take."""
        return [replace(one, cost_s=one.cost_s * self.factor(one)) for one in operations]

    def undone(self, done: Sequence[Done]) -> list[Done]:
        """What was done, with the estimates of ``plan``, as it is to be recorded."""
        return [
            replace(
                one,
                operation=replace(one.operation, cost_s=one.operation.cost_s / self.factor(one.operation)),
            )
            for one in done
        ]


_DONE = ("compacted", "trimmed", "rewritten")
"""Outcomes of operations that did what they were there for; others are over sooner, or later, than that."""
