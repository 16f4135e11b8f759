"""Incremental pull: the changes of an upstream since the version that a model last consumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import ConfigError, UnknownRelation, VersionUnavailable
from dbt_arctic.keyed import read
from dbt_arctic.keyed.changes_between import changes, difference
from dbt_arctic.keyed.log import LogRange, has_rows, log_range
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.read import Images
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.type_categories import compare_exactly
from dbt_arctic.keyed.version import Consumed, Version, is_token
from dbt_arctic.refresh.retired_state import (
    RetiredState,
    as_generation,
    retired_state,
    retyped_column,
    rows_before_adoption,
    rows_in_types_of_now,
)
from dbt_arctic.store.consumption import has_read_further, not_before
from dbt_arctic.store.plain_snapshot import plain_at, types_at
from dbt_arctic.store.state import (
    columns_at,
    columns_of,
    find_keyed,
    load_change,
    load_keyed,
    other_key_type,
    pinned_pair,
    plain_id,
    version_of,
)


@dataclass(frozen=True)
class StagedView:
    """A temporary view, and the statement that creates it with a fixed plan; empty if the view exists."""

    view: str
    sql: str = ""


@dataclass(frozen=True)
class Pull:
    """The rows that a model reads from one upstream in one run.

    :param sql: a query over pinned snapshots: the columns of the upstream and ``_action`` ('U', 'D').
    :param consumed: the consumed versions, to be committed with the data computed from them.
    :param images: ``both`` adds the old row of each changed key as ``-U``.
    :param changed: whether the upstream has any commit that this model has not consumed.
    :param stage: what to run before ``sql`` can be read.
    :param few_rows: whether ``sql`` is known to read so few rows that planning takes longer than reading.
    """

    upstream: Name
    sql: str
    consumed: Consumed
    changed: bool
    images: Images = "after"
    stage: StagedView | None = None
    few_rows: bool = False


def plan_pull(
    catalog: CatalogReader,
    upstream: Name,
    last: Consumed | None,
    *,
    model: str,
    key: tuple[str, ...] = (),
    images: Images = "after",
    pin: Consumed | None = None,
    staging: str | None = None,
) -> Pull:
    """Plan what a model reads from an upstream.

    :param last: the version that the model's last commit consumed; ``None`` reads everything.
    :param pin: the version to read up to, which the model has read already; ``None`` for the current one.
    :param key: identifies rows of a plain Iceberg upstream, if updates and deletes matter.
    :param staging: a name for a temporary view of the appended rows of a plain Iceberg upstream.
    """
    check_images(images, model)
    table = find_keyed(catalog, upstream)
    if table is not None:
        return _pull_keyed(catalog, table, last, model, images, pin)
    state = catalog.of(upstream).load_table(upstream.schema, upstream.identifier)
    if state is None:
        exists = catalog.of(upstream).load_view(upstream.schema, upstream.identifier) is not None
        raise UnknownRelation(
            f"cannot pull from {upstream}",
            where=model,
            why="it is a view, and views have no versions" if exists else "it does not exist",
            fix="pull from the tables that it reads, or use ref() alone"
            if exists
            else f"build it first: dbt run --select {upstream.identifier}; a source needs meta.arctic.from",
        )
    return _pull_plain(catalog, upstream, state, last, model, key, images, pin, staging)


def _pull_keyed(
    catalog: CatalogReader,
    table: KeyedTable,
    last: Consumed | None,
    model: str,
    images: Images,
    pin: Consumed | None,
) -> Pull:
    table, base, change = pinned_pair(catalog, table)
    table = table.visible
    now = version_of(table, base, change)
    if pin is not None:
        now = _pinned(table, pin, model)
        now = not_before(last, table.generation.change_id, change.history(), now)
    consumed = Consumed(table.generation.change_id, now.token)
    known = columns_of(catalog, table, now)
    state_now = read.merge_on_read(table, now, known)
    if last is None or last.had_no_snapshot:  # a plain table without rows, before it was adopted
        return Pull(table.name, read.everything(state_now, table.column_names), consumed, True, images)
    if not is_token(last.version):
        adopted = rows_before_adoption(catalog, table, base, last, model)
        sql = _difference(adopted, state_now, table.key, table.types, images, table.name, model)
        return Pull(table.name, sql, consumed, True, images)
    before = Version.parse(last.version, where=model)
    if last.table_id == table.generation.change_id:
        log = _log(change.history(now.change_snapshot), before, table, model)
        known.update(columns_at(catalog, table.change, log.readable_at))
        if images == "after":
            sql = read.latest_changes(table, log, now, known)
        else:
            known.update(columns_at(catalog, table.change, (before.change_snapshot,)))
            known.update(columns_at(catalog, table.base, (before.base_snapshot,)))
            sql = read.latest_changes_and_before_images(table, before, now, log, known)
        return Pull(table.name, sql, consumed, has_rows(log, change.history()), images)
    retired = retired_state(catalog, table, before, last, model)
    sql = _difference(retired, state_now, table.key, table.types, images, table.name, model)
    return Pull(table.name, sql, consumed, True, images)


def pull_since_clone(
    catalog: CatalogReader,
    upstream: Name,
    source: Name,
    last: Consumed,
    *,
    model: str,
    images: Images,
    pin: Consumed | None,
) -> Pull:
    """Plan what a model reads from an upstream that was cloned from the table that the model last read.

    The two tables have no common log, so their states are compared. This happens once, since the next commit
    of the model records a version of the upstream itself.
    """
    check_images(images, model)
    table, origin = load_keyed(catalog, upstream), load_keyed(catalog, source).visible
    table, base, change = pinned_pair(catalog, table)
    table = table.visible
    now = version_of(table, base, change)
    before = Version.parse(last.version, where=model)
    if last.table_id == origin.generation.change_id:
        then = RetiredState(plan_merge_on_read(catalog, source, before.token, model), origin.types, None)
    else:
        then = retired_state(catalog, origin, before, last, model)
    if set(origin.key) != set(table.key) or other_key_type(table, origin.types):
        raise VersionUnavailable(
            f"{source} has another key than its clone {upstream}",
            where=model,
            why="a deleted row could not be distinguished from a changed one",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    present = set(origin.column_names)
    selected = ", ".join(
        quote(column.name)
        if column.name in present
        else f"CAST(NULL AS {column.type}) AS {quote(column.name)}"
        for column in table.columns
    )
    now = now if pin is None else _pinned(table, pin, model)
    state_now = plan_merge_on_read(catalog, upstream, now.token, model)
    then = RetiredState(
        f"SELECT {selected}\nFROM (\n{then.sql}\n)",
        then.types,
        then.retyped or retyped_column(table.types, origin.types),
    )
    sql = _difference(then, state_now, table.key, table.types, images, upstream, model)
    return Pull(upstream, sql, Consumed(table.generation.change_id, now.token), True, images)


def _pinned(table: KeyedTable, pin: Consumed, model: str) -> Version:
    if pin.table_id != table.generation.change_id:
        raise VersionUnavailable(
            f"{table.name} was rebuilt while this model was being compiled",
            where=model,
            fix="run the model again",
        )
    return Version.parse(pin.version, where=model)


def _difference(
    before: RetiredState,
    after: str,
    key: Sequence[str],
    types: Mapping[str, str],
    images: Images,
    upstream: Name,
    model: str,
) -> str:
    """SQL of the changes since the rows that a model has read, in which columns may have had other types."""
    rows = rows_in_types_of_now(before.sql, before.types, types, upstream, model)
    return difference(rows, after, key, types, images, retyped=before.retyped is not None)


def check_images(images: str, where: str) -> None:
    """Refuse an invalid value of ``images``."""
    if images not in ("after", "both"):
        raise ConfigError(f"images is {images!r}", where=where, fix="use images='after' or images='both'")


def _log(history: list[Snapshot], before: Version, table: KeyedTable, model: str) -> LogRange:
    log = log_range(history, before.change_snapshot)
    if log is None:
        raise VersionUnavailable(
            f"the changes of {table.name} since version {before} are no longer available",
            where=model,
            why="snapshots have expired, or the table was rolled back, since this model last read it",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    return log


def _pull_plain(
    catalog: CatalogReader,
    upstream: Name,
    state: TableState,
    last: Consumed | None,
    model: str,
    key: tuple[str, ...],
    images: Images,
    pin: Consumed | None,
    staging: str | None,
) -> Pull:
    table_id = plain_id(state)
    today = {column.name: column for column in state.columns}
    columns = tuple(today)
    if state.current_snapshot_id is None or (pin is not None and pin.had_no_snapshot):
        sql = read.everything(plain_at(upstream, today, {}, None), columns)
        if last is None or last.had_no_snapshot:
            return Pull(upstream, sql, Consumed.of_snapshot(table_id, None), last is None)
        if state.current_snapshot_id is None or last.table_id != table_id:
            raise _recreated(upstream, model)
        return Pull(upstream, sql, last, False)
    now = state.current_snapshot_id if pin is None else int(pin.version)
    consumed = Consumed.of_snapshot(table_id, now)
    there = catalog.of(upstream).columns_at(upstream.schema, upstream.identifier, now)
    state_now = plain_at(upstream, today, there, now)
    if last is None or last.had_no_snapshot:
        return Pull(upstream, read.everything(state_now, columns), consumed, True)
    if last.table_id != table_id:
        raise _recreated(upstream, model)
    before = int(last.version)
    if before == now or (pin is not None and has_read_further(state.history(), before, now)):
        return Pull(upstream, f"{read.everything(state_now, columns)}\nWHERE false", last, False)
    appended = only_appends(state, before, now)
    if appended and staging is not None:
        stage = read.appended_rows(upstream, before, now, staging)
        sql = read.everything(f"SELECT {quote_all(columns)}\nFROM {quote(staging)}", columns)
        return Pull(upstream, sql, consumed, True, images, StagedView(staging, stage))
    if before not in {snapshot.snapshot_id for snapshot in state.snapshots}:
        raise VersionUnavailable(
            f"the snapshot {before} of {upstream} no longer exists",
            where=model,
            why="it has expired since this model last read the table",
            fix=f"rebuild the model: dbt run --full-refresh --select {model}",
        )
    present = catalog.of(upstream).columns_at(upstream.schema, upstream.identifier, before)
    state_before, then = plain_at(upstream, today, present, before), types_at(today, present)
    if appended:
        sql = read.everything(f"{state_now}\nEXCEPT ALL\n{state_before}", columns)
        return Pull(upstream, sql, consumed, True)
    if not key:
        raise ConfigError(
            f"{upstream} was updated or rewritten since this model last read it, and its rows have no key",
            where=model,
            why="without a key, updated rows and new rows cannot be distinguished",
            fix="give the key: incremental_pull(..., unique_key='...')",
        )
    types = types_at(today, there)
    for name in key:
        if name in types and not compare_exactly(types[name], then[name]):
            raise VersionUnavailable(
                f"{upstream} was replaced by a table with a different key type",
                where=model,
                why=f"two different values of {name} that this model has read may be equal now",
                fix=f"rebuild the model: dbt run --full-refresh --select {model}",
            )
    before_it = RetiredState(state_before, then, retyped_column(types, then))
    sql = _difference(before_it, state_now, key, types, images, upstream, model)
    return Pull(upstream, sql, consumed, True, images)


def _recreated(upstream: Name, model: str) -> VersionUnavailable:
    return VersionUnavailable(
        f"{upstream} is not the table that this model last read: it was dropped and created again",
        where=model,
        fix=f"rebuild the model: dbt run --full-refresh --select {model}",
    )


def only_appends(state: TableState, after: int, to: int) -> bool:
    """Whether all commits between two snapshots only added rows. A rewrite of files changes no rows."""
    for snapshot in state.history(to):
        if snapshot.snapshot_id == after:
            return True
        if snapshot.operation not in ("append", "replace"):
            return False
    return False


def plan_changes(
    catalog: CatalogReader, name: Name, before: str, after: str | None, images: Images, where: str
) -> str:
    """SQL of the changes of a keyed table between two versions. The default end is the current version."""
    table, base, change = pinned_pair(catalog, load_keyed(catalog, name))
    now = version_of(table, base, change)
    end = Version.parse(after, where) if after else now
    return plan_changes_of(catalog, table, Version.parse(before, where), end, images, where)


def plan_changes_of(
    catalog: CatalogReader, table: KeyedTable, start: Version, end: Version, images: Images, where: str
) -> str:
    """SQL of the changes between two versions of a generation, which may be an earlier one."""
    check_images(images, where)
    table, name = table.visible, table.name
    for version in (start, end):
        if version.generation != table.generation.number:
            raise VersionUnavailable(
                f"version {version} does not belong to generation {table.generation.number} of {name}",
                where=where,
                why="changes are available only within one generation; a full refresh starts the next one",
                fix=f"choose two versions of one generation: dbt-arctic history {name.identifier}; in a "
                "model, compare the two states with merge_on_read(..., version=...)",
            )
    change = load_change(catalog, table)
    log = log_range(change.history(end.change_snapshot), start.change_snapshot)
    if log is None:
        raise VersionUnavailable(
            f"the changes of {name} from {start} to {end} are not available",
            where=where,
            why="the first version is not older than the second, or its snapshots have expired",
            fix=f"give the older version first; dbt-arctic history {name.identifier} lists what is left, and "
            "in a model {{ table_version(ref('...')) }} returns the current one",
        )
    snapshots = (start.change_snapshot, end.change_snapshot, *log.readable_at)
    known = {
        **columns_at(catalog, table.change, snapshots),
        **columns_at(catalog, table.base, (start.base_snapshot, end.base_snapshot)),
    }
    return changes(table, start, end, log, images, known)


def plan_merge_on_read(catalog: CatalogReader, name: Name, version: str | None, where: str) -> str:
    """SQL of the merged rows of a keyed table, now or at a version of this or the previous generation."""
    table = load_keyed(catalog, name).visible
    if version is None:
        return read.merge_on_read(table)
    at = Version.parse(version, where)
    if at.generation != table.generation.number:
        if table.previous is None or table.previous.number != at.generation:
            raise VersionUnavailable(
                f"generation {at.generation} of {name} no longer exists",
                where=where,
                why=f"the current one is {table.generation.number}; a full refresh keeps the previous one",
                fix="get a newer version with {{ table_version(ref('...')) }}",
            )
        table = as_generation(catalog, table, table.previous)
    known = columns_of(catalog, table, at)
    return read.merge_on_read(table, at, known)
