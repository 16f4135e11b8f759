"""The relations that stand for an upstream in the statements of a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.planner.algebra.operators import State

_WHOLE: Mapping[State, State] = {"lookup_new": "new", "lookup_old": "old"}
"""Without a cache of the rows that join changed keys, all rows are read."""


@dataclass(frozen=True)
class Sources:
    """The query of each upstream at each state, for a FROM clause."""

    upstreams: Mapping[str, Upstream]

    def relation(self, source: str, state: State) -> str:
        """The rows of an upstream at a state."""
        upstream = self.upstreams[source]
        if state in _WHOLE and state not in upstream.states:
            state = _WHOLE[state]
        # An unchanged upstream is the same in both states.
        return f"(\n{upstream.states['new' if state == 'old' and not upstream.changed else state]}\n)"


__all__ = ["Sources"]
