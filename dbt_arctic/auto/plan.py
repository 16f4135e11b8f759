"""The plan of one refresh of an automatic model, as a value: one of a few kinds, each with its stages.

``plan_refresh`` makes it from metadata, ``dbt-arctic plan`` shows it and ``run_refresh`` executes it. Nothing
here reads a catalog or runs a statement, and no field is a function that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from dbt_arctic.auto.inputs import Reading, Until
from dbt_arctic.auto.upstream_relations import Sources
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.operators import OF_CHANGES, Node, scans
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import Sums
from dbt_arctic.planner.auxiliary.auxiliary_view import Split
from dbt_arctic.planner.auxiliary.common_values import SharedValue
from dbt_arctic.planner.delta.plan import Guard, Incremental
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import total

Action = Literal["build", "full", "incremental", "nothing"]
Schema = Callable[[str], list[ColumnInfo]]
"""The columns of a query, by analysis."""

OTHER_STATE = Reason(
    "changed-sql", "what is kept below the model is of other columns, or of other types, than before"
)
OTHER_COLUMNS = Reason(
    "changed-columns", "the model has other columns, or columns of other types, than its table"
)

STATE_RELATION = ":state"
"""What stands for a state in the text of a query over it: its rows after its refresh."""

PlanT = TypeVar("PlanT", bound="RefreshPlan")


@dataclass(frozen=True)
class Header:
    """What every plan has.

    :param sql: the model's own SQL over pinned versions, for a build and a full refresh.
    :param expected: what the target's last commit had consumed; ``consumed``: what this refresh consumes.
    :param hidden: the hidden columns of a model that is its own state; ``None`` where it has none.
    """

    model: str
    reason: Reason | None
    sql: str
    reading: Reading
    expected: Mapping[str, Consumed]
    consumed: Mapping[str, Consumed]
    hidden: HiddenColumns | None = None


@dataclass(frozen=True)
class RefreshPlan:
    """Each subclass is one kind of refresh, and is what is instantiated."""

    header: Header

    @property
    def model(self) -> str:
        return self.header.model

    @property
    def reason(self) -> Reason | None:
        return self.header.reason

    @property
    def sql(self) -> str:
        return self.header.sql

    @property
    def reading(self) -> Reading:
        return self.header.reading

    @property
    def expected(self) -> Mapping[str, Consumed]:
        return self.header.expected

    @property
    def consumed(self) -> Mapping[str, Consumed]:
        return self.header.consumed

    @property
    def hidden(self) -> HiddenColumns | None:
        return self.header.hidden

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
    def stored_rows(self) -> int | None:
        """That its statements may come by, the table's own left out; ``None`` where one does not tell."""
        counts = [upstream.stored_rows for upstream in self.reading.upstreams.values()]
        return total(counts) if counts else None

    @property
    def whole_rows(self) -> int | None:
        """Of the tables of which its statements may read more than what has changed; ``None`` where one does
        not tell.
        """
        every = (one for node in self.nodes for one in scans(node) if one.state not in OF_CHANGES)
        tables = self.reading.upstreams
        return total(
            tables[source].rows
            for source, _ in {(one.source, one.state) for one in every}
            if source in tables
        )

    @property
    def changed_rows(self) -> int | None:
        """Of all upstreams together; ``None`` where one does not tell."""
        return rows_of(self.changed)

    def because(self: PlanT, reason: Reason | None) -> PlanT:
        """The same plan for another reason."""
        return replace(self, header=replace(self.header, reason=reason))

    def full(self, reason: Reason) -> Full:
        """The full refresh that takes the place of this one."""
        return Full(replace(self.header, reason=reason))


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
            self.header,
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
class Request:
    """What is to be refreshed: every plan of a model is made from this.

    :param sql: the model's own SQL, or a query over some of its states.
    :param states: how many states that is: those that are refreshed before it.
    """

    name: Name
    config: KeyedConfig
    sql: str
    terms: Terms
    states: int = 0


@dataclass(frozen=True)
class StatePlan:
    """A state of a model, which is refreshed before it.

    :param request: the model's own, or that of the query over the states before this one.
    :param reading: what the SQL of the request reads.
    :param names: what the query over it may read besides, as SQL.
    :param rebuild: whether the model is built anew.
    :param query: the query over the state, with ``STATE_RELATION`` for the state; ``None`` where the types of
        its columns are not known before it is built.
    """

    request: Request
    name: Name
    config: KeyedConfig
    split: Split
    plan: RefreshPlan
    reading: Reading
    names: Mapping[str, str]
    rebuild: bool
    query: str | None

    @property
    def place(self) -> int:
        """Among the model's states, counted from 1."""
        return self.request.states + 1

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

    :param without: the query that takes the place of the model's where these cannot be stored.
    :param rebuild: whether the model is built anew then.
    :param made_of: the model's own SQL, where that query is made of it.
    :param of_state: whether it is one over the model's state.
    :param is_small: whether it has, as far as its groups tell, few rows.
    """

    names: tuple[str, ...]
    without: Request
    rebuild: bool
    made_of: str = ""
    of_state: bool = False
    is_small: bool = True


def rows_of(changed: Iterable[Upstream]) -> int | None:
    """The changed rows of upstreams together; ``None`` where one does not tell."""
    return total(upstream.changed_rows for upstream in changed)


def has_other_columns(plan: RefreshPlan) -> bool:
    """Whether an existing table is rebuilt because it does not have the model's columns."""
    return plan.reason is not None and plan.reason.code == OTHER_COLUMNS.code


__all__ = [
    "OTHER_COLUMNS",
    "OTHER_STATE",
    "STATE_RELATION",
    "Action",
    "Build",
    "ByKeys",
    "BySums",
    "Full",
    "Header",
    "HiddenColumns",
    "IncrementalPlan",
    "NotOver",
    "Nothing",
    "OverState",
    "RefreshPlan",
    "Request",
    "Schema",
    "StatePlan",
    "Terms",
    "has_other_columns",
    "rows_of",
]
