"""UPDATE, DELETE and MERGE on a keyed table: binds a statement to the table and runs it as a computed write.

The statement therefore sees one version of the table, is committed as a whole, and is computed again if
another writer was faster. Subqueries read the current state when the statement runs. If they read the target
itself, they read the pinned version, or the write is not published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_arctic.data_type import parse_type
from dbt_arctic.errors import ConfigError, DamagedKeyedTable, SchemaChanged, UnknownRelation
from dbt_arctic.keyed.assignment import is_cast, stored_value, unstorable
from dbt_arctic.keyed.erasure import PROPERTY_ERASE
from dbt_arctic.keyed.history import refuse_history
from dbt_arctic.keyed.log import PROPERTY_RUN, find_transaction
from dbt_arctic.keyed.modify import (
    DELETED,
    INSERTED,
    UPDATED,
    Clause,
    Modification,
    count_rows,
    modify_rows,
)
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.narrowing import TypeChange, exact_cast, is_narrower
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.batch import how_to_type
from dbt_arctic.refresh.config import match_columns
from dbt_arctic.refresh.parse_dml import ParsedClause, ParsedModification
from dbt_arctic.store.computed_write import Attempt, Purpose, WriteResult, write_computed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed, load_change, load_keyed

Values = tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True)
class Modified:
    """The number of rows that a statement updated, inserted and deleted.

    A row whose key changed counts as updated. They are ``None`` if an erasure has removed the commit before
    its rows were counted.
    """

    table: str
    updated: int | None
    inserted: int | None
    deleted: int | None


def modify(context: Context, name: Name, parsed: ParsedModification) -> Modified:
    """Run a statement in one commit; no commit if it affects no row.

    :raises ConfigError: a column does not exist, or a part of the statement is not supported.
    :raises DuplicateKey: two rows would have the same key.
    :raises ConcurrentRun: others kept committing; nothing was published.
    """
    table = _load(context, name)
    written = _write(context, table, bind(context, table, parsed))
    counts = _counts(context, table, written) if written.rows != 0 else {}
    if counts is None:
        return Modified(name.dotted, None, None, None)
    return Modified(name.dotted, *(counts.get(what, 0) for what in (UPDATED, INSERTED, DELETED)))


def explain(context: Context, name: Name, parsed: ParsedModification) -> list[str]:
    """The statements that ``modify`` would run now; none of them is run."""
    ran: list[str] = []

    def record(step: str, sql: str, table: KeyedTable | None = None) -> int:
        ran.append(f"-- {step}\n{sql}")
        return 1

    table = _load(context, name)
    _write(replace(context, run=record, prints_only=True), table, bind(context, table, parsed))
    return ran


def bind(context: Context, table: KeyedTable, parsed: ParsedModification) -> Modification:
    """Resolve the columns of a statement in the table, and expand every ``*``.

    :raises ConfigError: a column does not exist, is named twice, or is a part of another column.
    """
    alias = parsed.alias or table.name.identifier
    produced: Mapping[str, str] = {}
    if any(clause.values is None for clause in parsed.clauses):
        prefix = f"{parsed.prefix}\n" if parsed.prefix else ""
        schema = context.query_schema(f"{prefix}SELECT *\nFROM {parsed.source}")
        produced = {
            column.name.lower(): f"{quote(parsed.source_alias)}.{quote(column.name)}" for column in schema
        }
    qualifiers = [(alias,), *(_parts(table.name)[at:] for at in range(3) if parsed.alias is None)]
    clauses = tuple(
        Clause(
            clause.kind,
            clause.action,
            clause.condition,
            _everything(table, clause, produced)
            if clause.values is None
            else _values(table, clause.values, qualifiers),
        )
        for clause in parsed.clauses
    )
    for clause in clauses:
        missing = [column for column in table.key if column not in clause.values]
        if clause.action == "insert" and missing:
            raise ConfigError(
                f"an insert has no value for {', '.join(missing)}",
                where=table.name.dotted,
                why="it is part of the key",
                fix="add it to the columns of the insert",
            )
    bound = Modification(parsed.prefix, alias, clauses, parsed.source, parsed.source_alias, parsed.on)
    return replace(bound, clauses=tuple(_as_stored(context, table, bound, clause) for clause in clauses))


def _as_stored(context: Context, table: KeyedTable, modification: Modification, clause: Clause) -> Clause:
    """A clause whose values have the types of the columns: structs by the names of their fields.

    :raises SchemaChanged: a column would store a different value than the statement specifies.
    """
    if not clause.values:
        return clause
    listed = ",\n  ".join(f"({value}) AS {quote(column)}" for column, value in clause.values.items())
    rows = f"{table.name.sql} AS {quote(modification.alias)}"
    if modification.source is not None:
        rows += f"\nCROSS JOIN {modification.source}"
    prefix = f"{modification.prefix}\n" if modification.prefix else ""
    given = {one.name: one.type for one in context.query_schema(f"{prefix}SELECT {listed}\nFROM {rows}")}
    types = table.types
    found = unstorable(given.items(), types.items(), fill=False)
    if found:
        raise SchemaChanged(
            "the table cannot store the statement's values without loss",
            where=table.name.dotted,
            why="; ".join(mismatch.describe() for mismatch in found),
            fix=how_to_type(found, "cast the value to the type of the column"),
        )
    return replace(
        clause,
        values={
            column: _stored(table, column, f"({value})", given[column])
            for column, value in clause.values.items()
        },
    )


def _stored(table: KeyedTable, column: str, value: str, produced: str) -> str:
    type_ = table.types[column]
    shaped = stored_value(value, produced, type_)
    is_ordered = column == table.sequence_by and is_cast(produced, type_)
    if not (is_ordered or is_narrower(parse_type(produced), parse_type(type_))):
        return shaped
    return exact_cast(shaped, TypeChange(produced, type_), column=column, where=table.name.dotted)


def _load(context: Context, name: Name) -> KeyedTable:
    table = find_keyed(context.catalog, name)
    if table is None and context.catalog.of(name).load_table(name.schema, name.identifier) is not None:
        raise UnknownRelation(
            f"{name} is a plain table",
            where=name.dotted,
            why="it has no change table, so Spark can modify it directly",
            fix="run the statement in Spark, for instance as a hook of a model",
        )
    found = table or load_keyed(context.catalog, name)
    refuse_history(found, name.dotted, "whose rows are not modified")
    return found


def _write(context: Context, table: KeyedTable, modification: Modification) -> WriteResult:
    where = table.name.dotted
    properties = {PROPERTY_RUN: context.run_id}

    def statement(attempt: Attempt) -> str:
        return modify_rows(
            table,
            modification,
            attempt.pinned,
            attempt.txn,
            properties,
            attempt.branch,
            where,
            attempt.known,
        )

    joins = modification.source is not None or modification.moves_keys(table)
    purpose = Purpose("modify", where, "run the statement again", joins=joins)
    return write_computed(context, table, purpose, statement)


def _counts(context: Context, table: KeyedTable, written: WriteResult) -> dict[int, int] | None:
    history = load_change(context.catalog, table).history()
    commit = find_transaction(history, written.attempt.txn)
    if commit is None and any(PROPERTY_ERASE in later.summary for later in history):
        return None
    if commit is None:
        raise DamagedKeyedTable(
            f"the commit {written.attempt.txn} of {table.change} no longer exists",
            where=table.name.dotted,
            why="the change table was rolled back manually right after the commit",
            fix=f"check it: dbt-arctic verify {table.name.schema}.{table.name.identifier}",
        )
    found = context.query(count_rows(table, commit.snapshot_id, written.attempt.txn))
    return {int(what): int(count) for what, count in found}


def _parts(name: Name) -> tuple[str, ...]:
    return name.catalog, name.schema, name.identifier


def _everything(table: KeyedTable, clause: ParsedClause, produced: Mapping[str, str]) -> dict[str, str]:
    names = table.visible.column_names
    missing = [column for column in names if column.lower() not in produced]
    if missing:
        raise ConfigError(
            f"the source does not have {', '.join(missing)}",
            where=table.name.dotted,
            why=f"{clause.action.upper()} * takes every column of the table from the source, by name",
            fix="list the columns instead of *, or select them in the source",
        )
    return {column: produced[column.lower()] for column in names}


def _values(table: KeyedTable, values: Values, qualifiers: list[tuple[str, ...]]) -> dict[str, str]:
    known = {tuple(part.lower() for part in qualifier) for qualifier in qualifiers}
    names = table.visible.column_names
    found: dict[str, str] = {}
    for parts, value in values:
        if parts[:-1] and tuple(part.lower() for part in parts[:-1]) not in known:
            raise ConfigError(
                f"{'.'.join(parts)} is not a column of {table.name}",
                where=table.name.dotted,
                why="a nested field cannot be assigned on its own",
                fix="assign the whole column, for instance with named_struct()",
            )
        (column,) = match_columns(parts[-1:], names)
        if column not in names:
            raise ConfigError(
                f"{parts[-1]} is not a column of {table.name}",
                where=table.name.dotted,
                why=f"its columns are: {', '.join(names)}",
                fix="correct the name",
            )
        if column in found:
            raise ConfigError(f"{column} is assigned twice", where=table.name.dotted, fix="assign it once")
        found[column] = value
    return found
