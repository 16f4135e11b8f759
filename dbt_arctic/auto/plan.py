"""The plan of one refresh of an automatic model, as a value: one of a few kinds, each with its stages.

``plan_refresh`` creates it from metadata, ``dbt-arctic plan`` shows it and ``run_refresh`` executes it.
Nothing here reads a catalog or runs a statement, and no field is a function that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.refresh_request import Request
from dbt_arctic.auto.requested_states import RecordedRequests
from dbt_arctic.auto.upstream_relations import Sources
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.operators import OF_CHANGES, Node, scans
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import SummaryDelta
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView
from dbt_arctic.planner.auxiliary.shared_values import SharedValue
from dbt_arctic.planner.delta.plan import Guard, Incremental
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import total

Action = Literal["build", "full", "incremental", "nothing"]

OTHER_STATE = Reason("changed-sql", "the auxiliary view has other columns or types than before")
OTHER_COLUMNS = Reason(
    "changed-columns", "the model has other columns, or columns of other types, than its table"
)

STATE_RELATION = ":state"
"""The name that stands for an auxiliary view in the text of a query over it: its rows after its refresh."""

PlanT = TypeVar("PlanT", bound="RefreshPlan")


@dataclass(frozen=True)
class Header:
    """The common part of all plans.

    :param sql: the model's own SQL over pinned versions, for a build and a full refresh.
    :param last_consumed: the versions that the target's last commit consumed.
    :param consumed: the versions that this refresh consumes.
    :param hidden: the hidden columns of a model that stores auxiliary columns; ``None`` if it has none.
    :param later_requests: the states of upstreams that later refreshes will request, if the commit records
        them.
    """

    model: str
    reason: Reason | None
    sql: str
    inputs: ModelInputs
    last_consumed: Mapping[str, Consumed]
    consumed: Mapping[str, Consumed]
    hidden: HiddenColumns | None = None
    later_requests: Mapping[Name, RecordedRequests] = field(default_factory=dict)


@dataclass(frozen=True)
class RefreshPlan:
    """The base class of plans. Each subclass is one kind of refresh."""

    header: Header

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.header.model

    @property
    def reason(self) -> Reason | None:
        """Why the refresh is of this kind; ``None`` if there is no special reason."""
        return self.header.reason

    @property
    def sql(self) -> str:
        """The model's own SQL over pinned versions."""
        return self.header.sql

    @property
    def inputs(self) -> ModelInputs:
        """What the model's SQL reads."""
        return self.header.inputs

    @property
    def last_consumed(self) -> Mapping[str, Consumed]:
        """The versions that the target's last commit consumed."""
        return self.header.last_consumed

    @property
    def consumed(self) -> Mapping[str, Consumed]:
        """The versions that this refresh consumes."""
        return self.header.consumed

    @property
    def hidden(self) -> HiddenColumns | None:
        """The hidden columns of the model's table; ``None`` if it has none."""
        return self.header.hidden

    @property
    def action(self) -> Action:
        """The kind of refresh, as it is displayed and written to artifacts."""
        raise NotImplementedError

    @property
    def sources(self) -> Sources:
        """The relations that its statements read."""
        return Sources(self.inputs.upstreams)

    @property
    def nodes(self) -> list[Node]:
        """All trees that an incremental refresh reads."""
        return []

    @property
    def changed(self) -> list[Upstream]:
        """The upstreams with new commits."""
        return [upstream for upstream in self.inputs.upstreams.values() if upstream.changed]

    @property
    def stored_rows(self) -> int | None:
        """The stored rows of upstreams that its statements may read; ``None`` if one is unknown."""
        counts = [upstream.stored_rows for upstream in self.inputs.upstreams.values()]
        return total(counts) if counts else None

    @property
    def whole_rows(self) -> int | None:
        """The rows of tables that its statements may read in full; ``None`` if one is unknown."""
        every = (one for node in self.nodes for one in scans(node) if one.state not in OF_CHANGES)
        tables = self.inputs.upstreams
        return total(
            tables[source].rows
            for source, _ in {(one.source, one.state) for one in every}
            if source in tables
        )

    @property
    def changed_rows(self) -> int | None:
        """The changed rows of all upstreams together; ``None`` if one is unknown."""
        return rows_of(self.changed)

    def because(self: PlanT, reason: Reason | None) -> PlanT:
        """The same plan with another reason."""
        return replace(self, header=replace(self.header, reason=reason))

    def full(self, reason: Reason) -> Full:
        """The full refresh that replaces this plan."""
        return Full(replace(self.header, reason=reason))


@dataclass(frozen=True)
class Build(RefreshPlan):
    """Create the table, because it does not exist, or has other columns than the model."""

    @property
    def action(self) -> Action:
        return "build"


@dataclass(frozen=True)
class Full(RefreshPlan):
    """Compare the result of the whole query with the whole table."""

    @property
    def action(self) -> Action:
        return "full"


@dataclass(frozen=True)
class Nothing(RefreshPlan):
    """Do nothing, because no upstream has changed."""

    @property
    def action(self) -> Action:
        return "nothing"


