"""What the model that a thread works on pulled, from its compilation until its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull


@dataclass
class ModelPulls:
    """Pulls by model. ``expected`` is what the model's target had consumed when it was compiled."""

    _pulls: dict[str, list[Pull]] = field(default_factory=dict)
    _expected: dict[str, Mapping[str, Consumed]] = field(default_factory=dict)

    def add(self, model: str, expected: Mapping[str, Consumed], pull: Pull) -> None:
        """:param expected: as ``begun_from`` tells, where it tells anything."""
        self._pulls.setdefault(model, []).append(pull)
        self._expected.setdefault(model, expected)

    def begun_from(self, model: str) -> Mapping[str, Consumed] | None:
        """What the model's target had consumed when it made its first pull; ``None`` before that. All of its
        pulls begin there: another run may have gone on meanwhile, and the commit is to find that out.
        """
        return self._expected.get(model)

    def find(self, model: str, upstream: Name) -> list[Pull]:
        """The pulls of that upstream that the model made already: one run sees one state of it."""
        return [pull for pull in self._pulls.get(model, []) if pull.upstream == upstream]

    def upstreams(self, model: str) -> set[Name]:
        return {pull.upstream for pull in self._pulls.get(model, [])}

    def consumed(self, model: str) -> dict[str, Consumed]:
        """What the model's commit consumes, by upstream."""
        return {pull.upstream.dotted: pull.consumed for pull in self._pulls.get(model, [])}

    def expected(self, model: str) -> Mapping[str, Consumed]:
        return self._expected.get(model, {})

    def require_everything(self, model: str, where: str) -> None:
        """:raises ConcurrentRun: the model's SQL is that of changes, and its table is to be built of it."""
        if self.expected(model):
            raise ConcurrentRun(
                "the table is gone that the model was compiled to bring up to date",
                where=where,
                why="it was dropped or renamed meanwhile; built of changes, it would lack all other rows",
                fix=f"nothing was written; run the model again: dbt run --select {where}",
            )

    def nothing_new(self, model: str) -> bool:
        pulls = self._pulls.get(model, [])
        return bool(pulls) and not any(pull.changed for pull in pulls)

    def clear(self) -> list[Name]:
        """Forget everything; returns the staging tables that are no longer needed."""
        staged = [pull.stage[1] for pulls in self._pulls.values() for pull in pulls if pull.stage is not None]
        self._pulls.clear()
        self._expected.clear()
        return staged
