"""The upstreams of an automatic model: each at the version last consumed, and at its current one.

The states are queries over pinned snapshots. So they can be used anywhere in a statement, more than once,
with the same result. No statement is run to create them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from dbt_arctic.auto.row_lineage import shows_added_rows
from dbt_arctic.auto.state_difference import compared_states, weighted_changes_sql
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed import read
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.erasure import PROPERTY_ERASE
from dbt_arctic.keyed.layout import is_bucketable
from dbt_arctic.keyed.log import (
    PROPERTY_IMAGES,
    PROPERTY_TXN,
    LogRange,
    has_rows,
    is_single,
    log_range,
    rows_added,
)
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.keyed.version import Consumed, Version, is_token
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, State
from dbt_arctic.refresh.retired_state import retired_state, retyped_column
from dbt_arctic.store.before_images import count_images
from dbt_arctic.store.change_log import logged_at
from dbt_arctic.store.consumption import has_read_further, not_before
from dbt_arctic.store.key_ranges import between, key_ranges
from dbt_arctic.store.plain_snapshot import plain_at, same_columns_at, types_at
from dbt_arctic.store.state import (
    bytes_of_row,
    columns_at,
    columns_of,
    count_rows,
    find_keyed,
    pinned_pair,
    plain_id,
    to_columns,
    version_of,
)


@dataclass(frozen=True)
class TableAtVersion:
    """A keyed table at an earlier version, whose rows can be read by a part of their key."""

    table: KeyedTable
    version: Version
    known: ColumnsAt
    logged: read.Logged

    def rows(self, keys: str, by: Sequence[str]) -> str:
        """The SQL of the rows whose columns ``by`` are among ``keys``, with the table's columns.

        :param keys: a query with the columns ``by``.
        """
        return read.merge_on_read(self.table, self.version, self.known, self.logged, keys, by)


@dataclass(frozen=True)
class Upstream:
    """One relation that a model reads.

    :param columns: names and types, as Spark writes them.
    :param key: the columns that identify a row; empty if unknown.
    :param is_declared: whether the project declares the key of a table that does not enforce it.
    :param consumed: its current version, as the model's commit will record it.
    :param states: the SQL of each state. ``old``, and states that depend on it, exist only if the model has
        read the upstream before.
    :param lost: why the changes since then are unknown; empty if they are known.
    :param changed: whether it has a commit that the model has not consumed.
    :param changed_rows: the number of changed rows; ``None`` if metadata does not contain it.
    :param rows: the number of rows; ``None`` if metadata does not contain it.
    :param row_bytes: the approximate size of a row in its files; ``None`` if unknown.
    :param stored_rows: the rows that a read may go through, including pending changes; ``None`` if unknown.
    :param images: whether the change log contains before-images.
    :param logged: whether a change log contains the changes. Otherwise two states are compared.
    :param counted: whether ``changed_rows`` is the exact number of changed keys.
    :param ranges: MIN and MAX of the key columns over the changes, as SQL literals.
    :param old_table: the earlier version, if it must be read to find the old rows of changed keys.
    :param field_ids: Iceberg's ids of the columns and their nested fields, if the catalog supplies them.
    :param name_reads_new: whether the bare name at the consumed snapshot reads what the state ``new`` does.
    """

    name: Name
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    consumed: Consumed
    states: Mapping[State, str]
    changed: bool
    lost: str = ""
    kind: str = "keyed table"
    changed_rows: int | None = None
    rows: int | None = None
    row_bytes: float | None = None
    stored_rows: int | None = None
    images: bool = False
    logged: bool = False
    counted: bool = False
    ranges: Ranges = field(default_factory=dict)
    old_table: TableAtVersion | None = None
    field_ids: Mapping[str, str] = field(default_factory=dict)
    is_declared: bool = False
    name_reads_new: bool = False

    @property
    def is_keyed(self) -> bool:
        """Whether it is a keyed table, whose rows can be looked up by key at both versions."""
        return bool(self.key) and not self.is_declared


@dataclass(frozen=True)
class View:
    """A view, which is replaced by its query.

    :param home: the catalog and schema of unqualified names in its text; an empty schema if unknown.
    """

    name: Name
    columns: tuple[tuple[str, str], ...]
    sql: str
    home: Name


def inspect_upstream(
    catalog: CatalogReader,
    name: Name,
    last: Consumed | None,
    until: Consumed | None = None,
    declared: Sequence[str] = (),
) -> Upstream | View | None:
    """A relation at its current version and at the version that the model consumed last.

    ``None`` if the relation does not exist.

    :param until: the version to read, if it is not the newest.
    :param declared: the columns that the project declares to be unique together, without NULLs. They are the
        key of a table that has no key itself.

    :raises VersionUnavailable: the name now refers to another table.
    """
    table = find_keyed(catalog, name)
    if table is not None:
        return _keyed(catalog, table, last, until)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is not None:
        return _plain(catalog, name, state, last, until, declared)
    view = catalog.of(name).load_view(name.schema, name.identifier)
    if view is None:
        return None
    columns = tuple((column.name, column.type) for column in to_columns(view.columns))
    return View(name, columns, view.sql, Name(view.catalog or name.catalog, view.namespace, name.identifier))


def _keyed(
    catalog: CatalogReader, table: KeyedTable, last: Consumed | None, until: Consumed | None
) -> Upstream:
    table, base, change = pinned_pair(catalog, table)
    table = table.visible
    now = version_of(table, base, change)
    if until is not None:
        _require_same(table.name, table.generation.change_id, until)
        now = not_before(last, until.table_id, change.history(), Version.parse(until.version))
    known = columns_of(catalog, table, now)
    columns = tuple((column.name, column.type) for column in table.columns)
    consumed = Consumed(table.generation.change_id, now.token)
    there = logged_at(catalog, table, change, now.change_snapshot)
    states: dict[State, str] = {"new": read.merge_on_read(table, now, known, there)}

    def made(changed: bool, lost: str = "", rows: int | None = None) -> Upstream:
        total, logged = count_rows(base), count_rows(change)
        return Upstream(
            table.name,
            columns,
            table.key,
            consumed,
            states,
            changed,
            lost,
            changed_rows=rows,
            rows=total,
            row_bytes=bytes_of_row(base),
            stored_rows=None if total is None or logged is None else total + logged,
            field_ids=_field_ids(base),
        )

    if last is None:
        return made(True, "the model has not read it yet")
    if not is_token(last.version):
        return made(True, "it was a plain table when the model last read it")
    before = Version.parse(last.version)
    if last.table_id != table.generation.change_id:
        try:
            old = retired_state(catalog, table, before, last, table.name.identifier)
        except VersionUnavailable as error:
            return made(True, error.what)
        if old.retyped is not None:
            return made(True, f"the type of {old.retyped} has changed")
        states.update(compared_states(old.sql, states["new"], table.types, table.key))
        return made(True)
    log = log_range(change.history(now.change_snapshot), before.change_snapshot)
    # The commit before the first one in a log may be gone although the log is complete.
    if log is None or not (_has(base, before.base_snapshot) and _has(change, before.change_snapshot)):
        return made(True, f"the changes since version {before} are gone")
    if _is_erased(change, before.change_snapshot) or _is_erased(base, before.base_snapshot):
        return made(True, "keys of it were erased")
    if not has_rows(log, change.history(now.change_snapshot)):
        return made(False)
    known.update(columns_at(catalog, table.change, (*log.readable_at, before.change_snapshot)))
    known.update(columns_at(catalog, table.base, (before.base_snapshot,)))
    ranges = key_ranges(catalog, table, log)
    single = is_single(log, change.history(now.change_snapshot)) and not table.sequence_by
    then = logged_at(catalog, table, change, before.change_snapshot)
    commits = [
        snapshot
        for snapshot in change.history(now.change_snapshot)
        if snapshot.summary.get(PROPERTY_TXN) in {str(txn) for txn in log.transactions}
    ]
    # For expired commits, only the properties that were carried forward are known.
    imaged = len(commits) == len(log.transactions) and all(
        PROPERTY_IMAGES in commit.summary or not rows_added(commit) for commit in commits
    )
    images = read.before_images(table, log, known, single=single) if imaged else ""
    states.update(_logged(table, before, then, now, log, known, ranges, single=single, images=images))
    if imaged and single:
        states["weighted"] = read.weighted_changes(table, log, SIGN_OF_ROW, known)
    rows = sum(rows_added(commit) for commit in commits)
    of_images = count_images(catalog, table, commits, now.change_snapshot)
    # The rows of expired commits are still in the table, but their number is unknown.
    is_complete = len(commits) == len(log.transactions)
    return replace(
        made(True, rows=rows - (of_images or 0) if is_complete else None),
        ranges=ranges,
        images=imaged,
        logged=True,
        old_table=None if imaged else TableAtVersion(table, before, known, then),
        counted=is_complete and single and of_images is not None,
    )


def _logged(
    table: KeyedTable,
    before: Version,
    then: read.Logged,
    now: Version,
    log: LogRange,
    known: ColumnsAt,
    ranges: Ranges,
    *,
    single: bool,
    images: str,
) -> dict[State, str]:
    """The states from a change log. Only keys in the log can differ between them.

    :param before: the version of the old state.
    :param then: what the change table contained at that version.
    :param images: the SQL of before-images; empty if the log does not contain them.
    """
    columns = quote_all(table.column_names)
    latest = read.latest_changes(table, log, now, known, single=single)
    distinct = "" if single else "DISTINCT "
    keys = f"SELECT {distinct}{quote_all(table.key)}\nFROM (\n{latest}\n)"
    old = read.merge_on_read(table, before, known, then)
    minus = images or read.merge_on_read(table, before, known, then, keys)
    if ranges and not images:
        minus = f"SELECT {columns}\nFROM (\n{minus}\n) AS m\nWHERE {between(ranges, 'm')}"
    plus = f"SELECT {columns}\nFROM (\n{latest}\n)\nWHERE {quote(ACTION)} = 'U'"
    return {
        "old": old,
        "keys": keys,
        "minus": minus,
        "plus": plus,
        "changed": f"{minus}\nUNION ALL\n{plus}",
        "weighted": weighted_changes_sql(minus, plus, columns),
    }


def _require_same(name: Name, table_id: str, until: Consumed) -> None:
    if until.table_id != table_id:
        raise VersionUnavailable(
            f"{name} was rebuilt while this invocation reads it at one version",
            where=name.dotted,
            fix="run again",
        )


def _plain(
    catalog: CatalogReader,
    name: Name,
    state: TableState,
    last: Consumed | None,
    until: Consumed | None,
    declared: Sequence[str],
) -> Upstream:
    today = {column.name: column for column in state.columns}
    types = {column.name: column.type for column in state.columns}
    columns = tuple(types.items())
    key = _key_of(types, declared)
    table_id = plain_id(state)
    now = state.current_snapshot_id
    if until is not None:
        _require_same(name, table_id, until)
        now = until.snapshot_id
        if last is not None and last.table_id == table_id:
            read = last.snapshot_id
            # If it had no rows then, whatever was read since is newer.
            if now is None or (read is not None and has_read_further(state.history(), read, now)):
                now = read
    consumed = Consumed.of_snapshot(table_id, now)
    there = {} if now is None else catalog.of(name).columns_at(name.schema, name.identifier, now)
    new = plain_at(name, today, there, now)
    states: dict[State, str] = {"new": new}

    def made(changed: bool, lost: str = "", rows: int | None = None) -> Upstream:
        total = count_rows(state)
        return Upstream(
            name,
            columns,
            key,
            consumed,
            states,
            changed,
            lost,
            "table",
            changed_rows=rows,
            rows=total,
            stored_rows=total,
            field_ids=_field_ids(state),
            is_declared=bool(key),
            name_reads_new=now is not None and same_columns_at(today, there),
        )

    if last is None:
        return made(True, "the model has not read it yet")
    if last.table_id != table_id:
        return made(True, "it was dropped and created again")
    if last.version == consumed.version:
        return made(False)
    before = last.snapshot_id
    if before is None:
        states.update(compared_states(plain_at(name, today, {}, None), new, types, key))
        return made(True)
    if not _has(state, before):
        return made(True, f"its snapshot {before} was expired")
    present = catalog.of(name).columns_at(name.schema, name.identifier, before)
    if retyped := retyped_column(types_at(today, there), types_at(today, present)):
        return made(True, f"the type of {retyped} has changed")
    old = plain_at(name, today, present, before)
    if now is not None and types.keys() <= present.keys() and shows_added_rows(state, before, now):
        number = next(one for one in state.snapshots if one.snapshot_id == before).sequence_number
        plus = f"{new}\nWHERE {quote('_last_updated_sequence_number')} > {number}"
        nothing = f"{new}\nWHERE false"
        weighted = weighted_changes_sql(nothing, plus, quote_all(types))
        states.update({"old": old, "minus": nothing, "plus": plus, "changed": plus, "weighted": weighted})
        if key:
            states["keys"] = f"SELECT {quote_all(key)} FROM (\n{plus}\n)"
        return made(True)
    states.update(compared_states(old, new, types, key))
    return made(True)


def _key_of(types: Mapping[str, str], declared: Sequence[str]) -> tuple[str, ...]:
    """The stored names of declared columns.

    Empty if the table lacks one of them, or if its type cannot be that of a key.
    """
    stored = {name.lower(): name for name in types}
    key = tuple(stored.get(name.lower(), "") for name in declared)
    return key if all(name and is_bucketable(types[name]) for name in key) else ()


def _is_erased(state: TableState, before: int) -> bool:
    """Whether an erasure, which is not in the log, has deleted rows since a snapshot."""
    since = takewhile(lambda one: one.snapshot_id != before, state.history())
    return any(PROPERTY_ERASE in one.summary for one in since)


def _field_ids(state: TableState) -> dict[str, str]:
    return {
        column.name: f"{column.field_id}{column.nested}"
        for column in state.columns
        if column.field_id is not None
    }


def _has(state: TableState, snapshot: int) -> bool:
    return any(entry.snapshot_id == snapshot for entry in state.snapshots)
