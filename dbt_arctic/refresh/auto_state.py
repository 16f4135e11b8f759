"""Automatic models over a state of their own: a keyed table beside the model, refreshed right before it.

The state is an automatic model like any other, with a query of the planner's; so is the model, over its
state. Each has its own commit with what it consumed, so a run that ends in between is finished by the next.
A state that is lost, or cannot be kept, costs time: then the model is refreshed as if there was none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import DuplicateKey, NullKey, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.columns import expressions
from dbt_arctic.planner.determined import check_determined
from dbt_arctic.planner.dialect import Moment
from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.moment import AsCalled, Clock
from dbt_arctic.planner.plan import Query
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.split import NoState, Split, outer_sql, split, state_sql, without_spare
from dbt_arctic.planner.sums import plan_sums
from dbt_arctic.refresh.auto import AutoPlan, StatePlan
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.edge import Choice, Edge, Outcome
from dbt_arctic.refresh.groups import may_be_many
from dbt_arctic.refresh.reading import Reading, Until, understood
from dbt_arctic.refresh.state import find_keyed, load_keyed

Schema = Callable[[str], list[ColumnInfo]]
Run = Callable[[Name, KeyedConfig, AutoPlan], Outcome]


class Plan(Protocol):
    """How a model without a state is planned."""

    def __call__(
        self,
        catalog: CatalogReader,
        name: Name,
        config: KeyedConfig,
        sql: str,
        schema: Schema | None,
        *,
        rebuild: bool = ...,
        settings: str = ...,
        until: Until = ...,
        of_state: bool = ...,
        now: Clock | None = ...,
    ) -> AutoPlan: ...


def state_name(name: Name) -> Name:
    return name.sibling(f"{name.identifier}__state")


def plan_state(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    reading: Reading,
    plan: Plan,
    build: AutoPlan | None = None,
    *,
    settings: str,
    until: Until,
    now: Clock | None,
) -> AutoPlan | None:
    """The plan of a model over its state; ``None`` where it has none, and gets none.

    :param reading: what the query reads.
    :param build: how the model would be built without a state, where it is to be built.
    """
    if reading.reason is not None:
        return None
    table = find_keyed(catalog, name)
    stored = None if table is None else table.visible.column_names
    columns = stored if schema is None else [one.name for one in schema(sql)]
    made = split_of(reading, config, columns, hides=False)
    if made is None:
        return None
    # A loss of what nobody reads would end its refreshes late.
    made = without_spare(made)
    text = state_sql(made, {key: upstream.name.sql for key, upstream in reading.upstreams.items()})
    if build is not None and schema is not None and not _is_the_same(schema, sql, text, made):
        return None
    kept = state_name(name)
    there = find_keyed(catalog, kept)
    buckets = config.buckets
    if made.is_small:
        # One that is there has grown into its buckets.
        begins_small = there is None and not may_be_many(catalog, reading, made.state)
        buckets = 1 if begins_small else None
    own = KeyedConfig(
        model=config.model,
        unique_key=made.key,
        buckets=buckets,
        auto=config.auto,
        accept=config.accept,
        full_refresh_above=config.full_refresh_above,
        lease_timeout_s=config.lease_timeout_s,
    )
    # Other SQL, or an older version of ours, may have kept it by other columns.
    builds = build is not None or (there is not None and there.key != made.key)
    found = plan(catalog, kept, own, text, schema, rebuild=builds, settings=settings, until=until, now=now)
    state = StatePlan(kept, own, made, found, sql, settings, now, until)
    if build is not None:
        return replace(build, state=state)
    shown = replace(found, model=config.model, sql=sql, expected={}, consumed={}, state=state)
    if found.action == "nothing":
        # The model may have another query over it by now, or a run that ended in between has refreshed the
        # state only.
        try:
            over = outer_sql(made, kept.sql, load_keyed(catalog, kept).types)
        except NoState:
            return None
        outer = plan(
            catalog, name, _over_state(config), over, None, settings=settings, of_state=True, now=now
        )
        small = outer.reason is not None and outer.reason.code == "small"
        action, reason = ("incremental", None) if small else (outer.action, outer.reason)
        return replace(shown, action=action, reason=reason)
    return replace(shown, action="full") if found.action == "build" else shown


def run_over_state(
    edge: Edge, name: Name, config: KeyedConfig, plan: AutoPlan, planned: Plan, run: Run
) -> Outcome:
    """Refresh the state, and the model from it."""
    state = plan.state
    assert state is not None
    builds = plan.action == "build"
    if plan.action == "nothing":
        return run(name, config, replace(plan, state=None))
    kept: Outcome | None = None
    try:
        kept = run(state.name, state.config, state.plan)
        types = load_keyed(edge.catalog, state.name).types
        over = outer_sql(state.split, state.name.sql, types)
        own = _over_state(config)
        outer = planned(
            edge.catalog,
            name,
            own,
            over,
            edge.query_schema,
            rebuild=builds,
            settings=state.settings,
            now=state.now,
            of_state=True,
        )
        outcome = run(name, own, outer)
    except (StatementError, NullKey, DuplicateKey, NoState) as error:
        if isinstance(error, DuplicateKey) and kept is not None:
            raise  # they are the model's own rows, with a state or without
        # Whatever it is, the model itself may do without. A state that cannot be kept is not tried again.
        lost = find_keyed(edge.catalog, state.name)
        if lost is not None and not isinstance(error, StatementError):
            drop_keyed(edge, lost)
        alone = planned(
            edge.catalog,
            name,
            config,
            state.model_sql,
            edge.query_schema,
            rebuild=builds,
            settings=state.settings,
            until=state.until,
            now=state.now,
        )
        return run(name, config, alone)
    if builds:
        return outcome
    # A run that ended between the two has left nothing to do but the second.
    done = kept.choice if kept.choice is not None and kept.choice.strategy != "skip" else None
    choice = done or Choice("incremental", how="state")
    rows = f", {outcome.rows} rows" if outcome.rows >= 0 else ""
    return replace(outcome, message=f"{choice}{rows}", choice=choice)


def drop_lost_state(edge: Edge, name: Name) -> None:
    """Where a model is no query over a state any more, or is gone: what it had goes."""
    stored = find_state(edge.catalog, name)
    if stored is not None:
        drop_keyed(edge, stored)


def find_state(catalog: CatalogReader, name: Name) -> KeyedTable | None:
    """The state of an automatic model, if it has one."""
    stored = find_keyed(catalog, state_name(name))
    return stored if stored is not None and stored.owner == owner_of_state(name) else None


def owner_of_state(name: Name) -> str:
    """What tells a state from a model that happens to have such a name."""
    return f"the state of {name.dotted}"


def is_free(catalog: CatalogReader, name: Name) -> bool:
    """Whether a state may be made: nothing else has its name."""
    state = state_name(name)
    if find_state(catalog, name) is not None:
        return True
    return (
        catalog.load_table(state.schema, state.identifier) is None
        and catalog.load_view(state.schema, state.identifier) is None
    )


def split_of(
    reading: Reading, config: KeyedConfig, columns: Sequence[str] | None, *, hides: bool
) -> Split | None:
    """A model's query as a state and a query over it; ``None`` where that would be of no use.

    :param hides: whether the state is to stand beside the model: then one that is a state itself may hide
        what its extremes need besides.
    :param columns: the names of the query's columns, where they are known; the SQL alone tells no case.
    """
    try:
        # The state's SQL asks for the time itself, whenever it is run.
        query, facts = as_called(reading, columns)
        check_determined(query.node, query.types, facts, config.accept)
        itself = plan_sums(query, config.unique_key, facts, config.accept)
        if itself is not None and not (hides and itself.extremes.keys() - itself.ends.keys()):
            return None  # it is a state itself
        made = split(query, config.unique_key, {key: one.key for key, one in reading.upstreams.items()})
    except CannotPlan:
        return None
    if made is None or any(part.find(Moment) for node in made.above for part in expressions(node)):
        return None  # time would change the model though its state stays as it is
    return made


def as_called(reading: Reading, columns: Sequence[str] | None) -> tuple[Query, Facts]:
    """A query as it is run at any time, whatever has changed."""
    same_time = AsCalled()
    query = understood(replace(reading, now=same_time, last=same_time), columns)
    return query, Facts({key: UpstreamFacts(True, one.key) for key, one in reading.upstreams.items()})


def _is_the_same(schema: Schema, sql: str, text: str, made: Split) -> bool:
    """Whether the query over a state has the columns and types of the model's own."""
    types = {column.name: column.type for column in schema(text)}
    try:
        over = outer_sql(made, f"(\n{text}\n)", types)
    except NoState:
        return False
    return schema(over) == schema(sql)


def _over_state(config: KeyedConfig) -> KeyedConfig:
    """How a model is refreshed over its state: strictness is about the state."""
    return replace(config, auto="")
