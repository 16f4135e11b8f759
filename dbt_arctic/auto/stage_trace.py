"""Records which stages of a refresh were executed, for dbt's log and ``run_results.json``.

One trace belongs to the refresh of a model. So the stages up to a failure, after which the refresh continues
with another plan, are in the result as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from dbt_arctic.store.refresh_outcome import Outcome, StageRun


@dataclass
class Trace:
    """The executed stages of the refresh of a model, in order, and why other plans have followed.

    :param relation: the table that the recorded stages belong to.
    """

    relation: str
    stages: list[StageRun] = field(default_factory=list)
    fell_back: list[str] = field(default_factory=list)
    _done: int = 0

    def of_table(self, relation: str) -> Trace:
        """A trace that records the stages of one plan of a table after those recorded so far."""
        return Trace(relation, self.stages, self.fell_back, len(self.stages))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Record a stage with its duration, or add the duration to the last stage of this name."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._note(stage, time.monotonic() - began)

    def found(self, stage: str, rows: int | None) -> None:
        """Record how many rows a stage has found or written."""
        place = self._last(stage)
        assert place is not None, stage
        self.stages[place] = replace(self.stages[place], rows=rows)

    def inside(self, stage: str, other: str) -> None:
        """Record a stage that was part of the statement of another one."""
        place = self._last(other)
        assert place is not None, other
        self.stages.insert(place + 1, StageRun(self.relation, stage))

    def falls_back(self, when: str) -> None:
        """Record why another plan follows. Its stages are recorded separately, even under the same names."""
        self.fell_back.append(when)
        self._done = len(self.stages)

    def of(self, outcome: Outcome) -> Outcome:
        """An outcome with all stages and fallbacks that led to it."""
        return replace(outcome, stages=tuple(self.stages), fell_back=tuple(self.fell_back))

    def _note(self, stage: str, seconds: float) -> None:
        place = self._last(stage)
        if place is None:
            self.stages.append(StageRun(self.relation, stage, seconds))
        else:
            self.stages[place] = replace(
                self.stages[place], seconds=(self.stages[place].seconds or 0.0) + seconds
            )

    def _last(self, stage: str) -> int | None:
        places = [at for at in range(self._done, len(self.stages)) if self.stages[at].stage == stage]
        return places[-1] if places else None


__all__ = ["Trace"]
