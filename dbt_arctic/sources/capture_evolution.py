"""Decides what a run does about a followed table whose columns have changed, or that was truncated. Pure.

What is not in the log, such as the converted values of a column, is read from the table: all its rows, in the
order after each change that was captured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from dbt_arctic.databases.api import columns_shape, identity_in, shape_of
from dbt_arctic.databases.change_log import ALTERED
from dbt_arctic.errors import SchemaChanged, VersionUnavailable
from dbt_arctic.keyed.names import quote
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource
from dbt_arctic.sources.change_settings import ADDED, SEQUENCE, UNAVAILABLE, ChangeEvents, EarlierColumns
from dbt_arctic.sources.column_changes import RecordedTable, TableChange, table_changes
from dbt_arctic.sources.database_plan import Writes


@dataclass(frozen=True)
class Evolution:
    """What a run does about a table that has changed.

    :param changes: of the table.
    :param reads_again: whether all rows of the table are read, and of the log only the deletes.
    :param compared: columns by which the stored keys are compared with those of the table, to find deleted
        ones; empty if the log has all deletes.
    :param earlier: what the columns are called in changes from before the columns changed, where each change
        shows; ``None`` if there are no such changes.
    """

    changes: tuple[TableChange, ...] = ()
    reads_again: bool = False
    compared: tuple[str, ...] = ()
    earlier: EarlierColumns | None = None

    def applied_to(self, columns: CapturedColumns) -> CapturedColumns:
        """The columns, so that changes from before a new one lack it."""
        newer = [one.column for one in self.changes if one.effect == "null"]
        if self.earlier is not None:
            newer += [one for one in columns.events.columns if one not in self.earlier.names.values()]
        optional = tuple(dict.fromkeys((*columns.events.optional, *newer)))
        return replace(columns, events=replace(columns.events, optional=optional, earlier=self.earlier))

    @property
    def note(self) -> str:
        """What the log of the run says."""
        return "; ".join(one.text for one in self.changes)


def plan_evolution(
    source: CaptureSource,
    columns: CapturedColumns,
    before: RecordedTable | None,
    shapes: Collection[str],
    truncated: bool,
    writes: Writes,
    others: Collection[str],
    model: str,
) -> Evolution:
    """Decide what a run does.

    :param before: the table as the model has read it; ``None`` if its commit does not say.
    :param shapes: of the changes that the model has not read.
    :param truncated: whether one of these is a truncation that is to be applied.
    :param others: what else the model reads.
    :raises SchemaChanged: the columns have changed, and the source has ``schema_changes: fail``.
    :raises VersionUnavailable: the stored rows cannot be corrected, the key is another one, or the log lacks
        old values of it.
    """
    events, changes = columns.events, list[TableChange]()
    altered = [one for one in shapes if one.startswith(ALTERED)]
    rows = {columns_shape(one) for one in shapes if not one.startswith(ALTERED)}
    if before is not None:
        changes = table_changes(before, columns.table, events.columns, events.key, rows, events.optional)
    if altered:
        names = {word for one in altered for word in one.split(" ")[1:]}
        # Deletes from before the statement have the key as it was.
        of_key = "*" in names or any(names.issuperset(name.lower().split(" ")) for name in events.key)
        changes.append(TableChange("ALTER TABLE", "load" if of_key else "read"))
    if changes and source.schema_changes == "fail":
        raise SchemaChanged(
            f"the table {events.table} of the source {source.name} has changed: {_texts(changes)}",
            where=model,
            why="the source has schema_changes: fail. Nothing was written",
            fix="check the model, then load the table again (dbt run --full-refresh --select "
            f"{model}), or remove schema_changes from the source's meta.arctic",
        )
    if truncated:
        changes.append(TableChange("truncated", "read"))
    effects, reason, earlier = {one.effect for one in changes}, "", None
    if "load" in effects:
        reason = "its rows in the model have the old key"
    elif "read" in effects:
        reason = _not_replaced(source, writes) or (
            _not_compared(columns, writes, others) if truncated else ""
        )
        if not reason and writes.keeps_changes and before is not None:
            earlier, reason = _earlier_columns(columns, before, rows)
    if reason:
        raise VersionUnavailable(
            f"the table {events.table} of the source {source.name} has changed: {_texts(changes)}",
            where=model,
            why=f"the log does not have the new values of stored rows, and {reason}. Nothing was written",
            fix=f"load the table again: dbt run --full-refresh --select {model}"
            + (", with the new key as its unique_key" if "load" in effects else ""),
        )
    compared = _key_in_table(columns, writes) if truncated else ()
    if not compared:
        require_old_keys(source, events, shapes, model)
    return Evolution(tuple(changes), "read" in effects, compared, earlier)


def _earlier_columns(
    columns: CapturedColumns, before: RecordedTable, shapes: Collection[str]
) -> tuple[EarlierColumns | None, str]:
    """What the columns are called in the changes that the model has not read, or why this is not known."""
    version = columns.table.version
    if version is None or not shapes:
        return None, ""
    unknown, now = "it is not known which columns the changes before have", shape_of(version.logged)
    if set(shapes) - {before.shape, now}:
        return None, unknown
    if before.shape not in shapes:
        return None, ""
    numbers = {
        version.columns[name].number: name for name in columns.events.columns if name in version.columns
    }
    names = {one.name: numbers[one.number] for one in before.columns if one.number in numbers}
    is_other = len(names) < len(numbers) or any(old != new for old, new in names.items())
    # Where a number follows from the name, a renamed column is like one that was dropped and another one.
    is_guessed = columns.events.sends_all and len(names) < min(len(numbers), len(before.columns))
    if (before.shape == now and is_other) or is_guessed:
        return None, unknown
    return EarlierColumns(before.shape, names), ""


def require_old_keys(
    source: CaptureSource, events: ChangeEvents, shapes: Collection[str], model: str
) -> None:
    """Require that each update and delete in the log has the old values of the key.

    What the table's replica identity is now says nothing of the changes from before it was set.

    :param shapes: of the changes that the model has not read.
    :raises VersionUnavailable: one of them may lack them.
    """
    identities = {identity_in(one) for one in shapes if not one.startswith(ALTERED)}
    lacking = [(name, one) for one in identities if one is not None for name in events.key if name not in one]
    if not lacking:
        return
    name, identity = min(lacking)
    raise VersionUnavailable(
        f"changes of the source {source.name} do not have the old values of {name}, a column of its key",
        where=model,
        why="when they were made, the replica identity of the table, or of a partition, was "
        f"({', '.join(identity)}). An update that changes the key, or a delete, would leave the old row",
        fix=f"load the table again: dbt run --full-refresh --select {model}",
    )


def _texts(changes: Collection[TableChange]) -> str:
    return "; ".join(one.text for one in changes)


def _not_replaced(source: CaptureSource, writes: Writes) -> str:
    """Why rows that are read again do not replace the stored ones; empty if they do."""
    if not source.loads:
        return "the source has initial_load: false"
    return "" if writes.key and not writes.appends else "the model adds rows to those that it has"


def _not_compared(columns: CapturedColumns, writes: Writes, others: Collection[str]) -> str:
    """Why stored keys cannot be compared with those of the table; empty if they can be."""
    if not (writes.is_keyed or writes.keeps_changes):
        return "the model has no table with one row for each key"
    if others:
        return f"the model has rows of other tables as well ({', '.join(sorted(others))})"
    if not _key_in_table(columns, writes):
        return f"its unique_key ({', '.join(writes.key)}) does not consist of columns of the table"
    return ""


def _key_in_table(columns: CapturedColumns, writes: Writes) -> tuple[str, ...]:
    """The columns of the table that the model's key has; empty if it has others."""
    by_name = {name.lower(): name for name in columns.events.columns}
    found = tuple(by_name[name.lower()] for name in writes.key if name.lower() in by_name)
    return found if len(found) == len(writes.key) else ()


