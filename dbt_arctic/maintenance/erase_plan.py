"""The plan of an erasure: the keys, the side tables with their rows, and what else keeps copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed import create, erasure
from dbt_arctic.keyed.branch import drop_branch
from dbt_arctic.keyed.columns_at import select_columns
from dbt_arctic.keyed.exact_text import why_inexact
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.narrowing import holds_all_values
from dbt_arctic.keyed.savepoint import consumed_at, forget_consumed, savepoints
from dbt_arctic.keyed.secondary_index import is_index_of
from dbt_arctic.keyed.table import MARKER_TXN, PROPERTY_OF, SYSTEM_COLUMNS, TXN, KeyedTable
from dbt_arctic.keyed.type_categories import compare_exactly
from dbt_arctic.maintenance.consumers import Consumer, find_consumers
from dbt_arctic.maintenance.generations import as_shown
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.key_values import ColumnValue
from dbt_arctic.store.context import Context
from dbt_arctic.store.generations import generation_numbers, load_generation
from dbt_arctic.store.leftovers import aside_of, staging_of
from dbt_arctic.store.rejected_table import model_of, rejected_name
from dbt_arctic.store.state import columns_at, head, load_keyed

MAX_KEYS = 10_000
"""The most keys that a condition may select, because their values become part of statements."""
_SNAPSHOTS_A_QUERY = 20


@dataclass(frozen=True)
class Side:
    """A base or change table with rows to erase.

    :param rows: the number of rows that are not hidden yet.
    :param versions: the number of its snapshots.
    """

    name: Name
    generation: KeyedTable
    is_change: bool
    rows: int
    versions: int


class Step(NamedTuple):
    """A statement and its name."""

    name: str
    sql: str


@dataclass(frozen=True)
class RemainingCopy:
    """Something that keeps copies and is removed only on request.

    :param steps: the statements that remove it.
    :param sides: side tables that are removed with it.
    :param forget: whether the view refers to these side tables.
    """

    kind: str
    what: str
    why: str
    steps: tuple[Step, ...] = ()
    sides: tuple[Name, ...] = ()
    forget: bool = False


@dataclass(frozen=True)
class ErasePlan:
    """The keys to erase, and where they are.

    :param condition: SQL on the key's columns.
    :param keys: the number of keys that the condition selects.
    :param sides: base, then change table of each generation; the current generation first.
    """

    table: KeyedTable
    condition: str
    keys: int
    sides: tuple[Side, ...]
    in_the_way: tuple[RemainingCopy, ...]
    consumers: tuple[Consumer, ...]


def plan_by_values(context: Context, name: Name, values: Sequence[ColumnValue]) -> ErasePlan:
    """Select keys by values, given as strings, with one or more values for each key column.

    :raises ConfigError: a column is not part of the key or is missing, or a value does not have the column's
        type.
    """
    table = load_keyed(context.catalog, name)
    by_column: dict[str, list[str]] = {column: [] for column in table.key}
    for column, text in values:
        if column not in by_column:
            raise _wrong_key(table, f"{column} is not part of the key of {name}")
        by_column[column].append(text)
    missing = [column for column, texts in by_column.items() if not texts]
    if missing:
        raise _wrong_key(table, f"the key of {name} also contains {', '.join(missing)}")
    types = _key_types(table)
    texts = [
        erasure.KeyText(column, types[column], text) for column, found in by_column.items() for text in found
    ]
    (row,) = context.query(erasure.check_literals(texts))
    for one, is_value in zip(texts, row, strict=True):
        why = why_inexact(one.text, one.type)
        if why or not is_value:
            raise ConfigError(
                f"{one.text!r} is not a value of {one.column}, which is {one.type}",
                where=name.dotted,
                why=why,
                fix="write it in the form that Spark casts from a string; write a binary value in hex digits",
            )
    condition = " AND ".join(
        erasure.any_of([column], types, [[text] for text in found]) for column, found in by_column.items()
    )
    count = 1
    for found in by_column.values():
        count *= len(set(found))
    return _plan(context, table, condition, count)


def plan_by_condition(context: Context, name: Name, where: str) -> ErasePlan:
    """Select the keys of all rows that match a condition in any remaining version of the table.

    :raises ConfigError: the condition matches too many keys.
    """
    table = load_keyed(context.catalog, name)
    types = _key_types(table)
    keys: dict[tuple[str, ...], None] = {}
    for generation in _generations(context, table):
        for sql in _versions_with_all_rows(context, as_shown(table, generation)):
            texts = ", ".join(erasure.key_text(column, types[column]) for column in table.key)
            found = context.query(
                f"SELECT DISTINCT {texts}\nFROM (\n{sql}\n)\nWHERE ({where})\nLIMIT {MAX_KEYS + 1}"
            )
            keys.update(dict.fromkeys(tuple(str(value) for value in row) for row in found if None not in row))
            if len(keys) > MAX_KEYS:
                raise ConfigError(
                    f"more than {MAX_KEYS} keys of {name} have a row that matches the condition",
                    where=where,
                    fix="erase them in several runs, with a condition for each part",
                )
    if not keys:
        return _plan(context, table, "", 0)
    return _plan(context, table, erasure.any_of(table.key, types, list(keys)), len(keys))


def _plan(context: Context, table: KeyedTable, condition: str, keys: int) -> ErasePlan:
    sides = []
    generations = _generations(context, table)
    for generation in generations:
        for side in (generation.base, generation.change):
            state = context.catalog.of(side).load_table(side.schema, side.identifier)
            if state is not None:
                is_change = side == generation.change
                rows = context.query(erasure.count_rows(side, condition, is_change))[0][0] if keys else 0
                sides.append(Side(side, generation, is_change, int(rows), len(state.snapshots)))
    return ErasePlan(
        table=table,
        condition=condition,
        keys=keys,
        sides=tuple(sides),
        in_the_way=find_in_the_way(context, table),
        consumers=tuple(find_consumers(context.catalog, table)),
    )


def _generations(context: Context, table: KeyedTable) -> list[KeyedTable]:
    """The current generation, and the previous one if it still exists."""
    found = [table]
    if table.previous is not None:
        numbers = generation_numbers(context.catalog, table.storage_name)
        if table.previous.number in numbers:
            before = load_generation(
                context.catalog, table.name, table.storage_name.identifier, table.previous.number
            )
            is_same = before.generation == table.previous and before.key == table.key
            if is_same and _holds_keys(before, table):
                found.append(before)
    return found


def _holds_keys(before: KeyedTable, table: KeyedTable) -> bool:
    """Whether each key of an earlier generation is one of the table's, so that a text means the same key."""
    then, now = before.types, table.types
    return all(
        holds_all_values(then[column], now[column]) and compare_exactly(then[column], now[column])
        for column in table.key
    )


