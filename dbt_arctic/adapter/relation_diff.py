"""Compares the current versions of two relations, by a key if they have one.

One aggregation for each pair, and one more statement for samples if rows differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.adapter.diff_report import Columns, ModelDiff, Sample, Threshold, match_columns
from dbt_arctic.adapter.show import table_value
from dbt_arctic.auto.key_selection import ProjectKeys
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.data_type import parse_type
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.row_diff import (
    ColumnPair,
    compare_as_bags,
    compare_by_key,
    sample_by_key,
    sample_of_bags,
)
from dbt_arctic.maintenance.versions import state_at
from dbt_arctic.store.plain_snapshot import plain_at
from dbt_arctic.store.state import current_version, keyed_from_view

Query = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class DiffOptions:
    """The options of a comparison.

    :param selection: dbt's options that select nodes (``--select``, ``--exclude``, ``--state``).
    :param ignored: columns that are not compared, in lower case.
    :param samples: how many rows of each kind are shown.
    """

    selection: Sequence[str] = ()
    ignored: frozenset[str] = frozenset()
    samples: int = 3
    threshold: Threshold | None = None


@dataclass(frozen=True)
class Relation:
    """One relation as it is compared.

    :param sql: its rows.
    :param key: the key of a keyed table; empty for others.
    """

    name: Name
    sql: str
    columns: Columns
    key: tuple[str, ...] = ()


def current_relation(catalog: CatalogReader, name: Name) -> Relation | None:
    """The current version of a relation; ``None`` if it does not exist."""
    reader = catalog.of(name)
    view = reader.load_view(name.schema, name.identifier)
    table = None if view is None else keyed_from_view(name, view)
    if table is not None:
        shown = table.visible
        sql = state_at(catalog, shown, current_version(catalog, table))
        return Relation(name, sql, list(shown.types.items()), shown.key)
    state = None if view is not None else reader.load_table(name.schema, name.identifier)
    if state is not None:
        today = {column.name: column for column in state.columns}
        at = state.current_snapshot_id
        present = {} if at is None else reader.columns_at(name.schema, name.identifier, at)
        return Relation(name, plain_at(name, today, present, at), _types(state.columns))
    if view is None:
        return None
    return Relation(name, f"SELECT * FROM {name.sql}", _types(view.columns))


def _types(columns: Sequence[Any]) -> Columns:
    return [(column.name, column.type) for column in columns]


def compare_relations(
    query: Query,
    found: ModelDiff,
    here: Relation,
    there: Relation,
    keys: ProjectKeys,
    options: DiffOptions,
) -> ModelDiff:
    """Compare two relations.

    :param found: the result without the comparison.
    """
    ignored = options.ignored
    shared = match_columns(
        [column for column in here.columns if column[0].lower() not in ignored],
        [column for column in there.columns if column[0].lower() not in ignored],
    )
    found = replace(
        found,
        state="compared",
        schema=shared.differences,
        not_compared=shared.not_compared,
        ignored=ignored & {name.lower() for one in (here, there) for name, _ in one.columns},
    )
    if not shared.columns:
        return replace(found, state="not compared", why="no column has the same name and type in both")
    key = _key(here, there, shared.columns, keys)
    if key:
        is_unique = all(
            {name.lower() for name in one.key} == {pair.name.lower() for pair in key} for one in (here, there)
        )
        by_key = _by_key(query, found, here, there, key, shared.columns, options, is_unique)
        if by_key is not None:
            return by_key
        why = f"{', '.join(pair.name for pair in key)} is not unique, so whole rows were compared"
    else:
        why = "it has no key, so whole rows were compared"
    return replace(_as_bags(query, found, here, there, shared.columns, options), why=why)


def _key(
    here: Relation, there: Relation, columns: Sequence[ColumnPair], keys: ProjectKeys
) -> tuple[ColumnPair, ...]:
    """The columns by which rows are matched: the key of a keyed table, or one that the project declares."""
    by_name = {pair.name.lower(): pair for pair in columns}
    declared = [one.columns for one in keys.get(here.name.dotted.lower(), ())]
    for candidate in (here.key, *declared, there.key):
        if candidate and all(name.lower() in by_name for name in candidate):
            return tuple(by_name[name.lower()] for name in candidate)
    return ()


def _by_key(
    query: Query,
    found: ModelDiff,
    here: Relation,
    there: Relation,
    key: Sequence[ColumnPair],
    columns: Sequence[ColumnPair],
    options: DiffOptions,
    is_unique: bool,
) -> ModelDiff | None:
    """The comparison by key; ``None`` if several rows have the same key."""
    others = [pair for pair in columns if pair not in key]
    (row,) = query(compare_by_key(here.sql, there.sql, key, others, is_unique=is_unique))
    rows, base_rows, only_here, only_there, changed, most, *by_column = map(int, row)
    if most > 1:
        return None
    found = replace(
        found,
        key=tuple(pair.name for pair in key),
        rows=rows,
        base_rows=base_rows,
        only_here=only_here,
        only_there=only_there,
        changed=changed,
        columns={pair.name: count for pair, count in zip(others, by_column, strict=True) if count},
    )
    if not (found.differing and options.samples):
        return found
    differing = [pair for pair in others if pair.name in found.columns]
    sql = sample_by_key(here.sql, there.sql, key, differing, options.samples, is_unique=is_unique)
    samples = [_sample(row, key, differing) for row in query(sql)]
    return replace(found, samples=tuple(samples))


def _sample(row: Sequence[Any], key: Sequence[ColumnPair], columns: Sequence[ColumnPair]) -> Sample:
    kind, *values = row
    held = {pair.name: _cell(value, pair) for pair, value in zip(key, values, strict=False)}
    rest = iter(values[len(key) :])
    changed: dict[str, tuple[Any, Any]] = {}
    for pair in columns:
        here, there, differs = (next(rest) for _ in range(3))
        # Python finds values equal that are different, such as the two zeros.
        if kind != "changed" or differs:
            changed[pair.name] = _cell(there, pair), _cell(here, pair)
    return Sample(kind, held, changed)


def _cell(value: Any, pair: ColumnPair) -> Any:
    return table_value(value, parse_type(pair.type))


def _as_bags(
    query: Query,
    found: ModelDiff,
    here: Relation,
    there: Relation,
    columns: Sequence[ColumnPair],
    options: DiffOptions,
) -> ModelDiff:
    (row,) = query(compare_as_bags(here.sql, there.sql, columns))
    rows, base_rows, only_here, only_there = map(int, row)
    found = replace(found, rows=rows, base_rows=base_rows, only_here=only_here, only_there=only_there)
    if not (found.differing and options.samples):
        return found
    samples = []
    for surplus, *values in query(sample_of_bags(here.sql, there.sql, columns, options.samples)):
        held = {
            pair.name: str(_cell(value, pair)) if value is not None else None
            for pair, value in zip(columns, values, strict=True)
        }
        samples.append(Sample("here" if surplus > 0 else "there", held))
    return replace(found, samples=tuple(samples))
