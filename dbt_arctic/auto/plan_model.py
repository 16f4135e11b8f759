"""Plans the refresh of an automatic model: its own table, its auxiliary view, its hidden columns.

``plan_refresh`` creates the plan. The other functions create the plan that follows if a condition does not
hold, and that of the query over a refreshed auxiliary view. ``run_refresh`` calls them between two
executions. This module does not know about dbt, and runs no statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from dbt_arctic.auto.auxiliary_tables import find_state, is_free
from dbt_arctic.auto.auxiliary_view import Planners, plan_query_over, plan_state
from dbt_arctic.auto.cached_columns import can_match_by_name, is_of_same_query, keeps_its_columns
from dbt_arctic.auto.decided_order import with_decided_order
from dbt_arctic.auto.hidden_columns import build_with_hidden_columns, plan_with_hidden_columns
from dbt_arctic.auto.plan import OTHER_COLUMNS, CannotUseView, HiddenColumns, RefreshPlan, StatePlan
from dbt_arctic.auto.plan_table import RefreshHistory, choose_refresh
from dbt_arctic.auto.recorded_values import known_values
from dbt_arctic.auto.refresh_request import DEFAULT_PARAMETERS, RefreshParameters, Request, Schema, inputs_of
from dbt_arctic.auto.requests_after_build import with_later_requests
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.auto.timings import timings
from dbt_arctic.auto.verification_log import unrepaired
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import consumed_versions, is_written_to
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import same_columns
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.batch import require_distinct_names
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.upsert import check_unchanged_config
from dbt_arctic.store.state import find_keyed, load_change


def plan_refresh(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    *,
    rebuild: bool = False,
    terms: RefreshParameters = DEFAULT_PARAMETERS,
) -> RefreshPlan:
    """Plan a refresh. A table whose columns differ from the model's is rebuilt.

    :param schema: returns the columns of a query, by Spark's analysis; without it, the SQL text is used.
    """
    sql = with_decided_order(catalog, name, config, sql, terms.in_effect, terms.until)
    request = Request(name, config, sql, terms)
    table = None if rebuild else find_keyed(catalog, name)
    # Several steps need the columns of the same query, and Spark takes long to analyse a large one.
    analysed = None if schema is None else cache(schema)
    found = with_later_requests(_planned(catalog, request, analysed, rebuild=rebuild), config)
    if found.action == "build" and table is not None:
        return found.because(OTHER_COLUMNS)
    return found


def plan_over_state(catalog: CatalogReader, state: StatePlan, schema: Schema) -> RefreshPlan | CannotUseView:
    """Plan the query over an auxiliary view that has been refreshed, by the view's commit."""
    outer = plan_query_over(catalog, state, schema, _PLANNERS)
    return outer if isinstance(outer, CannotUseView) else with_later_requests(outer, state.request.config)


def plan_without_state(catalog: CatalogReader, state: StatePlan, schema: Schema) -> RefreshPlan:
    """The plan of a model whose state cannot be kept or read: as if it had none."""
    plan = _PLANNERS.without(state.view)
    alone = plan(catalog, state.request, schema, rebuild=state.rebuild, of_state=state.place > 1)
    return with_later_requests(alone, state.request.config)


def plan_with_other_state(catalog: CatalogReader, state: StatePlan, schema: Schema) -> RefreshPlan:
    """Plan a model that is built, and whose auxiliary view would have too many rows."""
    alone = _alone(catalog, state.request, schema, rebuild=True)
    other = _with_state(catalog, state.request, schema, alone, inside=False)
    return with_later_requests(other, state.request.config)


def plan_without_hidden(catalog: CatalogReader, hidden: HiddenColumns, schema: Schema) -> RefreshPlan:
    """Plan a model whose hidden columns cannot be stored."""
    plan = _plan(
        catalog,
        hidden.without,
        schema,
        rebuild=hidden.rebuild,
        made_of=hidden.made_of,
        of_state=hidden.of_state,
    )
    return with_later_requests(plan, hidden.without.config)


