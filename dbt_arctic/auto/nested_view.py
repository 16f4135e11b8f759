"""Nested auxiliary views of a model, and the versions at which the rest of the query is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.auto.inputs import ModelInputs, Until, full_name
from dbt_arctic.auto.plan import OverState, RefreshPlan
from dbt_arctic.auto.upstreams import Upstream, inspect_upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.data_type import without_parameters
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import AuxiliaryView
from dbt_arctic.planner.auxiliary.nested_view import find_nested_view
from dbt_arctic.planner.auxiliary.view_selection import GAIN, find_shared_view
from dbt_arctic.planner.delta.exact_averages import adds_decimals, with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.frontend.parse import named, parse
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import load_change

WORTH_ROWS = 1_000_000
"""Reading a whole table with fewer rows takes less time than refreshing one more table."""

_KEYS = ("tinyint", "smallint", "int", "bigint", "decimal", "string", "date", "timestamp", "boolean")
"""Types of key columns of an auxiliary view. Their values are equal only if they are identical."""


def worthwhile_nested_view(
    query: Query,
    facts: Facts,
    inputs: ModelInputs,
    config: KeyedConfig,
    there: KeyedTable | None,
    *,
    is_next: bool = False,
) -> AuxiliaryView | None:
    """The nested auxiliary view of a query; ``None`` if it would be of no use.

    :param query: as it is called at any time. :param there: the state that the model has.
    :param is_next: whether it is a query over other states, which needs another one only for what these leave
        large.
    """
    if inputs.wrap_on_overflow and adds_decimals(query):
        return None
    query = with_exact_averages(query, in_any_mode=inputs.wrap_on_overflow)
    keys = {source: one.key for source, one in inputs.upstreams.items()}
    rows = {source: one.rows for source, one in inputs.upstreams.items() if one.rows is not None}
    try:
        require_determinism(query.node, query.types, facts, config.accept)
    except CannotPlan:
        return None
    stored = None if there is None else (there.key, there.column_names)
    worth, gain = (0, 1.0) if is_next or there is not None else (WORTH_ROWS, GAIN)
    if worth and config.auto == "strict" and _is_too_large(query, facts, config):
        worth = 0  # Without views, each refresh would be a full one, which the model forbids.
    made = find_shared_view(query, config.unique_key, keys, rows, worth, config.accept, stored, gain)
    if made is None and not is_next:
        made = find_nested_view(
            query, keys, rows, worth, None if there is None else there.key, config.unique_key
        )
    if made is None or made.around is None:
        return None
    if any(part.find(TimeFunction) for node in walk(made.around) for part in all_expressions(node)):
        return None  # Time would change the model while its auxiliary view stays the same.
    return made


def is_refreshed(
    over: str,
    state: Name,
    types: Mapping[str, str],
    made: AuxiliaryView,
    inputs: ModelInputs,
    config: KeyedConfig,
) -> bool:
    """Whether a query over a state is refreshed by what changes there, or would be over one more state.

    :param over: its SQL, with full names.
    :param types: the types of the view's columns.
    """
    if any(without_parameters(types[name]) not in _KEYS for name in made.key):
        return False
    key = state.dotted.lower()
    schemas: dict[str, Sequence[tuple[str, str]]] = {key: tuple(types.items())}
    schemas |= {source: one.columns for source, one in inputs.upstreams.items()}
    facts = {source: UpstreamFacts(True, one.key) for source, one in inputs.upstreams.items()}
    facts[key] = UpstreamFacts(True, made.key)
    try:
        tree = named(parse(over), lambda written: full_name(written, state).dotted.lower())
        query = analyse_query(tree, schemas, wrap_on_overflow=inputs.wrap_on_overflow)
    except CannotPlan:
        return False
    refusal = _refusal(query, Facts(facts), config)
    if refusal is None:
        return True
    keys = {source: one.key for source, one in facts.items()}
    more = find_shared_view(query, config.unique_key, keys, {}, 0, config.accept, gain=1.0)
    return refusal.code == "too-large" and more is not None


def _is_too_large(query: Query, facts: Facts, config: KeyedConfig) -> bool:
    """Whether a query has no incremental plan without auxiliary views, because of its size."""
    refusal = _refusal(query, facts, config)
    if refusal is None or refusal.code != "too-large":
        return False
    return plan_summary_delta(query, config.unique_key, facts, config.accept) is None


def _refusal(query: Query, facts: Facts, config: KeyedConfig) -> Reason | None:
    """Why a query cannot be refreshed by keys; ``None`` if it can."""
    try:
        plan_incremental(query, config.unique_key, facts, config.accept)
    except CannotPlan as error:
        return error.reason
    return None


def consumed_by(catalog: CatalogReader, state: KeyedTable) -> dict[str, Consumed]:
    """The versions that an auxiliary view was computed from."""
    return consumed_versions(load_change(catalog, state).history())


def version_of(catalog: CatalogReader, state: KeyedTable) -> dict[str, Consumed]:
    """The version that a state has now, which all queries over it read."""
    found = inspect_upstream(catalog, state.name, None)
    assert isinstance(found, Upstream)
    return {state.name.dotted: found.consumed}


def as_of(versions: Mapping[str, Consumed], until: Until) -> Until:
    """The versions at which a query over a state reads the state, and what the state has read, too."""
    return lambda name: versions.get(name.dotted) or until(name)


def are_together(outer: RefreshPlan, versions: Mapping[str, Consumed]) -> bool:
    """Whether a query over a state reads nothing at another version than the state did."""
    inputs = outer.state.inputs if isinstance(outer, OverState) else outer.inputs
    read = {one.name.dotted: one.consumed for one in inputs.upstreams.values()}
    return all(versions.get(name, consumed) == consumed for name, consumed in read.items())


__all__ = [
    "WORTH_ROWS",
    "are_together",
    "as_of",
    "consumed_by",
    "is_refreshed",
    "version_of",
    "worthwhile_nested_view",
]
