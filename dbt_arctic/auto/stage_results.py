"""The results of the stages of a refresh, which the queries of later stages use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.value_range import Ranges, ValueRange
from dbt_arctic.planner.delta.bounds import is_ordered_as


@dataclass(frozen=True)
class StagedValues:
    """The keys or other values that a stage has found.

    :param relation: the relation of the values, for a FROM clause.
    :param count: the number of values; ``None`` if they were not counted.
    :param ranges: MIN and MAX of the columns without NULLs.
    """

    relation: str
    count: int | None = None
    ranges: Ranges = field(default_factory=dict)

    @property
    def known_count(self) -> int:
        """The number of values of a stage that counts."""
        assert self.count is not None
        return self.count

    def between(self, types: Mapping[str, str]) -> tuple[str, ...]:
        """Conditions that hold for all of the keys.

        :param types: the columns that the keys are compared with, by the same names, and their types.
        """
        return tuple(
            values.holds(quote(name))
            for name, values in self.ranges.items()
            if is_ordered_as(values, types[name])
        )


@dataclass(frozen=True)
class StageResults:
    """The results of the stages so far, by the names of stages."""

    staged: Mapping[str, StagedValues] = field(default_factory=dict)

    def also(self, stage: str, found: StagedValues) -> StageResults:
        """The results with those of one more stage."""
        return StageResults({**self.staged, stage: found})

    @property
    def ranges(self) -> dict[str, ValueRange]:
        """MIN and MAX of all key columns, as literals."""
        return {column: values for one in self.staged.values() for column, values in one.ranges.items()}


def unknown(name: str, columns: Sequence[str]) -> StagedValues:
    """A placeholder for the result of a stage that has not run."""
    ranges = {column: ValueRange(f":min_{column}", f":max_{column}") for column in columns}
    return StagedValues(f":{name}", ranges=ranges)


__all__ = ["StageResults", "StagedValues", "unknown"]