def _planned(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    *,
    rebuild: bool = False,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    """The plan of a model, over its next state if it has one, or gets one."""
    if unsupported_setting(request.terms.in_effect) is not None:
        # If Spark reads the text differently, SQL that is generated from it has another meaning.
        return _plan(catalog, request, schema, rebuild=rebuild)
    kept = None if rebuild else find_state(catalog, request.name, request.states + 1)
    if kept is not None and find_keyed(catalog, request.name) is not None:
        inputs = inputs_of(catalog, request)
        over = plan_state(catalog, request, schema, inputs, _PLANNERS)
        if over is not None:
            return over
    plan = _alone(catalog, request, schema, rebuild=rebuild, of_state=of_state, made_of=made_of)
    return _with_state(catalog, request, schema, plan)


def _with_state(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    plan: RefreshPlan,
    *,
    inside: bool = True,
) -> RefreshPlan:
    """A build with an auxiliary view, if the model gets one.

    :param plan: the plan of the model without one.
    :param inside: whether it may be a nested auxiliary view.
    """
    if plan.action != "build" or not is_free(catalog, request.name, request.states + 1):
        return plan
    # A model may have a nested auxiliary view in addition to its own sums.
    inputs = plan.inputs
    if plan.hidden is not None:
        inputs = inputs_of(catalog, request)
    for place in [True] * inside + [False] * (plan.hidden is None and not request.states):
        over = plan_state(catalog, request, schema, inputs, _PLANNERS, plan, inside=place)
        if over is not None:
            return over
    return plan


def _alone(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    *,
    rebuild: bool = False,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    """The plan of a model without a separate auxiliary view."""
    table = None if rebuild else find_keyed(catalog, request.name)
    if table is not None and table.hidden:
        if schema is not None and keeps_its_columns(catalog, table, load_change(catalog, table)):
            check_unchanged_config(request.config, table)
            with_hidden = plan_with_hidden_columns(
                catalog, request, None, table, _plan, by_name=True, of_state=of_state
            )
            if with_hidden is not None and is_of_same_query(with_hidden) and can_match_by_name(with_hidden):
                return with_hidden
        with_hidden = plan_with_hidden_columns(catalog, request, schema, table, _plan, of_state=of_state)
        if with_hidden is not None:
            return with_hidden
    found = _plan(catalog, request, schema, rebuild=rebuild, of_state=of_state, made_of=made_of)
    if found.action != "build":
        return found
    with_hidden = build_with_hidden_columns(catalog, request, schema, found.inputs, _plan, of_state=of_state)
    return found if with_hidden is None else with_hidden


def _plan(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    *,
    rebuild: bool = False,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    """The plan of a single table."""
    table = None if rebuild else find_keyed(catalog, request.name)
    change = None if table is None else load_change(catalog, table)
    if table is None or change is None:
        return choose_refresh(catalog, request, None, RefreshHistory(), of_state=of_state, made_of=made_of)
    commits = change.history()
    history = RefreshHistory(
        consumed_versions(commits),
        timings(commits),
        known_values(commits),
        is_written_to(commits),
        unrepaired(change.properties, commits),
    )

    def planned(table: KeyedTable | None, columns: Sequence[str]) -> RefreshPlan:
        return choose_refresh(
            catalog, request, table, history, columns=columns, of_state=of_state, made_of=made_of
        )

    # The columns only matter if the query is that of the last refresh, and then they are the table's.
    as_before = planned(table, table.column_names)
    if schema is None:
        return as_before
    check_unchanged_config(request.config, table)
    is_known = is_of_same_query(as_before) and keeps_its_columns(catalog, table, change)
    if is_known and can_match_by_name(as_before):
        return as_before
    found = schema(request.sql)
    require_distinct_names(request.config, found)
    produced = [(column.name, column.type) for column in found]
    same = same_columns(table.columns, produced)
    return planned(table if same else None, [column for column, _ in produced])


_PLANNERS = Planners(_plan, _planned, _alone)

__all__ = [
    "plan_over_state",
    "plan_refresh",
    "plan_with_other_state",
    "plan_without_hidden",
    "plan_without_state",
]
