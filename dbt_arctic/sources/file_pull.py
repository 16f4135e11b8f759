"""Plans what a model reads of a file source, and keeps the source's file list up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import CatalogReader, ListedFile, TableState
from dbt_arctic.engine.api import Connection
from dbt_arctic.errors import ConcurrentRun, ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.version import PROPERTY_SOURCE, Consumed
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.change_pull import take_changes
from dbt_arctic.sources.change_settings import must_select
from dbt_arctic.sources.change_sql import rows_of_events
from dbt_arctic.sources.file_list import (
    COLUMNS,
    append_statement,
    as_addressed,
    as_rows,
    consumed_files,
    file_list_name,
    last_list,
    load_files,
    refuse_renamed,
    replace_statement,
)
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.file_sql import delivery_of, read_request, rows_of
from dbt_arctic.sources.new_files import new_files
from dbt_arctic.sources.quarantine import cache_statement
from dbt_arctic.sources.source_planner import Planned, PullPurpose, dropped_on_error, no_rows
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import plain_id

_INFERRED_FROM = 20
"""How many files the advice on missing columns looks at."""
_MOST_DATA_FILES = 100
"""How many data files a file list may have before a run rewrites it as one."""


@dataclass(frozen=True)
class FilePlanner:
    """Plans what a model reads of a file source.

    :param connection: the session in which the SQL of the pull will run.
    :param target: the model's table.
    :param declared: the names of all sources of the project.
    """

    context: Context
    connection: Callable[[], Connection]
    source: FileSource
    target: Name
    declared: Collection[str] = ()

    @property
    def upstream(self) -> Name:
        """The model's file list of the source."""
        return file_list_name(self.target, self.source.name)

    def plan(self, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose) -> Planned:
        """Plan a run, with the errors of ``plan_file_pull``.

        :raises ConfigError: the model has read the files as another source.
        """
        catalog, source = self.context.catalog, self.source
        last = last_list(catalog, self.upstream, source.name, last_consumed)
        if last is None and last_consumed and purpose != "describe":
            present = _present(catalog, source)
            refuse_renamed(catalog, source, self.declared, present, last_consumed, model)
        pull = plan_file_pull(
            self.context, self.connection, self.source, self.upstream, last, model=model, purpose=purpose
        )
        nothing = f"The source {self.source.name} has no files in {self.source.path} yet."
        is_empty = last is None and pull.stage is None
        since, warnings = None if last is None else last[1], (nothing,) if is_empty else ()
        if self.source.changes is None or pull.stage is None:
            return Planned(pull, since, warnings)
        view, messages = pull.stage.view, delivery_of(self.source)
        if purpose != "consume":
            pull = replace(pull, sql=rows_of_events(self.source.changes, messages, view))
            return Planned(pull, since, warnings)
        with dropped_on_error(self.context, view):
            taken = take_changes(self.context, self.source.changes, messages, view, last is None, model)
        pull, needed = replace(pull, sql=taken.sql), must_select(self.source.changes)
        return Planned(pull, since, warnings, notes=taken.notes, must_select=needed)


def plan_file_pull(
    context: Context,
    connection: Callable[[], Connection],
    source: FileSource,
    name: Name,
    last: tuple[Name, Consumed] | None,
    *,
    model: str,
    purpose: PullPurpose,
) -> Pull:
    """Plan what a model reads of a file source.

    With the purpose ``consume``, the file list gets the files that it lacks first: one commit, and none if
    there are none. Spark does not start if the model has nothing to read.

    :param connection: the session in which the SQL of the pull will run.
    :param name: the model's file list of the source.
    :param last: what the model's last commit consumed, and of which file list; ``None`` for nothing.
    :raises ConfigError: the source declares no columns.
    :raises SourceFileChanged: see ``new_files``.
    :raises VersionUnavailable: the file list has lost what the model has read.
    """
    present = _present(context.catalog, source)
    if not source.columns:
        raise _no_columns(source, present, connection, purpose)
    state = _load(context, name, source)
    head = state.current_snapshot_id if state else None
    stored = load_files(context.catalog, name, head)
    listed = as_addressed(stored, source.path)
    is_at_head = last is not None and last == (name, _version(state))
    consumed = listed if is_at_head else consumed_files(context.catalog, last, model)
    consumed = None if consumed is None else as_addressed(consumed, source.path)
    if purpose == "describe":
        # Files that have changed or disappeared matter to a run that reads rows.
        unread = present.difference(consumed or ())
        version = _version(state) if last is None or unread else last[1]
        return Pull(name, _described(source, unread), version, last is None or bool(unread))
    files = new_files(source, present, listed, consumed, model)
    # What the model has read stays listed, also if a refresh that failed has replaced the list since. A
    # version of a file that only a failed run has found does not: the model would never read it.
    wanted = present if consumed is None else present | consumed
    if last is not None and not files:
        if purpose == "consume" and source.changed_files == "ignore" and not listed <= wanted:
            # Files that are gone are left out for good, not only as long as the source says so.
            _write(context, connection(), name, source, listed & wanted, replaces=True)
        # A list that lacks something is completed by the run that reads files. A clone that has not written
        # gets none: what its original has read later, and lost, is not a file that the clone has found.
        return Pull(name, _described(source, files), last[1], False)
    if purpose == "consume" and (state is None or wanted != stored):
        # Each run with new files adds a file to the list, and reading the list opens all of them.
        replaces = state is None or not stored <= wanted or _data_files(state) >= _MOST_DATA_FILES
        _write(context, connection(), name, source, wanted if replaces else wanted - stored, replaces)
        state = _load(context, name, source)
        if load_files(context.catalog, name, state.current_snapshot_id if state else None) != wanted:
            raise ConcurrentRun(
                f"another run of the model wrote to {name} at the same time",
                where=model,
                why="it may have found files that this run has not read",
                fix=f"nothing was written; run the model again: dbt run --select {model}",
            )
    version = _version(state)
    if not files:
        return Pull(name, _described(source, files), version, True)
    view = f"{name.identifier}__pull_{context.new_txn()}"
    connection().create_file_view(view, read_request(source, files))
    if purpose == "consume" and source.on_bad_row != "fail":
        context.run("stage", cache_statement(view))
    return Pull(name, rows_of(source, view), version, True, stage=StagedView(view))