def all_rows_and_logged_deletes(columns: CapturedColumns, loaded: str, changes: str) -> str:
    """SQL of all rows of the table, and of the deletes in the log.

    Other changes are not decoded. Their columns may be others than those of now.

    :param loaded: SQL of the rows of the table, with the columns of changes.
    :param changes: SQL of the changes of the key alone.
    """
    events = columns.events
    listed = ", ".join(
        quote(name)
        if name in events.key or (name in ADDED and name != UNAVAILABLE)
        else f"CAST(NULL AS {kind}) AS {quote(name)}"
        for name, kind in {**events.columns, **events.added}.items()
    )
    return f"{loaded}\nUNION ALL\nSELECT {listed}\nFROM (\n{changes}\n)\nWHERE `_action` = 'D'"


def all_rows_and_logged_changes(loaded: str, *changes: str) -> str:
    """SQL of all rows of the table, and of all changes in the log.

    :param loaded: SQL of the rows of the table, with the columns of changes.
    :param changes: SQL of the changes.
    """
    return "\nUNION ALL\n".join([loaded, *(f"SELECT *\nFROM (\n{one}\n)" for one in changes)])


def deletes_by_truncations(
    columns: CapturedColumns, messages: str, changes: str, keys: Mapping[str, str], stored: str
) -> str:
    """SQL of a delete of each key at each truncation in the log. One of a row that is gone changes nothing.

    :param messages: SQL of the relation of the messages in the log.
    :param changes: SQL of their changes.
    :param keys: the stored columns by those of the table.
    :param stored: SQL of the stored rows.
    """
    types = columns.events.columns
    place, at = (f"get_json_object(`message`, '$.{name}')" for name in ("place", "at_ms"))
    truncations = (
        f"SELECT {place} AS `_at_place`, timestamp_millis(CAST({at} AS BIGINT)) AS `_at_time`\n"
        f"FROM {messages}\nWHERE get_json_object(`message`, '$.operation') = 'truncate'"
    )
    before = ", ".join(f"CAST({quote(own)} AS {types[name]}) AS {quote(name)}" for name, own in keys.items())
    logged = ", ".join(map(quote, keys))
    known = (
        f"SELECT DISTINCT {before}, '' AS {quote(SEQUENCE)}\nFROM (\n{stored}\n)\n"
        f"UNION ALL\nSELECT {logged}, min({quote(SEQUENCE)})\nFROM (\n{changes}\n)\nGROUP BY {logged}"
    )
    made = {
        SEQUENCE: "`_at_place`",
        "_source_operation": "'truncate'",
        "_source_changed_at": "`_at_time`",
        "_action": "'D'",
    }
    listed = ", ".join(
        f"{made.get(name, quote(name) if name in keys else f'CAST(NULL AS {kind})')} AS {quote(name)}"
        for name, kind in {**types, **columns.events.added}.items()
    )
    return (
        f"SELECT DISTINCT {listed}\nFROM (\n{known}\n) JOIN (\n{truncations}\n) "
        f"ON {quote(SEQUENCE)} < `_at_place`"
    )


