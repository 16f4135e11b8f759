"""What the planner of each kind of source returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull

Purpose = Literal["consume", "read", "describe"]
"""Why a source is pulled: for a commit that consumes it; to show rows; or for the text of the SQL only."""


@dataclass(frozen=True)
class Planned:
    """The rows of a source that a model reads in one run.

    :param since: what the model had consumed of the source; ``None`` if it had read nothing of it.
    :param warnings: what a run that consumes the rows shows to the user.
    """

    pull: Pull
    since: Consumed | None
    warnings: tuple[str, ...] = ()


class SourcePlanner(Protocol):
    """Plans what one model reads of one source."""

    @property
    def upstream(self) -> Name:
        """The name under which the model's commit records what it has consumed."""
        ...

    def plan(self, expected: Mapping[str, Consumed], model: str, purpose: Purpose) -> Planned:
        """Plan a run.

        :param expected: what the model has consumed, by dotted name of the upstream.
        """
        ...


__all__ = ["Planned", "Purpose", "SourcePlanner"]
