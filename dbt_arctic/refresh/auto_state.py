"""Automatic models over a state of their own: a keyed table beside the model, refreshed right before it.

The state is an automatic model like any other, with a query of the planner's; so is the model, over its
state. Each has its own commit with what it consumed, so a run that ends in between is finished by the next.
A state that is lost, or cannot be kept, costs time: then the model is refreshed as if there was none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ArcticError, DuplicateKey, NullKey, SparkEnded, StatementError
from dbt_arctic.keyed.layout import is_bucketable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.columns import expressions
from dbt_arctic.planner.determined import check_determined
from dbt_arctic.planner.dialect import Moment
from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.moment import AsCalled
from dbt_arctic.planner.query import Query
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.planner.split import NoState, Split, outer_sql, split, state_sql, without_spare
from dbt_arctic.planner.stored import may_change_types
from dbt_arctic.planner.sums import plan_sums
from dbt_arctic.refresh.auto import AutoPlan, StatePlan, Terms
from dbt_arctic.refresh.auto_inside import (
    are_together,
    as_of,
    consumed_by,
    inside_of,
    is_refreshed,
    reads_little,
)
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.edge import Choice, Edge, Outcome
from dbt_arctic.refresh.evolve import same_columns
from dbt_arctic.refresh.groups import may_be_many
from dbt_arctic.refresh.reading import Reading, understood
from dbt_arctic.refresh.state import find_keyed, load_keyed

Schema = Callable[[str], list[ColumnInfo]]
Run = Callable[[Name, KeyedConfig, AutoPlan], Outcome]

OTHER_STATE = Reason(
    "changed-sql", "what is kept below the model is of other columns, or of other types, than before"
)
OTHER_COLUMNS = Reason(
    "changed-columns", "the model has other columns, or columns of other types, than its table"
)

_OF_ROWS = frozenset(["small", "limit", "many-changes", "many-keys", "slower", "found-late"])
"""Why a query over a state is asked for all its rows though nothing is wrong with any: the refresh is called
as that of its state was, which has read the changes."""

_LOOKS = 2
"""A state that another run refreshes while a query over it is planned is looked at once more."""


class Plan(Protocol):
    """How a model without a state is planned."""

    def __call__(
        self,
        catalog: CatalogReader,
        name: Name,
        config: KeyedConfig,
        sql: str,
        schema: Schema | None,
        terms: Terms,
        *,
        rebuild: bool = ...,
        of_state: bool = ...,
        made_of: str = ...,
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
    over: Plan,
    terms: Terms,
    build: AutoPlan | None = None,
    *,
    inside: bool | None = None,
) -> AutoPlan | None:
    """The plan of a model over its state; ``None`` where it has none, and gets none.

    :param reading: what the query reads.
    :param plan: how the state is planned, and a model that reads nothing else; ``over``: one that does.
    :param build: how the model would be built without a state, where it is to be built.
    :param inside: whether the state is one further inside the query; ``None``: either.
    """
    if reading.reason is not None:
        return None
    kept = state_name(name)
    table, there = find_keyed(catalog, name), find_keyed(catalog, kept)
    stored = None if table is None else table.visible.column_names
    own_columns = None if schema is None else schema(sql)
    columns = stored if own_columns is None else [one.name for one in own_columns]
    try:
        query, facts = as_called(reading, columns)
    except CannotPlan:
        return None
    made = None
    if inside is not False:
        made = inside_of(query, facts, reading, config, None if build else there)
    hides = build is None and table is not None and bool(table.hidden)
    if made is None and not inside and not hides:
        made = _split(query, facts, reading, config, hides=False)
    if made is None or may_change_types(made.state):
        return None
    # A loss of what nobody reads would end its refreshes late.
    made = without_spare(made)
    names = {key: upstream.name.sql for key, upstream in reading.upstreams.items()}
    text = state_sql(made, names)
    if build is not None and schema is not None:
        columns_of_state = columns_if_taken(schema, text)
        if columns_of_state is None:
            return None
        types = {column.name: column.type for column in columns_of_state}
        # A table has its buckets by a column of its key.
        if not any(is_bucketable(types[name]) for name in made.key):
            return None
        if not _gives(own_columns, schema, text, made, types, names):
            return None
        if made.around is not None:
            own_sql = outer_sql(made, kept.sql, types, names)
            if not is_refreshed(own_sql, kept, types, made, reading, config):
                return None
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
        # The query over it would look up in the state what its rows were.
        before_images=True if made.around is not None else None,
    )
    # Other SQL, or an older version of ours, may have kept it by other columns.
    builds = build is not None or (there is not None and there.key != made.key)
    found = plan(catalog, kept, own, text, schema, terms, rebuild=builds)
    state = StatePlan(kept, own, made, found, sql, reading, terms, names)
    if build is not None:
        return replace(build, state=state, beside=None)
    shown = replace(found, model=config.model, sql=sql, expected={}, consumed={}, state=state)
    if table is not None and own_columns is not None:
        produced = [(column.name, column.type) for column in own_columns]
        if not same_columns(table.visible.columns, produced):
            return replace(shown, action="full", reason=OTHER_COLUMNS)
    if found.action == "nothing":
        # The model may have another query over it by now, or a run that ended in between has refreshed the
        # state only.
        try:
            outer = _outer(catalog, name, config, state, over if state.is_inside else plan, schema=None)
        except (NoState, _Apart):
            return None
        small = outer.reason is not None and outer.reason.code == "small"
        action, reason = ("incremental", None) if small else (outer.action, outer.reason)
        if state.is_inside:
            return replace(outer, action=action, reason=reason, sql=sql, state=state, beside=None)
        return replace(shown, action=action, reason=reason)
    return replace(shown, action="full", reason=OTHER_STATE) if found.action == "build" else shown


class _Apart(Exception):
    """A state and the query over it cannot be read at one version for now."""


def _outer(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    state: StatePlan,
    plan: Plan,
    schema: Schema | None,
    *,
    rebuild: bool = False,
) -> AutoPlan:
    """The plan of a model over its state as it is by now. What both read is read at one version.

    :raises NoState: the query over it would not give the same.
    """
    table = load_keyed(catalog, state.name)
    sql = state.over(table.types)
    for _ in range(_LOOKS):
        versions = consumed_by(catalog, table) if state.is_inside else {}
        until = as_of(versions, state.name, state.terms.until) if state.is_inside else Terms.until
        terms = replace(state.terms, until=until)
        found = plan(catalog, name, config, sql, schema, terms, rebuild=rebuild, of_state=True)
        if not state.is_inside or (consumed_by(catalog, table) == versions and are_together(found, versions)):
            return found
    raise _Apart


def run_over_state(
    edge: Edge, name: Name, config: KeyedConfig, plan: AutoPlan, planned: Plan, over: Plan, run: Run
) -> Outcome:
    """Refresh the state, and the model from it.

    :param planned: how the state is planned, and a model that reads nothing else; ``over``: one that does.
    """
    state = plan.state
    assert state is not None
    builds = plan.action == "build"
    if plan.action == "nothing":
        return run(name, config, replace(plan, state=None))
    kept: Outcome | None = None
    plans = over if state.is_inside else planned
    try:
        kept = run(state.name, state.config, state.plan)
        outer = _outer(edge.catalog, name, config, state, plans, edge.query_schema, rebuild=builds)
        own = config if state.is_inside and not reads_little(outer, state.plan) else _over_state(config)
        outcome = run(name, own, outer)
    except SparkEnded:
        raise
    except (StatementError, NullKey, DuplicateKey, NoState, _Apart) as error:
        if isinstance(error, DuplicateKey) and kept is not None:
            raise  # they are the model's own rows, with a state or without
        # Whatever it is, the model itself may do without. A state that cannot be kept is not tried again.
        lost = find_keyed(edge.catalog, state.name)
        if lost is not None and not isinstance(error, StatementError | _Apart):
            drop_keyed(edge, lost)
        schema, sql = edge.query_schema, state.model_sql
        alone = plans(edge.catalog, name, config, sql, schema, state.terms, rebuild=builds)
        return run(name, config, _told(alone, error))
    if builds:
        return outcome
    # A run that ended between the two has left nothing to do but the second.
    done = kept.choice if kept.choice is not None and kept.choice.strategy != "skip" else None
    choice, own_choice = done or Choice("incremental", how="state"), outcome.choice
    if choice.strategy == "incremental" and own_choice is not None and own_choice.strategy == "full":
        reads_all = state.is_inside and not reads_little(outer, state.plan)
        if outer.action == "build":
            choice = Choice("full", OTHER_COLUMNS.code)
        elif reads_all or own_choice.reason not in _OF_ROWS:
            choice = own_choice
    rows = f", {outcome.rows} rows" if outcome.rows >= 0 else ""
    return replace(outcome, message=f"{choice}{rows}", choice=choice)


def _told(alone: AutoPlan, error: Exception) -> AutoPlan:
    """The plan of a model that does without its state: not its SQL has changed, but what it reads by it."""
    if alone.reason is None or alone.reason.code != "changed-sql":
        return alone
    why = (error.why or error.what) if isinstance(error, ArcticError) else str(error)
    what = f"it is refreshed without its state, which could not be kept or read{f': {why}' if why else ''}"
    return replace(alone, reason=Reason("without-state", what))


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


def split_beside(reading: Reading, config: KeyedConfig, columns: Sequence[str]) -> Split | None:
    """A model's query as a state that is to stand beside the model, and a query over it; ``None`` where that
    would be of no use.

    :param columns: the names of the query's columns; the SQL alone tells no case.
    """
    try:
        query, facts = as_called(reading, columns)
    except CannotPlan:
        return None
    return _split(query, facts, reading, config, hides=True)


def _split(query: Query, facts: Facts, reading: Reading, config: KeyedConfig, *, hides: bool) -> Split | None:
    """:param hides: whether the state is to stand beside the model: then one that is a state itself may hide
    what its extremes need besides.
    """
    try:
        check_determined(query.node, query.types, facts, config.accept)
        itself = plan_sums(query, config.unique_key, facts, config.accept)
        if itself is not None and not (hides and itself.extremes.keys() - itself.ends.keys()):
            return None  # it is a state itself
        made = split(query, config.unique_key, {key: one.key for key, one in reading.upstreams.items()})
    except CannotPlan:
        return None
    if made is None or may_change_types(made.state):
        return None
    if any(part.find(Moment) for node in made.above for part in expressions(node)):
        return None  # time would change the model though its state stays as it is
    return made


def as_called(reading: Reading, columns: Sequence[str] | None) -> tuple[Query, Facts]:
    """A query as it is run at any time, whatever has changed. It asks for the time itself.

    :param columns: their names, where they are known.
    :raises CannotPlan: with the reason.
    """
    same_time = AsCalled()
    query = understood(replace(reading, now=same_time, last=same_time), columns)
    return query, Facts({key: UpstreamFacts(True, one.key) for key, one in reading.upstreams.items()})


def _gives(
    own: list[ColumnInfo] | None,
    schema: Schema,
    text: str,
    made: Split,
    types: Mapping[str, str],
    names: Mapping[str, str],
) -> bool:
    """Whether the query over a state has the columns and types of the model's ``own``, and Spark takes it."""
    try:
        return columns_if_taken(schema, outer_sql(made, f"(\n{text}\n)", types, names)) == own
    except NoState:
        return False


def columns_if_taken(schema: Schema, sql: str) -> list[ColumnInfo] | None:
    """The columns of a query that nobody wrote; ``None`` where Spark does not take it: that is no reason for
    a model to fail.
    """
    try:
        return schema(sql)
    except SparkEnded:
        raise
    except StatementError:
        return None


def _over_state(config: KeyedConfig) -> KeyedConfig:
    """How a model is refreshed over its state: strictness is about the state."""
    return replace(config, auto="")
