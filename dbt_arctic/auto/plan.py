"""The plan of one refresh of an automatic model, as a value: one of a few kinds, each with its stages.

``plan_refresh`` makes it from metadata, ``dbt-arctic plan`` shows it and ``auto_run`` carries it out. Nothing
here reads a catalog or runs a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from dbt_arctic.auto.inputs import Reading, Until
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.operators import OF_CHANGES, Node, State, scans
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import Sums
from dbt_arctic.planner.auxiliary.auxiliary_view import Split
from dbt_arctic.planner.auxiliary.common_values import SharedValue
from dbt_arctic.planner.delta.plan import Guard, Incremental
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig

Action = Literal["build", "full", "incremental", "nothing"]
Schema = Callable[[str], list[ColumnInfo]]
"""The columns of a query, by analysis."""

OTHER_STATE = Reason(
    "changed-sql", "what is kept below the model is of other columns, or of other types, than before"
)
OTHER_COLUMNS = Reason(
    "changed-columns", "the model has other columns, or columns of other types, than its table"
)

_WHOLE: Mapping[State, State] = {"lookup_new": "new", "lookup_old": "old"}
"""All rows are read, because no auxiliary state keeps the rows that join with changed keys."""


@dataclass(frozen=True)
class Sources:
    """Upstreams at each state, as what may stand in a FROM clause."""

    upstreams: Mapping[str, Upstream]

    def relation(self, source: str, state: State) -> str:
        """The rows of an upstream at a state."""
        upstream = self.upstreams[source]
        if state in _WHOLE and state not in upstream.states:
            state = _WHOLE[state]
        # What has not changed is the same in both states.
        return f"(\n{upstream.states['new' if state == 'old' and not upstream.changed else state]}\n)"


@dataclass(frozen=True)
class RefreshPlan:
    """What every plan has. Each subclass is one kind of refresh, and is what is instantiated.

    :param sql: the model's own SQL over pinned versions, for a build and a full refresh.
    :param expected: what the target's last commit had consumed; ``consumed``: what this refresh consumes.
    :param hidden: the hidden columns of a model that is its own state; ``None`` where it has none.
    :param began_ms: when it began to be carried out.
    """

    model: str
    reason: Reason | None
    sql: str
    reading: Reading
    expected: Mapping[str, Consumed]
    consumed: Mapping[str, Consumed]
    hidden: HiddenColumns | None = field(default=None, kw_only=True)
    began_ms: int = field(default=0, kw_only=True)

    @property
    def action(self) -> Action:
        """What is done, as it is shown to people and written to artifacts."""
        raise NotImplementedError

    @property
    def sources(self) -> Sources:
        """What its statements read."""
        return Sources(self.reading.upstreams)

    @property
    def nodes(self) -> list[Node]:
        """Everything that an incremental refresh reads."""
        return []

    @property
    def changed(self) -> list[Upstream]:
        """The upstreams with new commits."""
        return [upstream for upstream in self.reading.upstreams.values() if upstream.changed]

    @property
    def stored_rows(self) -> int:
        """That its statements may come by, the table's own left out; -1 where one does not tell."""
        counts = [upstream.stored_rows for upstream in self.reading.upstreams.values()]
        return -1 if min(counts, default=-1) < 0 else sum(counts)

    @property
    def whole_rows(self) -> int:
        """Of the tables of which its statements may read more than what has changed; -1 where one does not
        tell.
        """
        every = (one for node in self.nodes for one in scans(node) if one.state not in OF_CHANGES)
        tables = self.reading.upstreams
        counts = [
            tables[source].rows
            for source, _ in {(one.source, one.state) for one in every}
            if source in tables
        ]
        return -1 if min(counts, default=0) < 0 else sum(counts)

    @property
    def changed_rows(self) -> int:
        """Of all upstreams together; -1 where one does not tell."""
        return rows_of(self.changed)

    @property
    def common(self) -> dict[str, Any]:
        """What every plan has, by name: for a plan of another kind."""
        return {one.name: getattr(self, one.name) for one in fields(RefreshPlan)}

    def full(self, reason: Reason) -> Full:
        """The full refresh that takes the place of this one."""
        return Full(**{**self.common, "reason": reason})


@dataclass(frozen=True)
class Build(RefreshPlan):
    """The table is made: it does not exist, or it has other columns than the model."""

    @property
    def action(self) -> Action:
        return "build"


@dataclass(frozen=True)
class Full(RefreshPlan):
    """The whole query, compared with the whole table."""

    @property
    def action(self) -> Action:
        return "full"


@dataclass(frozen=True)
class Nothing(RefreshPlan):
    """No upstream has changed."""

    @property
    def action(self) -> Action:
        return "nothing"