def find_in_the_way(context: Context, table: KeyedTable) -> tuple[RemainingCopy, ...]:
    """Everything that keeps copies of a table's rows."""
    return tuple(_in_the_way(context, table, _generations(context, table)))


def _in_the_way(context: Context, table: KeyedTable, erased: Sequence[KeyedTable]) -> Iterator[RemainingCopy]:
    inventory = take_inventory(context.catalog, table.name.catalog, table.name.schema)
    sides = {side.identifier for generation in erased for side in (generation.base, generation.change)}
    # A table that was renamed may still have those of its former name.
    rejected = {rejected_name(table.name), rejected_name(table.storage_name)}
    for identifier, state in sorted(inventory.tables.items()):
        name = inventory.name(identifier)
        if identifier in sides:
            yield from _refs(name, state)
        elif state.properties.get(PROPERTY_OF) == table.storage_name.dotted:
            forget = name in table.side_tables
            why = "the previous generation has another key or key type" if forget else "no view uses it"
            yield RemainingCopy("generation", identifier, why, sides=(name,), forget=forget)
        elif staging_of(identifier) == table.name.identifier:
            yield RemainingCopy(
                "staging",
                identifier,
                "it holds staged rows of a pull",
                (Step("drop_staging", create.drop_table(name)),),
            )
        elif name in rejected and model_of(state) is not None:
            why = "it has the text of rows that did not fit, which may contain the key"
            yield RemainingCopy(
                "rejected", identifier, why, (Step("drop_rejected", create.drop_table(name)),)
            )
        elif is_index_of(table, state.properties):
            why = "it has keys and values of rows; the next write of the model creates it again"
            yield RemainingCopy("index", identifier, why, (Step("drop_index", create.drop_table(name)),))
        elif (aside := aside_of(identifier)) is not None and aside.of == table.name.identifier:
            why = "it was renamed when the keyed table took its name"
            yield RemainingCopy("set-aside", identifier, why, (Step("drop_aside", create.drop_table(name)),))
    # The last one first: what is left after an interruption is still found.
    for kept in reversed(find_states(context.catalog, table.name)):
        drops = [Step("drop_side_table", create.drop_table(side)) for side in kept.side_tables]
        why = "the model is computed from it; the next full refresh creates it again"
        yield RemainingCopy(
            "state", kept.name.identifier, why, (*drops, Step("drop_view", create.drop_description(kept)))
        )


