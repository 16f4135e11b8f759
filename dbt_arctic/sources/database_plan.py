"""Decides which rows of a table of a database a model reads in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.databases.api import Column, KeyRange, TableTransaction, Window
from dbt_arctic.errors import ConfigError, MalformedFile, VersionUnavailable
from dbt_arctic.keyed.version import DATABASE, Consumed
from dbt_arctic.sources.cursor import Progress, below, cursor_of, is_future, is_larger, overlap_of
from dbt_arctic.sources.database_columns import ReadColumn, read_columns
from dbt_arctic.sources.database_settings import DatabaseSource

Fingerprint = Callable[[Sequence[Column], Window | None], str]
"""``TableTransaction.fingerprint``, or a stub if the result is not used."""

_ROWS_OF_PARTITION = 500_000
_MOST_PARTITIONS = 16


@dataclass(frozen=True)
class Writes:
    """How a model writes the rows that it reads.

    :param key: the columns by which a row replaces an earlier one; empty for none.
    :param appends: whether rows are added to those of earlier runs, even if they are identical.
    :param is_keyed: whether the model's table is a keyed one with one row per key.
    :param keeps_changes: whether each change of a row shows, and not only the last one.
    """

    key: tuple[str, ...] = ()
    appends: bool = False
    is_keyed: bool = False
    keeps_changes: bool = False


@dataclass(frozen=True)
class ReadPlan:
    """What a model reads of a table in one run.

    :param columns: of the table, as they are read.
    :param window: ``None`` for all rows.
    :param progress: to be committed with the rows.
    :param changed: whether there is anything that the model has not read.
    :param key: the key columns whose values of all rows are read, to find deleted ones; empty for none.
    """

    columns: list[ReadColumn]
    window: Window | None
    progress: Progress
    changed: bool
    key: tuple[ReadColumn, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def reads_all(self) -> bool:
        """Whether the run reads all rows."""
        return self.window is None or self.window.low is None


def plan_read(
    source: DatabaseSource,
    transaction: TableTransaction,
    last: Consumed | None,
    writes: Writes,
    model: str,
    run: str,
    *,
    commits: bool = True,
) -> ReadPlan:
    """Plan what a model reads of a table.

    :param transaction: a state of the table. All lookups read this state.
    :param last: what the model has consumed; ``None`` if it has consumed nothing.
    :param run: a text that differs in each run.
    :param commits: whether the progress is committed. The database computes its fingerprints from all rows,
        so without a commit they are only looked up to compare them with those that the model has consumed.
    :raises ConfigError: the settings do not fit the table or the model.
    :raises MalformedFile: a row has no cursor, and the source does not say what to do with it.
    :raises VersionUnavailable: the table is another one, and the source does not have
        ``on_recreated: continue``.
    """
    columns = read_columns(source, transaction.table, model)
    _refuse_other_table(source, transaction, last, model)
    key = _compared_key(source, transaction, columns, writes, model)
    before = None if last is None else Progress.of(last)
    look_up = transaction.fingerprint if commits or before is not None else _no_fingerprint
    keys = look_up([one.column for one in key], None) if key else ""
    if not source.cursor:
        if writes.appends:
            raise ConfigError(
                f"the source {source.name} has no cursor, and {model} has no unique_key",
                where=model,
                why="each run would add all rows of the table again",
                fix="set unique_key in the model, or cursor in the source's meta.arctic",
            )
        seen = look_up([one.column for one in columns], None)
        same = before is not None and (before.cursor, before.seen, before.keys) == ("", seen, keys)
        return ReadPlan(
            columns, None, Progress("", None, seen, keys, run), not same, key if before is not None else ()
        )
    return _by_cursor(source, transaction, look_up, before, columns, key, keys, writes, model, run)


def _no_fingerprint(columns: Sequence[Column], window: Window | None) -> str:
    return ""


def _by_cursor(
    source: DatabaseSource,
    transaction: TableTransaction,
    look_up: Fingerprint,
    before: Progress | None,
    columns: list[ReadColumn],
    key: tuple[ReadColumn, ...],
    keys: str,
    writes: Writes,
    model: str,
    run: str,
) -> ReadPlan:
    cursor = cursor_of(source, transaction.table.column(source.cursor), model)
    overlap = overlap_of(source, cursor)
    if writes.appends:
        _refuse_twice(source, overlap, model)
    warnings = []
    if before is not None and before.cursor != cursor.name:
        if writes.appends:
            raise ConfigError(
                f"the cursor of the source {source.name} was {before.cursor}, and is {cursor.name}",
                where=model,
                why="only the old cursor records which rows the model has read",
                fix=f"set cursor back; or build the table again: dbt run --full-refresh --select {model}",
            )
        warnings.append(
            f"The cursor of the source {source.name} is {cursor.name} for the first time: {model} reads all "
            "rows."
        )
    value = before.value if before is not None and before.cursor == cursor.name else None
    # The upper end of a run is looked up here, and nowhere else.
    newest = transaction.newest(cursor)
    warnings += _doubts(source, cursor, newest, value, overlap, model)
    if value is not None and (newest is None or not is_larger(cursor, newest, value)):
        newest = value
    with_null = _reads_null(source, transaction, cursor, model)
    low = None if value is None else value if writes.appends else below(cursor, value, overlap)
    window = Window(cursor, low, not writes.appends, newest, with_null)
    seen = ""
    if newest is not None and not writes.appends:
        again = Window(cursor, below(cursor, newest, overlap), True, newest)
        seen = look_up([cursor, *(one.column for one in columns)], again)
    progress = Progress(cursor.name, newest, seen, keys, run)
    same = before is not None and not with_null and progress == replace(before, run=run)
    return ReadPlan(columns, window, progress, not same, key if before is not None else (), tuple(warnings))


def ranges_of(
    source: DatabaseSource, transaction: TableTransaction, plan: ReadPlan, is_shared: bool
) -> tuple[Column, list[KeyRange]] | None:
    """The ranges in which concurrent statements read the whole table; ``None`` for one statement.

    :param is_shared: whether concurrent statements see the same state.
    :raises ConfigError: ``partition_column`` is not a column of integers.
    """
    table = transaction.table
    name = source.partition_column or (table.key[0] if len(table.key) == 1 else "")
    column = table.column(name) if name else None
    if source.partition_column and (column is None or column.family != "integer"):
        raise ConfigError(
            f"the source {source.name} has partition_column: {source.partition_column}",
            where=source.name,
            why=f"the table {source.table} has no such column"
            if column is None
            else f"its type is {column.type}, and ranges are made of whole numbers",
            fix="name a column of whole numbers, or remove it to use the primary key",
        )
    wanted = source.partitions or (
        min(_MOST_PARTITIONS, 1 + table.rows // _ROWS_OF_PARTITION) if is_shared else 1
    )
    if column is None or column.family != "integer" or wanted == 1 or not plan.reads_all:
        return None
    found = transaction.extremes(column)
    ranges = divided(found, wanted) if found is not None else []
    return (column, ranges) if len(ranges) > 1 else None


def divided(extremes: tuple[int, int], parts: int) -> list[KeyRange]:
    """Ranges of about the same size that together have all integers, each once.

    >>> divided((1, 9), 3)
    [KeyRange(low=None, high=4), KeyRange(low=4, high=7), KeyRange(low=7, high=None)]
    """
    low, high = extremes
    ends = sorted({low + (high + 1 - low) * at // parts for at in range(1, parts)} - {low})
    return [KeyRange(*pair) for pair in zip([None, *ends], [*ends, None], strict=True)]


def _refuse_twice(source: DatabaseSource, overlap: int, model: str) -> None:
    """Refuse to read rows twice that would be appended twice."""
    if overlap or source.overlap is None:
        raise ConfigError(
            f"{model} has no unique_key, and the source {source.name} reads rows again",
            where=model,
            why="a run reads again the rows within overlap of the last value, and without a key they would "
            "be in the table twice",
            fix="set unique_key in the model; or overlap: 0 in the source's meta.arctic: a row that becomes "
            "visible with a cursor up to the last value is then never read",
        )
    if source.null_cursor == "read":
        raise ConfigError(
            f"{model} has no unique_key, and the source {source.name} has null_cursor: read",
            where=model,
            why="rows without a cursor are read by each run, and without a key they would be in the table "
            "several times",
            fix="set unique_key in the model, or null_cursor: skip in the source's meta.arctic",
        )


def _reads_null(source: DatabaseSource, transaction: TableTransaction, cursor: Column, model: str) -> bool:
    """Whether there are rows without a cursor to read."""
    if source.null_cursor == "skip" or not cursor.is_nullable or not transaction.has_null(cursor):
        return False
    if source.null_cursor == "read":
        return True
    raise MalformedFile(
        f"rows of the table {source.table} have no value in {cursor.name}",
        where=model,
        why=f"it is the cursor of the source {source.name}, and without it changes of a row are not found",
        fix="set null_cursor in the source's meta.arctic: read (each run reads these rows) or skip (no run "
        "does); nothing was written",
    )


def _doubts(
    source: DatabaseSource, cursor: Column, newest: str | None, value: str | None, overlap: int, model: str
) -> list[str]:
    """Warnings about a cursor that does not grow as it should."""
    found = []
    if newest is not None and is_future(cursor, newest):
        found.append(
            f"The largest {cursor.name} of the source {source.name} is {newest}, which is in the future. "
            "Rows that are changed until then have smaller values, and are not read."
        )
    if value is not None and newest is not None and is_larger(cursor, below(cursor, value, overlap), newest):
        found.append(
            f"The largest {cursor.name} of the source {source.name} is {newest}, and {model} has read up to "
            f"{value}. If the table was filled again, build the model again: dbt run --full-refresh --select "
            f"{model}"
        )
    return found


def _refuse_other_table(
    source: DatabaseSource, transaction: TableTransaction, last: Consumed | None, model: str
) -> None:
    if (
        last is None
        or last.table_id == DATABASE + transaction.table.table_id
        or source.on_recreated == "continue"
    ):
        return
    raise VersionUnavailable(
        f"the table {source.table} is not the one that {model} has read",
        where=model,
        why=f"it was dropped and created again, or the source names another table or database: it was "
        f"{last.table_id.removeprefix(DATABASE)}, and is {transaction.table.table_id}",
        fix=f"build the model again: dbt run --full-refresh --select {model}; or set on_recreated: continue "
        "in the source's meta.arctic, if the new table has the rows of the old one and its cursor continues",
    )


def _compared_key(
    source: DatabaseSource,
    transaction: TableTransaction,
    columns: Sequence[ReadColumn],
    writes: Writes,
    model: str,
) -> tuple[ReadColumn, ...]:
    """The columns of the model's key in the table, if keys are compared."""
    if not source.compares_keys:
        return ()
    if not writes.is_keyed:
        raise ConfigError(
            f"the source {source.name} has deletes: compare, but {model} is not a keyed table",
            where=model,
            why="a key that is no longer in the database is deleted by its key",
            fix="set materialized='incremental' and unique_key in the model, or remove deletes from the "
            "source; a history can pull from that model",
        )
    by_name = {one.column.name.lower(): one for one in columns}
    missing = [name for name in writes.key if name.lower() not in by_name]
    if missing:
        raise ConfigError(
            f"{missing[0]} is in the unique_key of {model}, but is not a column of the source {source.name}",
            where=model,
            why="deletes: compare finds the keys of the model that the table no longer has, by columns of "
            "the same name",
            fix="name the columns in the model as in the database, or remove deletes from the source",
        )
    return tuple(by_name[name.lower()] for name in writes.key)


__all__ = ["ReadPlan", "Writes", "divided", "plan_read", "ranges_of"]
