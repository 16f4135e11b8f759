"""Incremental writes to a plain Iceberg table: directly, or on a branch with compare-and-swap.

A branch is used if a run needs more than one statement (all of them become visible at once), or if it
consumes upstream versions (which must be committed with the data).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import TableState
from dbt_arctic.data_type import Atomic, Struct, has_kind, parse_type, type_text
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import CommitConflict, ConcurrentRun, StatementError, UnknownRelation
from dbt_arctic.keyed.assignment import typed
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, encode_consumed
from dbt_arctic.refresh.freshness import changed_since
from dbt_arctic.store.branches import (
    ATTEMPTS,
    branch_name,
    changes_rows,
    drop_stale_branches,
    publish,
    staged,
)
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome

_SESSION_PROPERTY = "spark.sql.iceberg.snapshot-property."


@dataclass(frozen=True)
class StagedRows:
    """The rows of a query, in a table until the model is done.

    :param since: the snapshot of the target before they were read; ``None`` if it had none.
    :param again: SQL that reads them again, after others have changed the target. If it is ``None``, the rest
        of the write depends on them, so the run has to be repeated.
    """

    name: Name
    schema: tuple[ColumnInfo, ...]
    since: int | None
    again: str | None = None

    @property
    def sql(self) -> str:
        """SQL of the rows."""
        return select_staged(self.name, self.schema)


@dataclass(frozen=True)
class PlainWrite:
    """How one run writes to a plain table; ``branch`` is ``None`` for a direct write.

    :param staged: the rows to write, if they were read before the write. Other rows are read by its
        statements, so they are as new as these.
    """

    target: Name
    branch: str | None
    last_consumed: Mapping[str, Consumed]
    consumed: Mapping[str, Consumed]
    staged: StagedRows | None = None


def begin_plain_write(
    context: Context,
    target: Name,
    *,
    statements: int,
    last_consumed: Mapping[str, Consumed],
    consumed: Mapping[str, Consumed],
    staged: StagedRows | None = None,
) -> PlainWrite:
    """Choose between a direct write and a write on a branch."""
    branch = branch_name(context.new_txn()) if statements > 1 or consumed else None
    return PlainWrite(target, branch, last_consumed, consumed, staged)


def stage(
    name: Name, batch: str, schema: Sequence[ColumnInfo], stored: Mapping[str, str], again: bool = False
) -> str:
    """SQL of a table with the rows of a relation.

    :param stored: the types of the target columns, by name in lower case. A column or field that only holds
        NULL has no type that every table could store.
    :param again: whether the table exists, and gets the current rows.
    """

    def selected(column: ColumnInfo) -> str:
        name = quote(column.name)
        type_ = (
            typed(column.type, stored.get(column.name.lower(), "")) if has_kind(column.type, "void") else ""
        )
        return f"CAST({name} AS {type_}) AS {name}" if type_ not in ("", column.type) else name

    columns = ", ".join(map(selected, schema))
    # Same format as the target tables: an older format has no variants.
    properties = "TBLPROPERTIES ('format-version'='3')"
    create = "CREATE OR REPLACE TABLE" if again else "CREATE TABLE"
    return f"{create} {name.sql}\nUSING iceberg\n{properties}\nAS SELECT {columns}\nFROM {batch}"


def select_staged(name: Name, schema: Sequence[ColumnInfo]) -> str:
    """SQL of the rows of a table from ``stage``, with NULL where the staged rows had no type."""
    columns = ", ".join(
        value
        if (value := _untyped(quote(column.name), column.type)) == quote(column.name)
        else f"{value} AS {quote(column.name)}"
        for column in schema
    )
    return f"SELECT {columns}\nFROM {name.sql}"


def _untyped(value: str, type_: str) -> str:
    match parse_type(type_):
        case Atomic("void"):
            return "NULL"
        case Struct(fields):
            inner = {name: _untyped(f"{value}.{quote(name)}", type_text(one)) for name, one in fields}
            if any(part != f"{value}.{quote(name)}" for name, part in inner.items()):
                listed = ", ".join(f"{literal(name)}, {part}" for name, part in inner.items())
                return f"CASE WHEN {value} IS NOT NULL THEN named_struct({listed}) END"
    return value


def execute_plain_write(
    context: Context, write: PlainWrite, statements: Sequence[str], notes: Mapping[str, str] | None = None
) -> Outcome:
    """Run the statements, which were generated for the name of the branch, and publish them together.

    :param notes: additional properties of the commits, if the write consumes upstream versions.
    :raises ConcurrentRun: others kept committing, consumed the same changes first, or changed the table after
        the rows to write were read.
    """
    text = ";\n".join(statements)
    if write.branch is None:
        rows = [context.run("write", statement) for statement in statements]
        return Outcome("OK", _total(rows), text)
    staged_rows = write.staged
    for _ in range(ATTEMPTS):
        state = context.catalog.of(write.target).load_table(write.target.schema, write.target.identifier)
        if state is None:
            raise UnknownRelation(
                f"{write.target} is gone",
                where=write.target.dotted,
                why="it was dropped during this run",
                fix=f"build it again: dbt run --full-refresh --select {write.target.identifier}",
            )
        consumption = Consumption(write.last_consumed, write.consumed)
        consumption.check(state, write.target.identifier, write.target)
        if staged_rows is not None and changed_since(state, staged_rows.since):
            staged_rows = _read_again(context, write.target, staged_rows, state)
        drop_stale_branches(context, write.target, state, None)
        with staged(context, write.target, state.current_snapshot_id, write.branch):
            rows = _with_properties(context, consumption.recorded(), statements, notes)
            since, most = state.current_snapshot_id, len(statements)
            if consumption.is_part and not changes_rows(context, write.target, write.branch, since):
                return Outcome("OK", 0, text)
            if publish(context, write.target, write.branch, None, since, most_commits=most):
                return Outcome("OK", _total(rows), text)
    raise ConcurrentRun(
        f"the commit to {write.target} conflicted with other commits {ATTEMPTS} times",
        where=write.target.identifier,
        fix="run the model again when fewer writers are active",
    )


def _read_again(context: Context, target: Name, rows: StagedRows, state: TableState) -> StagedRows:
    """Read rows that are older than the newest commit of the target, which they could contradict."""
    if rows.again is None:
        raise ConcurrentRun(
            f"another run or program changed the rows of {target} first",
            where=target.identifier,
            why="this run had read its rows before that commit, so it could store older values as newer ones",
            fix="nothing was written; run it again",
        )
    context.run("stage", rows.again)
    return replace(rows, since=state.current_snapshot_id)


def execute_first_build(
    context: Context,
    consumed: Mapping[str, Consumed],
    statement: str,
    notes: Mapping[str, str] | None = None,
    creates: Name | None = None,
) -> Outcome:
    """Create or replace a plain table, and commit the consumed versions with it.

    :param notes: additional properties of the commit.
    :param creates: the table, if the statement creates it and does not replace it.
    :raises ConcurrentRun: another run has created the table in the meantime.
    """
    try:
        rows = _with_properties(context, consumed, [statement], notes or {})
    except (StatementError, CommitConflict) as error:
        if creates is None or not _was_created(context, creates, error):
            raise
        raise ConcurrentRun(
            f"another run created {creates} first",
            where=creates.identifier,
            why="it did not exist when this run began, and this run would have replaced its rows",
            fix="run it again: it continues from the rows that are there",
        ) from error
    return Outcome("OK", _total(rows), statement)


def _was_created(context: Context, name: Name, error: Exception) -> bool:
    """Whether a statement that creates a table failed because others have created it."""
    text = str(error).lower().replace("_", " ").replace("column already exists", "")
    if not isinstance(error, CommitConflict) and "already exists" not in text:
        return False
    schema, identifier = name.schema, name.identifier
    return (
        context.catalog.of(name).load_table(schema, identifier) is not None
        or context.catalog.of(name).load_view(schema, identifier) is not None
    )


def _with_properties(
    context: Context,
    consumed: Mapping[str, Consumed],
    statements: Sequence[str],
    notes: Mapping[str, str] | None = None,
) -> list[int | None]:
    """Run statements whose commits carry the consumed versions.

    Uses session properties, because MERGE, DELETE and CTAS support no others. They are always reset, since
    they would otherwise be added to every later commit of the session.
    """
    if not consumed and not notes:
        return [context.run("write", statement) for statement in statements]
    properties = {PROPERTY_RUN: context.run_id, **(notes or {})}
    if consumed:
        properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
    try:
        for name, value in properties.items():
            context.run("set_property", f"SET {quote(_SESSION_PROPERTY + name)}={quote(value)}")
        return [context.run("write", statement) for statement in statements]
    finally:
        for name in properties:
            context.run("reset_property", f"RESET {quote(_SESSION_PROPERTY + name)}")


def _total(rows: Sequence[int | None]) -> int | None:
    """The number of rows that the statements wrote; ``None`` if one of them is unknown."""
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None
