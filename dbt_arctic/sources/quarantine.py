"""Takes the rows that do not fit out of what a model pulls, and stores or counts them.

The rejected rows are written first, as a new version of the model's rejected table. The model's commit then
consumes that version together with the files, the offsets or the cursor. If the run does not commit, the
version belongs to no commit, and the next run starts from the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.refresh.pull import Pull
from dbt_arctic.sources import bad_database_rows, bad_messages
from dbt_arctic.sources.bad_rows import count_bad, folder_columns, rejected_rows
from dbt_arctic.sources.database_rows import TableRows
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.kafka_settings import KafkaSource
from dbt_arctic.sources.retry_rejected import ReplayedRows
from dbt_arctic.store.context import Context
from dbt_arctic.store.rejected_table import (
    COLUMNS,
    RejectedVersion,
    all_rows,
    append_statement,
    create_statement,
    load_rejected,
    rejected_name,
    replace_statement,
    version_of,
)


@dataclass(frozen=True)
class Rejection:
    """The rows of one pull that did not fit.

    :param pull: the version of the rejected table for the model's commit; ``None`` if it stays as it is.
    :param by_place: how many rows of each file, partition or table did not fit, without those that are
        rejected already.
    """

    pull: Pull | None
    by_place: Mapping[str, int]


def cache_statement(view: str) -> str:
    """SQL that keeps the rows of a view once they were computed, until the view is dropped.

    What a source has is read once, and all statements read the same rows. What does not fit in memory goes
    to disk.
    """
    return f"CACHE LAZY TABLE {quote(view)} OPTIONS ('storageLevel' 'MEMORY_AND_DISK')"


def reject(
    context: Context,
    source: FileSource | KafkaSource | TableRows,
    model: Name,
    view: str,
    base: RejectedVersion | None,
    taken: ReplayedRows | None = None,
) -> Rejection:
    """Store or count the rows of a view that do not fit.

    :param model: the name of the model's table.
    :param view: over the files, messages or rows of the pull; empty if it reads none.
    :param base: the rejected rows that stay; ``None`` for none.
    :param taken: which of them the model takes again.
    """
    counted = _count(source, view, base) if view else ""
    places = {str(place): int(number) for place, number in context.query(counted)} if view else {}
    name = rejected_name(model)
    state = load_rejected(context.catalog, name)
    # A full refresh starts without rejected rows.
    is_stale = base is None and state is not None and version_of(name, state) is not None
    if places or is_stale or taken is not None:
        rows = _rejected(source, view, places, base) if places else ""
        kept = "" if taken is None else taken.kept
        return Rejection(store(context, model, base, rows, kept), places)
    return Rejection(None, places)


def _count(source: FileSource | KafkaSource | TableRows, view: str, base: RejectedVersion | None) -> str:
    if isinstance(source, TableRows):
        return bad_database_rows.count_bad(source, view, base)
    if isinstance(source, KafkaSource):
        return bad_messages.count_bad(source, quote(view))
    return count_bad(source, view)


def _rejected(
    source: FileSource | KafkaSource | TableRows,
    view: str,
    places: Collection[str],
    base: RejectedVersion | None,
) -> str:
    if isinstance(source, TableRows):
        return bad_database_rows.rejected_rows(source, view, base)
    if isinstance(source, KafkaSource):
        return bad_messages.rejected_messages(source, quote(view))
    return rejected_rows(source, view, folder_columns(source, places))


def without_reread(
    context: Context, source: FileSource, model: Name, view: str, base: RejectedVersion
) -> Pull | None:
    """Remove the rejected rows of files that the model reads again because they have changed.

    :param view: over the files of the pull.
    :returns: the version without them; ``None`` if there are none.
    """
    files = f"(SELECT DISTINCT `_source_file` FROM {quote(view)}) AS `again`"
    matches = f"`location` = `_source_file` AND `source` = {literal(source.name)}"
    ((number,),) = context.query(f"SELECT count(*)\nFROM {base.rows}\nJOIN {files} ON {matches}")
    if not number:
        return None
    kept = f"SELECT {quote_all(COLUMNS)}\nFROM {base.rows}\nLEFT ANTI JOIN {files} ON {matches}"
    return store(context, model, base, "", kept)


def without_superseded(
    context: Context, table: TableRows, model: Name, view: str, base: RejectedVersion
) -> Pull | None:
    """Remove the rejected rows of a table that the model reads again, or that the table no longer has.

    :param view: over the rows of the pull.
    :returns: the version without them; ``None`` if there are none.
    """
    ((number,),) = context.query(bad_database_rows.count_superseded(table, view, base))
    if not number:
        return None
    return store(context, model, base, "", bad_database_rows.rows_not_superseded(table, view, base))


def store(context: Context, model: Name, base: RejectedVersion | None, rows: str, kept: str = "") -> Pull:
    """Write a version of a rejected table: the rows of another version, and new ones.

    :param rows: SQL of the new rows; empty for none.
    :param kept: SQL of the rows of ``base`` that stay; empty for all.
    :raises ConcurrentRun: another run has written to the table at the same time.
    """
    name = rejected_name(model)
    state = load_rejected(context.catalog, name)
    if state is None:
        context.run("create_rejected", create_statement(name, model))
        state = load_rejected(context.catalog, name)
        assert state is not None
    before = version_of(name, state)
    if base == before and rows and not kept:
        statement = append_statement(name, rows)
    else:
        parts = [kept or (all_rows(base) if base is not None else ""), rows]
        statement = replace_statement(
            name, "\nUNION ALL\n".join(part for part in parts if part) or _none(name)
        )
    context.run("write_rejected", statement)
    state = load_rejected(context.catalog, name)
    after = None if state is None else version_of(name, state)
    history = [] if state is None else state.history()
    parent = None if before is None else int(before.consumed.version)
    if after is None or after == before or history[0].parent_id != parent:
        raise ConcurrentRun(
            f"another run of the model wrote to {name} at the same time",
            where=model.identifier,
            why="it may have rejected the same rows",
            fix=f"nothing was written to the model; run it again: dbt run --select {model.identifier}",
        )
    return Pull(name, "", after.consumed, True)


def _none(name: Name) -> str:
    return f"SELECT * FROM {name.sql} WHERE false"


__all__ = ["Rejection", "cache_statement", "reject", "store", "without_reread", "without_superseded"]
