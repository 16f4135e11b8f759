"""The result of ``dbt-arctic check``."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from dbt_arctic.human_readable import counted


class Failure(NamedTuple):
    """Why dbt could not build a node, in the first round in which it failed."""

    round: int
    why: str


class Nondeterministic(NamedTuple):
    """The most rows of a model that differ in nondeterministic columns, and why the columns are."""

    rows: int
    why: str


class ModelRound(NamedTuple):
    """A model in one round."""

    model: str
    round: int


@dataclass
class CheckReport:
    """The result of a check.

    :param models: the models that were compared and had rows in any round.
    :param refreshes: the number of refreshes of each model by kind, after its build.
    """

    models: set[str] = field(default_factory=set)
    refreshes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    rounds: int = 0
    differences: dict[ModelRound, int] = field(default_factory=dict)
    """The number of differing rows."""
    nondeterministic: dict[str, Nondeterministic] = field(default_factory=dict)
    """By model."""
    not_compared: dict[str, str] = field(default_factory=dict)
    """Models that could not be compared, and the reason. They are not in ``models``."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Nodes that dbt could not build."""
    looked_at: set[str] = field(default_factory=set)
    """Models that were compared, with rows or without."""

    @property
    def empty(self) -> set[str]:
        """Models that equal their query in every round and never had a row."""
        return self.looked_at - self.models

    @property
    def incremental(self) -> set[str]:
        """Models that were refreshed incrementally at least once."""
        return {
            model for model in self.models if model in self.refreshes and self.refreshes[model]["incremental"]
        }

    @property
    def exit_code(self) -> int:
        """1: a model differs. 2: dbt failed, or nothing was compared."""
        if self.differences:
            return 1
        return 2 if self.failures or not self.models else 0

    @property
    def last_line(self) -> str:
        """The last line of the output."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        models, rounds = counted(len(self.models), "model"), counted(self.rounds, "round")
        differences = counted(sum(self.differences.values()), "difference")
        return f"check: {models}, {len(self.incremental)} incremental, {rounds}, {differences}{failed}"