def _refs(name: Name, state: TableState) -> Iterator[RemainingCopy]:
    kept = {f"savepoint_{savepoint}" for savepoint in savepoints(state.tags)}
    for tag in sorted(state.tags):
        kind = "savepoint" if tag in kept else "tag"
        steps = [Step("drop_tag", f"ALTER TABLE {name.sql} DROP TAG IF EXISTS {quote(tag)}")]
        if consumed_at(state.properties, state.tags[tag]):
            steps.append(Step("forget_consumed", forget_consumed(name, state.tags[tag])))
        what = f"{tag.removeprefix('savepoint_')} of {name.identifier}"
        yield RemainingCopy(kind, what, "it keeps a version", tuple(steps))
    for branch in sorted(state.branches):
        if branch not in ("main", erasure.BRANCH):
            why = (
                "a run is active or was interrupted" if branch.startswith("arctic_") else "it keeps a version"
            )
            yield RemainingCopy(
                "branch",
                f"{branch} of {name.identifier}",
                why,
                (Step("drop_branch", drop_branch(name, branch)),),
            )


def _versions_with_all_rows(context: Context, table: KeyedTable) -> Iterator[str]:
    """Queries over snapshots that together return every row of every snapshot."""
    for side in (table.base, table.change):
        state = context.catalog.of(side).load_table(side.schema, side.identifier)
        if state is None:
            continue
        known = {snapshot.snapshot_id for snapshot in state.snapshots}
        wanted = {head(state), *state.branches.values(), *state.tags.values()}
        wanted |= {
            snapshot.parent_id
            for snapshot in state.snapshots
            if snapshot.operation not in ("append", "replace") and snapshot.parent_id in known
        }
        ordered = sorted(wanted)
        names = columns_at(context.catalog, side, tuple(ordered))
        for at in range(0, len(ordered), _SNAPSHOTS_A_QUERY):
            rows = f"\nWHERE {quote(TXN)} <> {MARKER_TXN}" if side == table.change else ""
            yield "\nUNION ALL\n".join(
                f"SELECT {select_columns(table, snapshot, names)}\nFROM {side.at(snapshot)}{rows}"
                for snapshot in ordered[at : at + _SNAPSHOTS_A_QUERY]
            )


def _key_types(table: KeyedTable) -> Mapping[str, str]:
    return {column.name: column.type for column in table.columns if column.name in table.key}


def _wrong_key(table: KeyedTable, what: str) -> ConfigError:
    example = " ".join(f"--key {column}=VALUE" for column in table.key)
    return ConfigError(
        what,
        where=table.name.dotted,
        why=f"the key is {', '.join(table.key)}",
        fix=f"give a value for every key column, {example}; or a condition: --where",
    )


def side_columns(side: Side) -> tuple[str, ...]:
    """The columns of a side table, including internal ones."""
    columns = side.generation.column_names
    return (*columns, *SYSTEM_COLUMNS) if side.is_change else columns
