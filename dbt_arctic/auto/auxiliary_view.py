"""Auxiliary views (Quass et al. 1996): a keyed table for each, which is refreshed directly before its model.

The auxiliary view is an automatic model like any other, with a query of the planner's. The model is an
automatic model over its auxiliary view. Each has its own commit with the consumed versions, so the next run
completes an interrupted one. If the auxiliary view is lost, or cannot be kept, the model is refreshed without
it, which only takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dbt_arctic.auto.auxiliary_tables import state_name
from dbt_arctic.auto.group_counts import may_be_many
from dbt_arctic.auto.inputs import ModelInputs, analysed_query
from dbt_arctic.auto.nested_view import (
    are_together,
    as_of,
    consumed_by,
    is_refreshed,
    version_of,
    worthwhile_nested_view,
)
from dbt_arctic.auto.plan import (
    OTHER_COLUMNS,
    OTHER_STATE,
    STATE_RELATION,
    CannotUseView,
    OverState,
    RefreshPlan,
    StatePlan,
)
from dbt_arctic.auto.refresh_request import RefreshParameters, Request, Schema
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import SparkEnded, StatementError
from dbt_arctic.keyed.layout import is_bucketable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import same_columns
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.algebra.columns import expressions
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    AuxiliaryView,
    NoState,
    changes_types,
    find_auxiliary_view,
    outer_sql,
    state_sql,
    without_spare,
)
from dbt_arctic.planner.delta.exact_averages import adds_decimals, with_exact_averages
from dbt_arctic.planner.frontend.point_in_time import AsCalled
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import find_keyed, load_keyed

_LOOKS = 2
"""If another run refreshes the auxiliary view while a query over it is planned, planning is repeated up to
this often."""


class Plan(Protocol):
    """A function that plans a model without an auxiliary view."""

    def __call__(
        self,
        catalog: CatalogReader,
        request: Request,
        schema: Schema | None,
        *,
        rebuild: bool = ...,
        of_state: bool = ...,
        made_of: str = ...,
    ) -> RefreshPlan: ...


@dataclass(frozen=True)
class Planners:
    """The planners from which the plan of a model over its auxiliary view is composed.

    :param table: of one table by itself: a state, or a query that reads nothing but a state.
    :param model: of a model, which may have hidden columns and another state.
    :param alone: the same without another state.
    """

    table: Plan
    model: Plan
    alone: Plan

    def over(self, made: AuxiliaryView) -> Plan:
        """The planner for a query over an auxiliary view."""
        return self.model if made.around is not None else self.table

    def without(self, made: AuxiliaryView) -> Plan:
        """How a query is planned whose state cannot be kept or read."""
        return self.alone if made.around is not None else self.table


def plan_state(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    inputs: ModelInputs,
    planners: Planners,
    build: RefreshPlan | None = None,
    *,
    inside: bool | None = None,
) -> OverState | None:
    """The plan of a model over its auxiliary view; ``None`` if it has none, and gets none.

    :param inputs: what the query reads.
    :param build: the plan of a build without an auxiliary view, if the model is built.
    :param inside: whether it is a nested auxiliary view; ``None``: either.
    """
    if inputs.reason is not None:
        return None
    name, config = request.name, request.config
    kept = state_name(name, request.states + 1)
    table, there = find_keyed(catalog, name), find_keyed(catalog, kept)
    stored = None if table is None else table.visible.column_names
    own_columns = None if schema is None else schema(request.sql)
    columns = stored if own_columns is None else [one.name for one in own_columns]
    if own_columns is not None and not _has_key(config, own_columns):
        return None  # The write of the model is refused, and a view would be written before that.
    hides = build is None and table is not None and bool(table.hidden)
    is_next = request.states > 0
    inside = True if is_next else inside
    known = None if build else there
    made = _chosen(inputs, config, columns, known, inside=inside, hides=hides, is_next=is_next)
    if made is None:
        return None
    names = {key: upstream.name.sql for key, upstream in inputs.upstreams.items()}
    text = state_sql(made, names)
    types = None if there is None else there.types
    if build is not None:
        types = None
        if schema is not None:
            types = _types_if_worth(schema, own_columns, text, made, kept, inputs, config, names)
            if types is None:
                return None
    own = _config_of_state(catalog, inputs, config, made, there)
    # It may have other key columns, from other SQL or from an older version of dbt-arctic.
    builds = build is not None or (there is not None and there.key != made.key)
    of_state = replace(request, name=kept, config=own, sql=text)
    found = planners.table(catalog, of_state, schema, rebuild=builds)
    query = _query_over(made, types, {**inputs.upstreams, **found.inputs.upstreams})
    state = StatePlan(request, kept, own, made, found, inputs, names, rebuild=build is not None, query=query)
    if build is not None:
        return OverState(replace(build.header, hidden=None), state, "build", found)
    header = replace(found.header, model=config.model, sql=request.sql, last_consumed={}, consumed={})
    shown = OverState(header, state, found.action, found)
    if table is not None and own_columns is not None:
        produced = [(column.name, column.type) for column in own_columns]
        if not same_columns(table.visible.columns, produced):
            return replace(shown.because(OTHER_COLUMNS), does="full")
    if found.action == "nothing":
        return _of_query_over(shown, plan_query_over(catalog, state, None, planners))
    return replace(shown.because(OTHER_STATE), does="full") if found.action == "build" else shown


def _chosen(
    inputs: ModelInputs,
    config: KeyedConfig,
    columns: Sequence[str] | None,
    there: KeyedTable | None,
    *,
    inside: bool | None,
    hides: bool,
    is_next: bool,
) -> AuxiliaryView | None:
    """The query as an auxiliary view and a query over it; ``None`` if that would be of no use.

    :param there: the state that the model has. :param hides: whether its own table has hidden columns.
    :param is_next: whether the query is one over other states.
    """
    try:
        query, facts = as_called(inputs, columns)
    except CannotPlan:
        return None
    made = None
    if inside is not False:
        made = worthwhile_nested_view(query, facts, inputs, config, there, is_next=is_next)
    if made is None and not inside and not hides:
        made = _worthwhile_view(query, facts, inputs, config, hides=False)
    if made is None or changes_types(made):
        return None
    # The loss of a MIN or MAX that nothing reads would end its refreshes late.
    return without_spare(made)


def _types_if_worth(
    schema: Schema,
    own_columns: list[ColumnInfo] | None,
    text: str,
    made: AuxiliaryView,
    kept: Name,
    inputs: ModelInputs,
    config: KeyedConfig,
    names: Mapping[str, str],
) -> dict[str, str] | None:
    """The column types of an auxiliary view that is to be built.

    ``None`` if it cannot be stored, or if a query over it would return another result than the model's query.

    :param text: the query of the auxiliary view.
    """
    columns_of_state = columns_if_taken(schema, text)
    if columns_of_state is None:
        return None
    types = {column.name: column.type for column in columns_of_state}
    # A table is bucketed by one of its key columns.
    if not any(is_bucketable(types[name]) for name in made.key):
        return None
    if not _gives(own_columns, schema, text, made, types, names):
        return None
    if made.around is not None:
        own_sql = outer_sql(made, kept.sql, types, names)
        if not is_refreshed(own_sql, kept, types, made, inputs, config):
            return None
    return types


def _config_of_state(
    catalog: CatalogReader,
    inputs: ModelInputs,
    config: KeyedConfig,
    made: AuxiliaryView,
    there: KeyedTable | None,
) -> KeyedConfig:
    buckets = config.buckets
    if made.has_few_rows:
        # An existing auxiliary view keeps its buckets.
        starts_small = there is None and not may_be_many(catalog, inputs, made.state)
        buckets = 1 if starts_small else None
    return KeyedConfig(
        model=config.model,
        unique_key=made.key,
        buckets=buckets,
        auto=config.auto,
        accept=config.accept,
        declared_keys=config.declared_keys,
        full_refresh_above=config.full_refresh_above,
        lease_timeout_s=config.lease_timeout_s,
        # The query over a nested auxiliary view would otherwise look up the old rows of the view.
        before_images=True if made.around is not None else None,
    )


def _query_over(
    made: AuxiliaryView, types: Mapping[str, str] | None, upstreams: Mapping[str, Upstream]
) -> str | None:
    """The text of the query over an auxiliary view, for display.

    :param upstreams: what it reads in addition, at the versions of the auxiliary view.
    """
    if types is None:
        return None
    names = {key: f"(\n{upstream.states['new']}\n)" for key, upstream in upstreams.items()}
    try:
        return outer_sql(made, STATE_RELATION, types, names)
    except NoState:
        return None


def _of_query_over(shown: OverState, outer: RefreshPlan | CannotUseView) -> OverState | None:
    """The plan if the auxiliary view needs no refresh.

    The model may have a new query over the view, or an interrupted run may have refreshed only the view.
    """
    if isinstance(outer, CannotUseView):
        return None
    small = outer.reason is not None and outer.reason.code == "small"
    does, reason = ("incremental", None) if small else (outer.action, outer.reason)
    if shown.state.is_inside:
        header = replace(outer.header, reason=reason, sql=shown.sql, hidden=None)
        return OverState(header, shown.state, does, outer)
    return replace(shown.because(reason), does=does, first=outer)


def plan_query_over(
    catalog: CatalogReader, state: StatePlan, schema: Schema | None, planners: Planners
) -> RefreshPlan | CannotUseView:
    """The plan of the query over an auxiliary view, by the view's newest commit.

    A relation that both read is read at the same version.
    """
    table = load_keyed(catalog, state.name)
    request, plan = state.request, planners.over(state.view)
    try:
        sql = outer_sql(state.view, state.name.sql, table.types, state.names)
    except NoState as error:
        return CannotUseView(str(error), drops=True)
    for _ in range(_LOOKS):
        versions = consumed_by(catalog, table) if state.is_inside else {}
        # One of the queries over it may be run long after this one, as another state.
        pinned = {**versions, **version_of(catalog, table)} if state.is_inside else {}
        until = as_of(pinned, request.terms.until) if state.is_inside else RefreshParameters.until
        over = replace(request, sql=sql, terms=replace(request.terms, until=until), states=state.place)
        found = plan(catalog, over, schema, rebuild=state.rebuild, of_state=True)
        if not state.is_inside:
            return found
        if consumed_by(catalog, table) == versions and are_together(found, pinned):
            return found
    return CannotUseView()


def view_as_hidden_columns(
    inputs: ModelInputs, config: KeyedConfig, columns: Sequence[str]
) -> AuxiliaryView | None:
    """Split a model's query into an auxiliary view as hidden columns, and a query over it.

    ``None`` if that would be of no use. The SQL alone does not determine the case of ``columns``.
    """
    try:
        query, facts = as_called(inputs, columns)
    except CannotPlan:
        return None
    return _worthwhile_view(query, facts, inputs, config, hides=True)


def _worthwhile_view(
    query: Query, facts: Facts, inputs: ModelInputs, config: KeyedConfig, *, hides: bool
) -> AuxiliaryView | None:
    """Split a query, if its auxiliary view is worthwhile.

    :param hides: whether the view is stored as hidden columns. Then a query that maintains itself may still
        hide the columns that its extremes need.
    """
    if inputs.wrap_on_overflow and not hides and adds_decimals(query):
        return None
    query = with_exact_averages(query, in_any_mode=inputs.wrap_on_overflow)
    try:
        # A state of all rows is written by the model's key, which is then checked.
        key = query.identifiers(config.unique_key)
        require_determinism(query.node, query.types, facts, config.accept, key)
        itself = plan_summary_delta(query, config.unique_key, facts, config.accept)
        if itself is not None and not (hides and itself.extremes.keys() - itself.ends.keys()):
            return None  # The query itself is self-maintainable.
        made = find_auxiliary_view(
            query, config.unique_key, {key: one.key for key, one in inputs.upstreams.items()}
        )
    except CannotPlan:
        return None
    if made is None or changes_types(made):
        return None
    if any(part.find(TimeFunction) for node in made.above for part in expressions(node)):
        return None  # Time would change the model while its auxiliary view stays the same.
    return made


def _has_key(config: KeyedConfig, columns: Sequence[ColumnInfo]) -> bool:
    returned = {column.name.lower() for column in columns}
    return all(column.lower() in returned for column in config.unique_key)


def as_called(inputs: ModelInputs, columns: Sequence[str] | None) -> tuple[Query, Facts]:
    """A query as it runs at any time, with calls of functions of time, and with all upstreams changed.

    :param columns: the names of its columns, if they are known.

    :raises CannotPlan: with the reason.
    """
    same_time = AsCalled()
    query = analysed_query(replace(inputs, now=same_time, last=same_time), columns)
    return query, Facts({key: UpstreamFacts(True, one.key) for key, one in inputs.upstreams.items()})


def _gives(
    own: list[ColumnInfo] | None,
    schema: Schema,
    text: str,
    made: AuxiliaryView,
    types: Mapping[str, str],
    names: Mapping[str, str],
) -> bool:
    """Whether Spark accepts the query over an auxiliary view, and it has the model's columns and types."""
    try:
        return columns_if_taken(schema, outer_sql(made, f"(\n{text}\n)", types, names)) == own
    except NoState:
        return False


def columns_if_taken(schema: Schema, sql: str) -> list[ColumnInfo] | None:
    """The columns of a generated query; ``None`` if Spark does not accept it, so the model need not fail."""
    try:
        return schema(sql)
    except SparkEnded:
        raise
    except StatementError:
        return None
