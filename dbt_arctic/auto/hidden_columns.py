"""Automatic models whose own table stores their auxiliary columns, hidden from readers.

One statement then does what takes two with a separate auxiliary view. Changed SQL may need other hidden
columns. Existing hidden columns stay until the model is rebuilt. If they suffice, they are used. Otherwise
they are NULL, and the model is refreshed by keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbt_arctic.auto.auxiliary_view import Plan, as_called, columns_if_taken, view_as_hidden_columns
from dbt_arctic.auto.group_counts import may_be_many
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.plan import HiddenColumns, RefreshPlan
from dbt_arctic.auto.refresh_request import Request, Schema, inputs_of
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.schema_difference import same_columns
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    AuxiliaryView,
    NoState,
    columns_in_model_table,
    state_sql,
    with_state_sql,
)
from dbt_arctic.planner.reasons import CannotPlan


def build_with_hidden_columns(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    inputs: ModelInputs,
    plan: Plan,
    *,
    of_state: bool = False,
) -> RefreshPlan | None:
    """The build of a model with hidden columns; ``None`` if it cannot have them.

    :param inputs: what the query reads.
    """
    if inputs.reason is not None or schema is None:
        return None
    config, sql = request.config, request.sql
    own = schema(sql)
    made = view_as_hidden_columns(inputs, config, [column.name for column in own])
    stored = None if made is None else columns_in_model_table(made)
    if made is None or stored is None:
        return None
    names = _names(inputs)
    kept = columns_if_taken(schema, state_sql(made, names))
    if kept is None:
        return None
    types = {column.name: column.type for column in kept}
    try:
        text = with_state_sql(made, names, stored, types)
    except NoState:
        return None
    hidden = tuple(column for column, shown in stored.items() if column == shown)
    produced = columns_if_taken(schema, text)
    if produced is None or [column for column in produced if column.name not in hidden] != own:
        return None
    try:
        shown = inputs_of(catalog, replace(request, sql=text))
        query, facts = as_called(shown, [column.name for column in produced])
        if plan_summary_delta(query, config.unique_key, facts, config.accept) is None:
            return None
    except CannotPlan:
        return None
    found = plan(catalog, replace(request, sql=text), schema, rebuild=True, made_of=sql, of_state=of_state)
    has_few_rows = not may_be_many(catalog, inputs, made.state)
    columns = HiddenColumns(hidden, request, rebuild=True, of_state=of_state, has_few_rows=has_few_rows)
    return replace(found, header=replace(found.header, hidden=columns))


def plan_with_hidden_columns(
    catalog: CatalogReader,
    request: Request,
    schema: Schema | None,
    table: KeyedTable,
    plan: Plan,
    *,
    by_name: bool = False,
    of_state: bool = False,
) -> RefreshPlan | None:
    """The refresh of a model with hidden columns; ``None`` if the table's visible columns are not its SQL's.

    :param by_name: whether to return a plan only if the SQL names each of its columns.
    """
    sql = request.sql
    own = None if schema is None else [(column.name, column.type) for column in schema(sql)]
    if own is not None and not same_columns(table.visible.columns, own):
        return None
    shown = table.visible.column_names if own is None else tuple(name for name, _ in own)
    nulls = _with_nulls(table, sql, table.hidden)
    inputs = inputs_of(catalog, request)
    made = None if inputs.reason is not None else view_as_hidden_columns(inputs, request.config, shown)
    if by_name and made is not None and not made.is_named:
        return None
    text = _with_hidden(table, sql, inputs, made)
    found = plan(catalog, replace(request, sql=text), schema, made_of=sql, of_state=of_state)
    if text != nulls and (found.action == "build" or _has_changed(found)):
        # Its sums have other types now, or the last refresh ran without them.
        without = plan(catalog, replace(request, sql=nulls), schema, made_of=sql, of_state=of_state)
        if found.action == "build" or not _has_changed(without):
            found = without
    builds = found.action == "build"
    instead = sql if builds else nulls
    made_of = "" if instead == sql else sql
    columns = HiddenColumns(
        table.hidden, replace(request, sql=instead), rebuild=builds, made_of=made_of, of_state=of_state
    )
    return replace(found, header=replace(found.header, hidden=columns))


def _has_changed(plan: RefreshPlan) -> bool:
    return plan.reason is not None and plan.reason.code == "changed-sql"


def _with_hidden(table: KeyedTable, sql: str, inputs: ModelInputs, made: AuxiliaryView | None) -> str:
    """The model's SQL with the hidden columns of its table.

    :param made: the SQL as an auxiliary view and a query over it.
    """
    stored = None if made is None else columns_in_model_table(made)
    if made is not None and stored is not None:
        # An older table may lack useful columns that are not required.
        missing = made.spare - set(table.hidden)
        stored = {column: name for column, name in stored.items() if column != name or name not in missing}
        wanted = {column for column, name in stored.items() if column == name}
        if wanted <= set(table.hidden):
            types = {column: table.types[name] for column, name in stored.items() if name in table.types}
            try:
                text = with_state_sql(made, _names(inputs), stored, types)
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


def _names(inputs: ModelInputs) -> dict[str, str]:
    return {key: upstream.name.sql for key, upstream in inputs.upstreams.items()}
