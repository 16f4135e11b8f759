"""An automatic model from end to end: its plan, and what carries it out.

The adapter and the benchmarks call the same two functions. Nothing here knows dbt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.log import consumed_versions, is_written_to
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.moment import Clock
from dbt_arctic.refresh import select_lists
from dbt_arctic.refresh.asked import note_asked, will_ask
from dbt_arctic.refresh.auto import AutoPlan, Terms, plan_auto
from dbt_arctic.refresh.auto_beside import build_beside, plan_beside, run_beside
from dbt_arctic.refresh.auto_inside import is_of_few
from dbt_arctic.refresh.auto_run import refresh_auto, require_incremental
from dbt_arctic.refresh.auto_state import (
    OTHER_COLUMNS,
    OTHER_STATE,
    Schema,
    drop_lost_state,
    find_state,
    is_free,
    owner_of_state,
    plan_state,
    run_over_state,
)
from dbt_arctic.refresh.batch import require_distinct_names
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.edge import Choice, Edge, Outcome
from dbt_arctic.refresh.evolve import same_columns
from dbt_arctic.refresh.known import is_of_same_query, keeps_its_columns, tells_columns_apart
from dbt_arctic.refresh.reading import Until, read, unsupported_setting
from dbt_arctic.refresh.state import find_keyed, load_change, load_keyed, stored_rows
from dbt_arctic.refresh.timings import note, timings
from dbt_arctic.refresh.upsert import check_unchanged_config
from dbt_arctic.refresh.values import known_values


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
) -> AutoPlan:
    """What a refresh would do. A table with other columns than the model's is built anew.

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
) -> AutoPlan:
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
    plan: AutoPlan,
    *,
    inside: bool = True,
) -> AutoPlan:
    """A build with the state that the model gets, if it gets one.

    :param plan: of the model without one. :param inside: whether it may be one further inside the query.
    """
    if plan.action != "build" or not is_free(catalog, name):
        return plan
    # A state further inside is the model's besides its own sums.
    reading = plan.reading if plan.beside is None else read(catalog, name, sql, {}, terms.until)
    for place in [True] * inside + [False] * (plan.beside is None):
        over = plan_state(
            catalog, name, config, sql, schema, reading, _plan, _alone, terms, plan, inside=place
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
) -> AutoPlan:
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
) -> AutoPlan:
    table = None if rebuild else find_keyed(catalog, name)
    change = None if table is None else load_change(catalog, table)
    history = [] if change is None else change.history()

    def planned(table: KeyedTable | None, columns: Sequence[str] | None) -> AutoPlan:
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


def run_refresh(
    edge: Edge,
    name: Name,
    config: KeyedConfig,
    plan: AutoPlan,
    *,
    owner: str,
    comment: str = "",
    column_comments: Mapping[str, str] | None = None,
) -> Outcome:
    """Carry a plan out: a build, a full refresh, an incremental one, or nothing.

    :raises SchemaChanged: ``on_schema_change: fail``, and the model has other columns than its table.
    :raises ConfigError: ``auto: strict``, and the plan is a full refresh of a table that is there.
    """
    _require_wanted(config, plan)
    # The plan of a model over a state is the state's, and may read less than the query over it.
    reading = plan.reading if plan.state is None else plan.state.reading
    with select_lists.over(edge, (reading.tree, *reading.trees.values())):
        return _run(edge, name, config, plan, owner, comment, column_comments)


def _run(
    edge: Edge,
    name: Name,
    config: KeyedConfig,
    plan: AutoPlan,
    owner: str,
    comment: str,
    column_comments: Mapping[str, str] | None,
) -> Outcome:
    def run(of: Name, with_config: KeyedConfig, one: AutoPlan) -> Outcome:
        if one.beside is not None:
            return run_beside(edge, of, with_config, one, _plan, run_one)
        return run_one(of, with_config, one)

    def run_one(of: Name, with_config: KeyedConfig, one: AutoPlan) -> Outcome:
        if one.action != "build":
            table = load_keyed(edge.catalog, of)
            return refresh_auto(edge, of, table, with_config, one, _rows(edge, one, table))
        mine, began_ms = of == name, edge.now_ms()
        _, outcome = build_generation(
            edge,
            of,
            with_config,
            one.sql,
            one.consumed,
            owner=owner if mine else owner_of_state(name),
            comment=comment if mine else f"The state of {name.identifier}, kept by its refresh",
            column_comments=column_comments if mine else None,
            hidden=one.beside.hidden if one.beside else (),
            notes={**note("full", began_ms), **note_asked(will_ask(one.reading, with_config))},
        )
        told = one.reason.code if one.reason and has_other_columns(one) else "build"
        return replace(outcome, message=f"FULL ({outcome.message})", choice=Choice("full", told))

    if plan.state is not None and plan.action == "build" and not is_of_few(edge, plan.state):
        sql, terms, schema = plan.state.model_sql, plan.state.terms, edge.query_schema
        alone = _alone(edge.catalog, name, config, sql, schema, terms, rebuild=True)
        alone = replace(alone, reason=plan.reason)
        plan = _with_state(edge.catalog, name, config, sql, schema, terms, alone, inside=False)
    if plan.state is None:
        outcome = run(name, config, plan)
        changed = plan.reason is not None and plan.reason.code == "changed-sql"
        if plan.action == "build" or changed:
            drop_lost_state(edge, name)
        return outcome
    return run_over_state(edge, name, config, plan, _plan, _alone, run)


def has_other_columns(plan: AutoPlan) -> bool:
    """Whether a table that is there is built anew, because it does not have the model's columns."""
    return plan.reason is not None and plan.reason.code == OTHER_COLUMNS.code


def _require_wanted(config: KeyedConfig, plan: AutoPlan) -> None:
    if plan.reason is OTHER_STATE:
        require_incremental(plan, config)
    if not has_other_columns(plan):
        return
    if config.on_schema_change == "fail":
        assert plan.reason is not None
        raise SchemaChanged(
            plan.reason.what,
            where=config.model,
            why="on_schema_change is 'fail'; without it, such an automatic model is built anew",
            fix=f"dbt run --full-refresh --select {config.model}",
        )
    require_incremental(plan, config)


def _rows(edge: Edge, plan: AutoPlan, table: KeyedTable) -> int:
    """How many rows our own statements of a refresh may come by; -1: not known, or there are none."""
    small_state = plan.reason is not None and plan.reason.code == "small"
    if plan.stored_rows < 0 or not (plan.action == "incremental" or small_state):
        return -1
    own = stored_rows(edge.catalog, table)
    return -1 if own < 0 else own + plan.stored_rows
