"""The upstream versions that a write consumes: committed with its rows, and consumed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, encode_consumed


@dataclass(frozen=True)
class Consumption:
    """:param expected: what the target's last commit had consumed when the SQL was made.
    :param consumed: what this write consumes; empty for a model that does not pull.
    """

    expected: Mapping[str, Consumed] = field(default_factory=dict)
    consumed: Mapping[str, Consumed] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """What the commit says of it."""
        if not self.consumed:
            return {}
        return {PROPERTY_CONSUMED: encode_consumed({**self.expected, **self.consumed})}

    def check(self, target: TableState, model: str, name: Name) -> None:
        """:raises ConcurrentRun: another run of the model consumed the same changes first."""
        if self.consumed and consumed_versions(target.history()) != dict(self.expected):
            raise ConcurrentRun(
                f"another run of the model committed to {name} first",
                where=model,
                why="the changes that this run computed from were consumed meanwhile",
                fix="nothing was written; run the model again to take up what is left",
            )