@dataclass(frozen=True)
class IncrementalPlan(RefreshPlan):
    """The common part of both kinds of incremental refresh.

    :param query: the model's SQL as operators.
    :param recompute_reason: why extremes are recomputed although sums are stored; recorded in the commit.
    :param values: known values that all rows share; recorded in the commit.
    :param unknown: shared values that are to be computed.
    :param full_refresh_above: the share of the stored keys above which affected keys are not looked up.
    """

    query: Query
    full_refresh_above: float = field(kw_only=True)
    recompute_reason: str = field(default="", kw_only=True)
    values: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    unknown: tuple[SharedValue, ...] = field(default=(), kw_only=True)

    @property
    def action(self) -> Action:
        return "incremental"

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The guards that are compared first. If one differs, every row may have changed."""
        raise NotImplementedError

    def _with_guards(self, found: Sequence[Node | None]) -> list[Node]:
        states = [state for guard in self.guards for state in (guard.old, guard.new)]
        return [node for node in (*found, *states) if node is not None]


@dataclass(frozen=True)
class ByKeys(IncrementalPlan):
    """Compute the affected keys, and the query restricted to them."""

    incremental: Incremental

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.incremental.guards

    @property
    def nodes(self) -> list[Node]:
        return self._with_guards([self.incremental.affected, self.incremental.rows])


@dataclass(frozen=True)
class BySummaryDelta(IncrementalPlan):
    """Add the delta to stored sums, counts and extremes, which are self-maintainable (Quass et al. 1996).

    :param incremental: the refresh by keys to fall back to, if the stored rows may not suffice.
    """

    summary_delta: SummaryDelta
    incremental: Incremental | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.summary_delta.guards

    @property
    def nodes(self) -> list[Node]:
        return self._with_guards(self.summary_delta.nodes)

    def recomputing(self, recompute_reason: str) -> BySummaryDelta:
        """The same plan, with extremes recomputed from the rows of groups."""
        return replace(self, recompute_reason=recompute_reason)

    def by_keys(self, recompute_reason: str) -> ByKeys | None:
        """The refresh by keys that replaces this plan; ``None`` if there is none."""
        if self.incremental is None:
            return None
        return ByKeys(
            self.header,
            query=self.query,
            incremental=self.incremental,
            full_refresh_above=self.full_refresh_above,
            recompute_reason=recompute_reason,
            values=self.values,
            unknown=self.unknown,
        )


@dataclass(frozen=True)
class OverState(RefreshPlan):
    """Refresh the model's auxiliary view, and then the query over it.

    :param does: the kind of refresh, as far as metadata determine it. How the query over the view is
        refreshed is only known after the view's refresh.
    :param first: the plan whose statements are known now: that of the auxiliary view, or that of the query
        over it if the view needs no refresh.
    """

    state: StatePlan
    does: Action
    first: RefreshPlan

    @property
    def action(self) -> Action:
        return self.does


@dataclass(frozen=True)
class StatePlan:
    """A state of a model, which is refreshed before it.

    :param request: the request of the model, or that of the query over the states before this one.
    :param names: the other relations that the query over the state may read, as SQL.
    :param rebuild: whether the model is rebuilt.
    :param query: the query over ``STATE_RELATION``; ``None`` if its types are unknown before the build.
    """

    request: Request
    name: Name
    config: KeyedConfig
    view: AuxiliaryView
    plan: RefreshPlan
    inputs: ModelInputs
    names: Mapping[str, str]
    rebuild: bool
    query: str | None

    @property
    def place(self) -> int:
        """The position among the model's states, counted from 1."""
        return self.request.states + 1

    @property
    def is_inside(self) -> bool:
        """Whether it is a nested auxiliary view, so that the query over it also reads other relations."""
        return self.view.around is not None


@dataclass(frozen=True)
class CannotUseView:
    """A query over the auxiliary view cannot replace the model's query, or not at one version.

    :param drops: whether the auxiliary view is of no further use.
    """

    why: str = ""
    drops: bool = False


@dataclass(frozen=True)
class HiddenColumns:
    """The hidden columns of a model's own table.

    :param without: the request that replaces the model's if these columns cannot be stored.
    :param rebuild: whether the model is rebuilt in this case.
    :param made_of: the model's own SQL, if that request's SQL was generated from it.
    :param of_state: whether it is a query over the model's auxiliary view.
    :param has_few_rows: whether its groups show that the table has few rows.
    """

    names: tuple[str, ...]
    without: Request
    rebuild: bool
    made_of: str = ""
    of_state: bool = False
    has_few_rows: bool = True


def rows_of(changed: Iterable[Upstream]) -> int | None:
    """The changed rows of upstreams together; ``None`` if one is unknown."""
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
    "BySummaryDelta",
    "CannotUseView",
    "Full",
    "Header",
    "HiddenColumns",
    "IncrementalPlan",
    "Nothing",
    "OverState",
    "RefreshPlan",
    "StatePlan",
    "has_other_columns",
    "rows_of",
]
