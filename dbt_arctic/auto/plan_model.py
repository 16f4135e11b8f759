"""Plans the refresh of an automatic model: its own table, its auxiliary view, its hidden columns.

The adapter and the benchmarks call the same two functions. Nothing here knows dbt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dbt_arctic.auto.auxiliary_tables import find_state, is_free
from dbt_arctic.auto.auxiliary_view import plan_state
from dbt_arctic.auto.cached_columns import is_of_same_query, keeps_its_columns, tells_columns_apart
from dbt_arctic.auto.common_values import known_values
from dbt_arctic.auto.execute import run_refresh
from dbt_arctic.auto.hidden_columns import build_beside, plan_beside
from dbt_arctic.auto.inputs import Until, read, unsupported_setting
from dbt_arctic.auto.plan import OTHER_COLUMNS, RefreshPlan, Schema, Terms
from dbt_arctic.auto.plan_table import plan_auto
from dbt_arctic.auto.timings import timings
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import consumed_versions, is_written_to
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import same_columns
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.frontend.point_in_time import Clock
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
    settings: str = "",
    until: Until = lambda name: None,
    now: Clock | None = None,
) -> RefreshPlan:
    """The plan of a refresh. A table whose columns differ from the model's is rebuilt.

    :param schema: the columns of a query, by analysis; without it, as far as the SQL tells.
    :param settings: the session's settings that change what SQL means.
    :param until: the version at which a relation is read, where it is not the newest.
    :param now: what functions of time tell; without it, a model that asks for the time is refreshed in full.
    """
    table = None if rebuild else find_keyed(catalog, name)
    found = _planned(catalog, name, config, sql, schema, Terms(settings, until, now), table, rebuild=rebuild)
    if found.action == "build" and table is not None:
        return replace(found, reason=OTHER_COLUMNS)
    return found


def _planned(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    terms: Terms,
    table: KeyedTable | None,
    *,
    rebuild: bool,
) -> RefreshPlan:
    if unsupported_setting(terms.settings) is not None:
        # Where Spark reads the text in another way, SQL that is written from it would mean something else.
        return _plan(catalog, name, config, sql, schema, terms, rebuild=rebuild)
    kept = None if rebuild else find_state(catalog, name)
    if kept is not None and table is not None:
        reading = read(catalog, name, sql, {}, terms.until)
        over = plan_state(catalog, name, config, sql, schema, reading, _plan, _alone, terms)
        if over is not None:
            return over
    plan = _alone(catalog, name, config, sql, schema, terms, rebuild=rebuild)
    return _with_state(catalog, name, config, sql, schema, terms, plan)


def _with_state(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    terms: Terms,
    plan: RefreshPlan,
    *,
    inside: bool = True,
) -> RefreshPlan:
    """A build with the state that the model gets, if it gets one.

    :param plan: of the model without one. :param inside: whether it may be one further inside the query.
    """
    if plan.action != "build" or not is_free(catalog, name):
        return plan
    # A state further inside is the model's besides its own sums.
    reading = plan.reading if plan.hidden is None else read(catalog, name, sql, {}, terms.until)

    def elsewhere(schema: Schema) -> RefreshPlan:
        alone = _alone(catalog, name, config, sql, schema, terms, rebuild=True)
        return _with_state(catalog, name, config, sql, schema, terms, alone, inside=False)

    for place in [True] * inside + [False] * (plan.hidden is None):
        over = plan_state(
            catalog,
            name,
            config,
            sql,
            schema,
            reading,
            _plan,
            _alone,
            terms,
            plan,
            inside=place,
            elsewhere=elsewhere,
        )
        if over is not None:
            return over
    return plan


def _alone(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    terms: Terms,
    *,
    rebuild: bool = False,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    """The plan of a model without a state in a table of its own."""
    table = None if rebuild else find_keyed(catalog, name)
    plan = partial(_plan, of_state=of_state)
    if table is not None and table.hidden:
        if schema is not None and keeps_its_columns(catalog, table, load_change(catalog, table)):
            check_unchanged_config(config, table)
            beside = plan_beside(catalog, name, config, sql, None, table, plan, terms, by_name=True)
            if beside is not None and is_of_same_query(beside) and tells_columns_apart(beside):
                return beside
        beside = plan_beside(catalog, name, config, sql, schema, table, plan, terms)
        if beside is not None:
            return beside
    found = plan(catalog, name, config, sql, schema, terms, rebuild=rebuild, made_of=made_of)
    if found.action != "build":
        return found
    beside = build_beside(catalog, name, config, sql, schema, found.reading, plan, terms)
    return found if beside is None else beside


def _plan(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    terms: Terms,
    *,
    rebuild: bool = False,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    table = None if rebuild else find_keyed(catalog, name)
    change = None if table is None else load_change(catalog, table)
    history = [] if change is None else change.history()

    def planned(table: KeyedTable | None, columns: Sequence[str] | None) -> RefreshPlan:
        return plan_auto(
            catalog,
            name,
            table,
            consumed_versions(history),
            config,
            sql,
            settings=terms.settings,
            until=terms.until,
            columns=columns,
            of_state=of_state,
            made_of=made_of,
            took=timings(history),
            values=known_values(history),
            written_to=is_written_to(history),
            now=terms.now,
        )

    if table is None or change is None:
        return planned(None, None)
    # Columns matter only where the query is that of the last refresh, and then they are the table's.
    as_before = planned(table, table.column_names)
    if schema is None:
        return as_before
    check_unchanged_config(config, table)
    is_known = is_of_same_query(as_before) and keeps_its_columns(catalog, table, change)
    if is_known and tells_columns_apart(as_before):
        return as_before
    found = schema(sql)
    require_distinct_names(config, found)
    produced = [(column.name, column.type) for column in found]
    same = same_columns(table.columns, produced)
    return planned(table if same else None, [column for column, _ in produced])


__all__ = ["plan_refresh", "run_refresh"]