def _present(catalog: CatalogReader, source: FileSource) -> set[ListedFile]:
    return {file for file in catalog.list_files(source.path) if source.accepts(file.path)}


def _data_files(state: TableState) -> int:
    history = state.history()
    return int(history[0].summary.get("total-data-files", 0)) if history else 0


def _version(state: TableState | None) -> Consumed:
    """A file list as it is now; of one that does not exist, a version that nothing has."""
    if state is None:
        return Consumed.of_snapshot("", None)
    return Consumed.of_snapshot(plain_id(state), state.current_snapshot_id)


def _described(source: FileSource, files: Collection[ListedFile]) -> str:
    return no_rows(f"{counted(len(files), 'new file')} of {source.name}", {**source.columns, **source.added})


def _load(context: Context, name: Name, source: FileSource) -> TableState | None:
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is not None and state.properties.get(PROPERTY_SOURCE) != source.name:
        raise ConfigError(
            f"the table {name} is not the file list of the source {source.name}",
            where=name.dotted,
            why=f"it has this name, but not the property {PROPERTY_SOURCE}={source.name}",
            fix="rename the table, or the source",
        )
    return state


def _write(
    context: Context,
    connection: Connection,
    name: Name,
    source: FileSource,
    files: Collection[ListedFile],
    replaces: bool,
) -> None:
    """Append files to a file list, or replace or create it with them."""
    view = f"{name.identifier}_{context.new_txn()}"
    connection.create_temp_view(view, COLUMNS, as_rows(files))
    statement = replace_statement(name, source.name, view) if replaces else append_statement(name, view)
    try:
        context.run("list_files", statement)
    finally:
        context.run("drop_staging", f"DROP VIEW IF EXISTS {quote(view)}")


def _no_columns(
    source: FileSource,
    present: Collection[ListedFile],
    connection: Callable[[], Connection],
    purpose: PullPurpose,
) -> ConfigError:
    what = f"the source {source.name} declares no columns"
    if not present or purpose == "describe":
        return ConfigError(what, where=source.path, fix="add columns: {name: type} to its meta.arctic")
    newest = sorted(present, key=lambda file: file.modified_ms)[-_INFERRED_FROM:]
    # In strict mode, one malformed row would hide the columns of all others.
    request = read_request(replace(source, on_bad_row="fail"), newest)
    request = request._replace(options={**source.options, "mode": "PERMISSIVE"})
    if source.format == "csv":
        request = request._replace(options={**request.options, "inferSchema": "true"})
    inferred = connection().file_columns(request)
    text = ", ".join(f"{column.name}: {_yaml(column.type)}" for column in inferred)
    return ConfigError(
        what,
        where=source.path,
        why="types that depend on the files of one day could change from run to run",
        fix=f"add them to its meta.arctic. These are the types that Spark finds in {len(newest)} of "
        f"{counted(len(present), 'file')}: columns: {{{text}}}",
    )


def _yaml(text: str) -> str:
    return f"'{text}'" if any(sign in text for sign in ",:<{[") else text


__all__ = ["FilePlanner", "plan_file_pull"]