def all_rows_and_deletes(
    columns: CapturedColumns, loaded: str, keys: Mapping[str, str], stored: str, sequence: str
) -> str:
    """SQL of all rows of the table, and of deletes of the stored keys that it does not have.

    :param loaded: SQL of the rows of the table, with the columns of changes.
    :param keys: the stored columns by those of the table.
    :param stored: SQL of the stored rows.
    :param sequence: SQL of the order of these rows: after each change that was captured, and before others.
    """
    events, there = columns.events, "`source`.`_source_operation`"
    listed = []
    for name, kind in events.columns.items():
        value = f"`source`.{quote(name)}"
        if name in keys:
            value = f"coalesce({value}, CAST(`stored`.{quote(keys[name])} AS {kind}))"
        listed.append(f"{value} AS {quote(name)}")
    made = {
        SEQUENCE: sequence,
        "_source_operation": f"coalesce({there}, 'delete')",
        UNAVAILABLE: "CAST(NULL AS ARRAY<STRING>)",
        "_action": f"IF({there} IS NULL, 'D', 'U')",
    }
    listed += [f"{made.get(name, f'`source`.{quote(name)}')} AS {quote(name)}" for name in events.added]
    joined = " AND ".join(f"`source`.{quote(name)} = `stored`.{quote(own)}" for name, own in keys.items())
    selected = ",\n  ".join(listed)
    return (
        f"SELECT\n  {selected}\nFROM (\n{loaded}\n) AS `source`\n"
        f"FULL OUTER JOIN (\n{stored}\n) AS `stored` ON {joined}"
    )


__all__ = [
    "Evolution",
    "all_rows_and_deletes",
    "all_rows_and_logged_changes",
    "all_rows_and_logged_deletes",
    "deletes_by_truncations",
    "plan_evolution",
    "require_old_keys",
]
