"""The columns of an auxiliary view of aggregates, from which the aggregates of the query are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dbt_arctic.keyed.type_categories import TypeCategory
from dbt_arctic.planner.auxiliary.null_preserving import counted_value
from dbt_arctic.planner.delta.count_distinct import counted_once
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.typing.inference import Types

ROWS = "_rows"
"""The column of an auxiliary view that counts the rows of a group."""

_EXACT = ("int", "bigint", "decimal")


@dataclass(frozen=True)
class Part:
    """The columns of an auxiliary view from which an aggregate is computed.

    :param total: the column of its sum, or of its extreme; ``None`` if it needs none.
    :param count: the column of its count; ``None`` if it needs none.
    """

    call: Literal["avg", "count", "max", "min", "sum"]
    total: str | None
    count: str | None

    @property
    def kept(self) -> str | None:
        """The column that stores the aggregate itself; ``None`` for an average."""
        return None if self.call == "avg" else self.count if self.call == "count" else self.total


class StateColumns:
    """The aggregates that an auxiliary view stores, each once even if the query uses it several times.

    :param types: the types of columns.
    """

    def __init__(self, types: Types) -> None:
        self._types = types
        self._names: dict[tuple[str, str], str] = {}
        self._distinct = 0
        self.aggregates: list[tuple[str, exp.Expression]] = [(ROWS, exp.Count(this=exp.Star()))]

    @property
    def inferred(self) -> list[str]:
        """The stored columns that the query may not contain itself: counts and extremes."""
        return [name for (kind, _), name in self._names.items() if kind != "sum"]

    def part(self, call: exp.Expression) -> Part | None:
        """The columns from which an aggregate is computed; ``None`` if it cannot be computed exactly."""
        if not isinstance(call, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
            return None
        value = call.this
        if counted_once(call) is not None:
            self._distinct += 1
            self.aggregates.append((f"_distinct_{self._distinct}", call))
            return Part("count", None, self.aggregates[-1][0])
        if isinstance(value, exp.Distinct) or call.args.get("expressions"):
            return None
        if isinstance(call, exp.Min | exp.Max):
            if not self._types.is_ordered(value):
                return None
            # If MIN equals MAX, the count says how many rows have the value, so some of them may leave.
            self._stored("count", exp.Count, value)
            low, high = self._stored("min", exp.Min, value), self._stored("max", exp.Max, value)
            return Part("min", low, None) if isinstance(call, exp.Min) else Part("max", high, None)
        if isinstance(call, exp.Count):
            constant = isinstance(value, exp.Star | exp.Literal)
            return Part("count", None, ROWS if constant else self._stored("count", exp.Count, value))
        if not _sums_exactly(call, self._types.category(value)):
            return None
        total = self._stored("sum", exp.Sum, value)
        counted = counted_value(value, self._types)
        counter = ROWS if isinstance(value, exp.Literal) else self._stored("count", exp.Count, counted)
        return Part("sum" if isinstance(call, exp.Sum) else "avg", total, counter)

    def _stored(
        self, kind: str, function: type[exp.Count | exp.Sum | exp.Min | exp.Max], value: exp.Expression
    ) -> str:
        """The name of the column with this aggregate of ``value``."""
        known = self._names.get((kind, to_sql(value)))
        if known is None:
            known = f"_{kind}_{1 + sum(1 for one, _ in self._names if one == kind)}"
            self._names[kind, to_sql(value)] = known
            self.aggregates.append((known, function(this=value)))
        return known


def _sums_exactly(call: exp.Expression, sort: TypeCategory) -> bool:
    return sort in (("int", "decimal") if isinstance(call, exp.Avg) else _EXACT)
