"""What the next run of a model would read of a table of a database, and how new it is; without Spark."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_arctic.databases.api import Database
from dbt_arctic.errors import ConfigError, MalformedFile, VersionUnavailable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.cursor import cursor_of, epoch_ms
from dbt_arctic.sources.database_plan import Writes, plan_read
from dbt_arctic.sources.database_rows import table_rows
from dbt_arctic.sources.database_settings import DatabaseSource


@dataclass(frozen=True)
class TablePreview:
    """The next run of a model, as far as one table is concerned.

    :param reads_all: whether the model would read all rows.
    :param rows: how many rows it would read; about how many, if it is all of them.
    :param since: from which value of the cursor on; empty for all rows.
    :param deletes: whether it would compare keys.
    :param problem: why the run would fail; empty if nothing is in its way.
    :param rejected: how many rows are stored because they did not fit.
    :param dropped: how many rows were dropped because they did not fit.
    :param all_rows: about how many rows the table has; ``None`` if it is not known.
    """

    model: str
    source: str
    reads_all: bool
    rows: int
    since: str = ""
    deletes: bool = False
    problem: str = ""
    rejected: int = 0
    dropped: int = 0
    all_rows: int | None = None


def preview_table(
    database: Database, source: DatabaseSource, model: str, last: Consumed | None, writes: Writes
) -> TablePreview:
    """What the next run would read.

    :param last: what the model has consumed of the table.
    """
    transaction = database.begin()
    try:
        try:
            plan = plan_read(source, transaction, last, writes, model, "", commits=False)
            table_rows(source, transaction.table, plan, writes, model)
        except (ConfigError, MalformedFile, VersionUnavailable) as error:
            return TablePreview(model, source.name, last is None, 0, problem=error.what)
        everything = transaction.table.rows or None
        if not plan.changed:
            return TablePreview(model, source.name, False, 0, all_rows=everything)
        has_deletes = bool(plan.key)
        if plan.window is None or plan.reads_all:
            rows = transaction.table.rows
            return TablePreview(model, source.name, True, rows, deletes=has_deletes, all_rows=everything)
        since, rows = plan.window.low or "", transaction.count(plan.window)
        return TablePreview(model, source.name, False, rows, since, has_deletes, all_rows=everything)
    finally:
        transaction.close()


def newest_ms(source: DatabaseSource, database: Database) -> int | None:
    """The largest value of a cursor that is a time; ``None`` if no row has one.

    :raises ConfigError: the source has no such cursor.
    """
    transaction = database.begin()
    try:
        cursor = (
            cursor_of(source, transaction.table.column(source.cursor), source.name) if source.cursor else None
        )
        value = None if cursor is None else transaction.newest(cursor)
        at = None if cursor is None or value is None else epoch_ms(cursor, value)
    finally:
        transaction.close()
    if cursor is None or (value is not None and at is None):
        raise ConfigError(
            f"the age of the source {source.name} cannot be determined",
            where=source.name,
            why="it has no cursor" if cursor is None else f"its cursor {cursor.name} is not a time",
            fix="set cursor in the source's meta.arctic to a column with a time, or remove freshness",
        )
    return at


__all__ = ["TablePreview", "newest_ms", "preview_table"]
