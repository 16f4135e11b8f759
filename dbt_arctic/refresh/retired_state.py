"""The rows of a keyed upstream as a model last read them, if it has another generation now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import UnknownRelation, VersionUnavailable
from dbt_arctic.keyed import read
from dbt_arctic.keyed.columns_at import select_columns, selected_types
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.narrowing import holds_all_values, in_types
from dbt_arctic.keyed.table import Generation, KeyedTable, stored_key
from dbt_arctic.keyed.type_categories import compare_exactly
from dbt_arctic.keyed.version import Consumed, Version
from dbt_arctic.store.state import columns_at, columns_of, other_key_type


class RetiredState(NamedTuple):
    """The rows of a table as a model last read them.

    :param types: the Spark types of the columns in ``sql``.
    :param retyped: a column that had another type; ``None`` if there is none.
    """

    sql: str
    types: Mapping[str, str]
    retyped: str | None


def retyped_column(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    """A column whose type was another one.

    :param now: the types by name.
    """
    return next((name for name, type_ in now.items() if then.get(name, type_) != type_), None)


def rows_in_types_of_now(
    rows: str, then: Mapping[str, str], now: Mapping[str, str], upstream: Name, model: str
) -> str:
    """SQL of the rows that a model has read, which can be compared and united with those of now.

    Spark would convert the new values to the types of the old ones: from the number 7 and ``'007'``, it makes
    7 and 7. Two numeric types are left to Spark if it compares them without a loss.

    :param rows: SQL of the rows.
    :param then: their types.
    :param now: the types of the rows of now.
    :raises VersionUnavailable: the new type of a column does not have all of the old values.
    """
    types = {}
    for name, type_ in now.items():
        old = then.get(name, type_)
        if holds_all_values(old, type_):
            types[name] = type_
        elif compare_exactly(old, type_):
            types[name] = old
        else:
            raise VersionUnavailable(
                f"the type of {name} in {upstream} has changed since this model last read it",
                where=model,
                why=f"it was {old} and is {type_}, which does not have all of the old values, so deleted "
                "rows cannot be returned as they were",
                fix=f"rebuild the model: dbt run --full-refresh --select {model}",
            )
    return in_types(rows, {name: then.get(name, type_) for name, type_ in now.items()}, types)


def retired_state(
    catalog: CatalogReader, table: KeyedTable, before: Version, last: Consumed, model: str
) -> RetiredState:
    """The merged rows of an earlier generation, at the version that the model consumed."""
    previous = table.previous
    if previous is None or previous.change_id != last.table_id or previous.number != before.generation:
        raise VersionUnavailable(
            f"{table.name} was rebuilt more than once since this model last read it",
            where=model,
            why=f"generation {before.generation} is gone; the current one is {table.generation.number}",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    retired = as_generation(catalog, table, previous)
    try:
        known = columns_of(catalog, retired, before)
    except UnknownRelation as error:
        raise VersionUnavailable(
            f"the generation of {table.name} that this model last read is gone",
            where=model,
            why=f"{error.what}; it was dropped manually, or a key was erased",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        ) from error
    if set(retired.key) != set(table.key) or not set(table.key) <= known[before.base_snapshot].keys():
        # The key of the rows has changed, so a deleted row could not be distinguished from a changed one.
        raise VersionUnavailable(
            f"{table.name} was rebuilt with a different key",
            where=model,
            why=f"it was {', '.join(retired.key)} when this model last read it, now {', '.join(table.key)}",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    types = {name: then.type for name, then in known[before.base_snapshot].items()}
    if column := other_key_type(table, types):
        raise VersionUnavailable(
            f"{table.name} was rebuilt with a different key type",
            where=model,
            why=f"two different values of {column} that this model has read may be equal now",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    selected = selected_types(table, known[before.base_snapshot])
    return RetiredState(
        read.merge_on_read(retired, before, known), selected, retyped_column(table.types, types)
    )


def rows_before_adoption(
    catalog: CatalogReader, table: KeyedTable, base: TableState, last: Consumed, model: str
) -> RetiredState:
    """The rows of a plain table as a model last read them. The table is now the base of a keyed table."""
    if last.table_id != base.location or int(last.version) not in {s.snapshot_id for s in base.snapshots}:
        raise VersionUnavailable(
            f"{table.name} is not the table that this model last read, or that version has expired",
            where=model,
            why="it was a plain table and was rebuilt as a keyed one; or its snapshots have expired",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    at = int(last.version)
    known = columns_at(catalog, table.base, (at,))
    types = selected_types(table, known[at])
    sql = f"SELECT {select_columns(table, at, known)}\nFROM {table.base.at(at)}"
    return RetiredState(sql, types, retyped_column(table.types, types))


def as_generation(catalog: CatalogReader, table: KeyedTable, generation: Generation) -> KeyedTable:
    """An older generation with the current columns and its own key."""
    found = replace(table, generation=generation, previous=None)
    base = catalog.of(found.base).load_table(found.base.schema, found.base.identifier)
    key = stored_key(base.properties) if base is not None else None
    return found if key is None else replace(found, key=key)
