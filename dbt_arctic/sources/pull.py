"""Plans what a model reads of a source of files, and keeps the source's file list up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from dbt_arctic.catalog.api import ListedFile, TableState
from dbt_arctic.engine.api import Connection
from dbt_arctic.errors import ConfigError, UnknownRelation, VersionUnavailable
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull, Stage
from dbt_arctic.sources.file_list import (
    COLUMNS,
    PROPERTY_SOURCE,
    as_rows,
    create_statement,
    has_snapshot,
    insert_statement,
    load_files,
)
from dbt_arctic.sources.new_files import new_files, no_rows, read_request, rows_of
from dbt_arctic.sources.settings import FileSource
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import plain_id

Purpose = Literal["consume", "read", "describe"]
"""Why files are pulled: for a commit that consumes them; to show rows; or for the text of the SQL only."""

_INFERRED_FROM = 20
"""How many files the advice on missing columns looks at."""


def plan_file_pull(
    context: Context,
    connection: Callable[[], Connection],
    source: FileSource,
    name: Name,
    last: Consumed | None,
    *,
    model: str,
    purpose: Purpose,
) -> Pull:
    """Plan what a model reads of a source of files.

    With the purpose ``consume``, files that are new in the folder are appended to the file list first: one
    commit, and none if there are none. Spark does not start if the model has nothing to read.

    :param connection: the session in which the SQL of the pull will run.
    :param name: the source's file list.
    :param last: what the model's last commit consumed of the file list; ``None`` for nothing.
    :raises ConfigError: the source declares no columns.
    :raises SourceFileChanged: as of ``new_files``.
    :raises VersionUnavailable: the file list has lost what the model has read.
    """
    catalog = context.catalog
    present = {file for file in catalog.list_files(source.path) if source.accepts(file.path)}
    if not source.columns:
        raise _no_columns(source, present, connection, purpose)
    state = _load(context, name, source)
    listed = load_files(catalog, name, state.current_snapshot_id if state else None)
    if purpose == "consume" and (state is None or not present <= listed):
        _append(context, connection(), name, source, present - listed, exists=state is not None)
        state = _load(context, name, source)
        if state is None:
            raise UnknownRelation(
                f"the file list {name} is gone",
                where=model,
                why="it was dropped during this run",
                fix=f"run the model again: dbt run --select {model}",
            )
        # Another run may have appended files as well. What is read must be what the snapshot lists.
        listed = load_files(catalog, name, state.current_snapshot_id)
    consumed = _consumed_files(context, name, state, last, model)
    files = new_files(source, present, listed if purpose == "consume" else listed | present, consumed, model)
    version = Consumed(
        plain_id(state) if state else "", str((state.current_snapshot_id if state else None) or 0)
    )
    changed = bool(files) or last is None
    version = version if changed or last is None else last
    if not files or purpose == "describe":
        return Pull(name, _described(source, files), version, changed)
    view = f"{name.identifier}__pull_{context.new_txn()}"
    connection().create_file_view(view, read_request(source, files))
    return Pull(name, rows_of(source, view), version, changed, stage=Stage(view))


def _described(source: FileSource, files: Collection[ListedFile]) -> str:
    # A name of a source may not end the comment.
    name = source.name.replace("*/", "* /")
    return f"/* {len(files)} new files of {name} */\n{no_rows(source)}"


def _load(context: Context, name: Name, source: FileSource) -> TableState | None:
    state = context.catalog.load_table(name.schema, name.identifier)
    if state is not None and state.properties.get(PROPERTY_SOURCE) != source.name:
        raise ConfigError(
            f"the table {name} is not the file list of the source {source.name}",
            where=name.dotted,
            why=f"it has this name, and not the property {PROPERTY_SOURCE}={source.name}",
            fix="rename the table, or the source",
        )
    return state


def _append(
    context: Context,
    connection: Connection,
    name: Name,
    source: FileSource,
    files: Collection[ListedFile],
    *,
    exists: bool,
) -> None:
    if not exists:
        context.run("create_file_list", create_statement(name, source.name))
    if files:
        view = f"{name.identifier}_{context.new_txn()}"
        connection.create_temp_view(view, COLUMNS, as_rows(files))
        try:
            context.run("list_files", insert_statement(name, view))
        finally:
            context.run("drop_staging", f"DROP VIEW IF EXISTS {quote(view)}")


def _consumed_files(
    context: Context, name: Name, state: TableState | None, last: Consumed | None, model: str
) -> frozenset[ListedFile] | None:
    if last is None:
        return None
    if state is None or last.table_id != plain_id(state):
        raise VersionUnavailable(
            f"{name} is not the file list from which {model} was built",
            where=model,
            why="it was dropped, so it is unknown which files the model has read",
            fix=f"read all files again: dbt run --full-refresh --select {model}",
        )
    at = int(last.version)
    if at == 0:
        return frozenset()
    if not has_snapshot(state, at):
        raise VersionUnavailable(
            f"the snapshot {at} of the file list {name} no longer exists",
            where=model,
            why="it was expired by another tool than dbt-arctic expire",
            fix=f"read all files again: dbt run --full-refresh --select {model}",
        )
    return load_files(context.catalog, name, at)


def _no_columns(
    source: FileSource,
    present: Collection[ListedFile],
    connection: Callable[[], Connection],
    purpose: Purpose,
) -> ConfigError:
    what = f"the source {source.name} declares no columns"
    if not present or purpose == "describe":
        return ConfigError(what, where=source.path, fix="add columns: {name: type} to its meta.arctic")
    newest = sorted(present, key=lambda file: file.modified_ms)[-_INFERRED_FROM:]
    # In strict mode, one malformed row would hide the columns of all others.
    request = read_request(source, newest)._replace(options={**source.options, "mode": "PERMISSIVE"})
    if source.format == "csv":
        request = request._replace(options={**request.options, "inferSchema": "true"})
    inferred = connection().file_columns(request)
    text = ", ".join(f"{column.name}: {_yaml(column.type)}" for column in inferred)
    return ConfigError(
        what,
        where=source.path,
        why="types that depend on the files of one day could change from run to run",
        fix=f"add them to its meta.arctic. These are the types that Spark finds in {len(newest)} of "
        f"{len(present)} files: columns: {{{text}}}",
    )


def _yaml(text: str) -> str:
    return f"'{text}'" if any(sign in text for sign in ",:<{[") else text


__all__ = ["Purpose", "plan_file_pull"]
