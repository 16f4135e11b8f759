"""Automatic models that are their own state: what they do not show of it is in hidden columns of their table.

One statement then does what takes two with a state in a table of its own. Other SQL may ask for other hidden
columns. Those that are there stay until the model is built anew: where they suffice they are used, else they
are NULL, and the model is refreshed by keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.moment import Clock
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.split import NoState, beside, state_sql, with_state_sql
from dbt_arctic.planner.sums import plan_sums
from dbt_arctic.refresh.auto import AutoPlan
from dbt_arctic.refresh.auto_state import Plan, Schema, as_called, split_of
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.evolve import same_columns
from dbt_arctic.refresh.reading import Reading, Until, read


def build_beside(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    reading: Reading,
    plan: Plan,
    *,
    settings: str,
    until: Until,
    now: Clock | None,
) -> AutoPlan | None:
    """How a model is built that is to be its own state; ``None`` where it cannot be.

    :param reading: what the query reads.
    """
    made = None if reading.reason is not None or schema is None else split_of(reading, config)
    stored = None if made is None else beside(made)
    if made is None or stored is None or schema is None:
        return None
    names = _names(reading)
    types = {column.name: column.type for column in schema(state_sql(made, names))}
    try:
        text = with_state_sql(made, names, stored, types)
    except NoState:
        return None
    hidden = tuple(column for column, shown in stored.items() if column == shown)
    if [column for column in schema(text) if column.name not in hidden] != schema(sql):
        return None
    try:
        query, facts = as_called(read(catalog, name, text, {}, until))
        if plan_sums(query, config.unique_key, facts, config.accept) is None:
            return None
    except CannotPlan:
        return None
    found = plan(catalog, name, config, text, schema, rebuild=True, settings=settings, until=until, now=now)
    return replace(found, hidden=hidden)


def plan_beside(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    schema: Schema | None,
    table: KeyedTable,
    plan: Plan,
    *,
    settings: str,
    until: Until,
    now: Clock | None,
) -> AutoPlan | None:
    """How a model with hidden columns is refreshed; ``None`` where its SQL has others than it shows."""
    if schema is not None and not same_columns(
        table.visible.columns, [(column.name, column.type) for column in schema(sql)]
    ):
        return None
    text = _with_hidden(table, sql, read(catalog, name, sql, {}, until), config)
    found = plan(catalog, name, config, text, schema, settings=settings, until=until, now=now)
    if found.action == "build":  # the sums of other types, of columns or of an upstream's that has changed
        text = _with_nulls(table, sql, table.hidden)
        found = plan(catalog, name, config, text, schema, settings=settings, until=until, now=now)
    return replace(found, hidden=table.hidden)


def laid_out(config: KeyedConfig, plan: AutoPlan) -> KeyedConfig:
    """How a plan's table is made: a model that is its own state has few rows."""
    return replace(config, buckets=1) if plan.hidden and config.buckets is None else config


def _with_hidden(table: KeyedTable, sql: str, reading: Reading, config: KeyedConfig) -> str:
    """The model's SQL with the hidden columns that its table has."""
    made = None if reading.reason is not None else split_of(reading, config)
    stored = None if made is None else beside(made)
    if made is not None and stored is not None:
        wanted = {column for column, shown in stored.items() if column == shown}
        if wanted <= set(table.hidden):
            types = {column: table.types[shown] for column, shown in stored.items() if shown in table.types}
            try:
                text = with_state_sql(made, _names(reading), stored, types)
            except (NoState, KeyError):
                return _with_nulls(table, sql, table.hidden)
            return _with_nulls(table, text, [column for column in table.hidden if column not in wanted])
    return _with_nulls(table, sql, table.hidden)


def _with_nulls(table: KeyedTable, sql: str, columns: Sequence[str]) -> str:
    if not columns:
        return sql
    there = quote_all([name for name in table.column_names if name not in columns])
    nulls = ", ".join(f"CAST(NULL AS {table.types[name]}) AS {quote(name)}" for name in columns)
    return f"SELECT {there}, {nulls}\nFROM (\n{sql}\n)"


def _names(reading: Reading) -> dict[str, str]:
    return {key: upstream.name.sql for key, upstream in reading.upstreams.items()}