@dataclass(frozen=True)
class IncrementalPlan(RefreshPlan):
    """What both kinds of incremental refresh have.

    :param query: the model's SQL, understood.
    :param extremes_asked: why groups are asked for extremes, or computed anew, though their sums are kept:
        for the commit.
    :param values: what all rows share and is known, for the commit to say; ``unknown`` is to be asked for it.
    :param full_refresh_above: the share of the stored keys above which affected ones are not looked up.
    """

    query: Query
    full_refresh_above: float = field(kw_only=True)
    extremes_asked: str = field(default="", kw_only=True)
    values: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    unknown: tuple[SharedValue, ...] = field(default=(), kw_only=True)

    @property
    def action(self) -> Action:
        return "incremental"

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What is compared as a whole first: where it differs, every row may."""
        raise NotImplementedError

    def _with_guards(self, found: Sequence[Node | None]) -> list[Node]:
        states = [state for guard in self.guards for state in (guard.old, guard.new)]
        return [node for node in (*found, *states) if node is not None]


@dataclass(frozen=True)
class ByKeys(IncrementalPlan):
    """The affected keys, and the query restricted to them."""

    incremental: Incremental

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.incremental.guards

    @property
    def nodes(self) -> list[Node]:
        return self._with_guards([self.incremental.affected, self.incremental.rows])


@dataclass(frozen=True)
class BySums(IncrementalPlan):
    """The stored sums, counts and extremes are self-maintainable: the changes are added to them.

    :param incremental: the keys to fall back to, where the stored rows may turn out not to suffice.
    """

    sums: Sums
    incremental: Incremental | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.sums.guards

    @property
    def nodes(self) -> list[Node]:
        return self._with_guards(self.sums.nodes)

    def asking(self, extremes_asked: str) -> BySums:
        """The same, with the rows of groups asked for extremes."""
        return replace(self, extremes_asked=extremes_asked)

    def by_keys(self, extremes_asked: str) -> ByKeys | None:
        """The refresh by keys that takes the place of this one; ``None`` where there is none."""
        if self.incremental is None:
            return None
        return ByKeys(
            **self.common,
            query=self.query,
            incremental=self.incremental,
            full_refresh_above=self.full_refresh_above,
            extremes_asked=extremes_asked,
            values=self.values,
            unknown=self.unknown,
        )


@dataclass(frozen=True)
class OverState(RefreshPlan):
    """A query over an auxiliary table of the model's own, which is refreshed first.

    :param does: what a run does, as far as metadata tell. How the query over the state is refreshed is known
        once the state is.
    :param first: the plan whose statements are known by now: that of the state, or, where the state has
        nothing to do, that of the query over it.
    """

    state: StatePlan
    does: Action
    first: RefreshPlan

    @property
    def action(self) -> Action:
        return self.does


@dataclass(frozen=True)
class Terms:
    """What holds for every query of a model's refresh. Parameters as those of ``plan_auto``."""

    settings: str = ""
    until: Until = lambda name: None
    now: Clock | None = None


@dataclass(frozen=True)
class StatePlan:
    """The state of a model, which is refreshed before it.

    :param reading: what the model's own SQL reads.
    :param names: what the query over it may read besides, as SQL.
    :param over: the plan of the query over the state, once that is refreshed; from metadata alone.
    :param without: the plan of the model where the state cannot be kept or read.
    :param elsewhere: the plan of the model where the state turns out to have too many rows.
    """

    name: Name
    config: KeyedConfig
    split: Split
    plan: RefreshPlan
    reading: Reading
    names: Mapping[str, str]
    over: Callable[[Schema], RefreshPlan | NotOver]
    without: Callable[[Schema], RefreshPlan]
    elsewhere: Callable[[Schema], RefreshPlan]

    @property
    def is_inside(self) -> bool:
        """Whether it stands further inside the model's query, which has more to read than it."""
        return self.split.around is not None


@dataclass(frozen=True)
class NotOver:
    """A query over a state would not give what the model's query gives, or not at one version.

    :param drops: whether the state is of no use any more.
    """

    why: str = ""
    drops: bool = False


@dataclass(frozen=True)
class HiddenColumns:
    """The columns of a model that is its own state which are not the model's.

    :param without: the plan of the model where these cannot be kept.
    :param is_small: whether it has, as far as its groups tell, few rows.
    """

    names: tuple[str, ...]
    without: Callable[[Schema], RefreshPlan]
    is_small: bool = True


def rows_of(changed: Sequence[Upstream]) -> int:
    """The changed rows of upstreams together; -1 where one does not tell."""
    counts = [upstream.changed_rows for upstream in changed]
    return -1 if min(counts, default=0) < 0 else sum(counts)


def has_other_columns(plan: RefreshPlan) -> bool:
    """Whether an existing table is rebuilt because it does not have the model's columns."""
    return plan.reason is not None and plan.reason.code == OTHER_COLUMNS.code


__all__ = [
    "OTHER_COLUMNS",
    "OTHER_STATE",
    "Action",
    "Build",
    "ByKeys",
    "BySums",
    "Full",
    "HiddenColumns",
    "IncrementalPlan",
    "NotOver",
    "Nothing",
    "OverState",
    "RefreshPlan",
    "Schema",
    "Sources",
    "StatePlan",
    "Terms",
    "has_other_columns",
    "rows_of",
]
