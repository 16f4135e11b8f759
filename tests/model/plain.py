"""Statements that users write: plain tables, their rows and columns, and views.

They are registered with those of ``statements.py``, whose forms are dbt-arctic's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.model.lake import MAIN, Refused, Row, Table
from tests.model.statements import NAME, Interpreter, parts_of, properties_of, split_list, statement

_WORD = r"`?(\w+)`?"


@statement(
    rf"CREATE (?P<replace>OR REPLACE )?TABLE (?P<name>{NAME})(?: \((?P<columns>[^\n]*?)\))? USING iceberg *"
    r"(?: *PARTITIONED BY \((?P<partitions>\w+\(.*?\)|\w+)\))?"
    r"(?:\s+TBLPROPERTIES \((?P<properties>[^\n]*?)\))?"
    r"(?:\s+AS (?P<sql>SELECT .*))?"
)
def _create(session: Interpreter, found: re.Match[str]) -> int | None:
    _, schema, name = parts_of(found["name"])
    if found["sql"]:
        columns = [(one.name, one.type, "", True) for one in session.schema(found["sql"])]
    else:
        pairs = [text.split(" ", 1) for text in split_list(found["columns"])]
        columns = [(column.strip("`"), type_.lower(), "", True) for column, type_ in pairs]
    if found["replace"]:
        _replace(session, session.lake.table(schema, name), columns)
        return None
    partitions = re.sub(r"(\w+)(?=\)|$)", r"`\1`", found["partitions"] or "")
    table = session.lake.create_table(
        schema, name, columns, {"format-version": "2", **properties_of(found["properties"])}, partitions
    )
    if found["sql"]:
        _append(session, table, MAIN, session.query(found["sql"]))
    return None


def _replace(session: Interpreter, table: Table, columns: list[tuple[str, str, str, bool]]) -> None:
    """The same table with other columns and no rows. Its snapshots stay."""
    made = session.lake.create_table(table.schema, f"{table.name} replaced", columns, {})
    session.lake.drop(made.schema, made.name, Table)
    table.fields = made.fields
    table.branches.pop(MAIN, None)
    table.changes += 1


@statement(rf"INSERT (?P<how>INTO|OVERWRITE) (?P<name>{NAME}(?:\.`[^`]+`)?) VALUES (?P<rows>.*)")
def _insert(session: Interpreter, found: re.Match[str]) -> int | None:
    table, branch = session.target(found["name"])
    names = [f"c{place}" for place in range(len(table.fields))]
    casts = [f"CAST({name} AS {one.type})" for name, one in zip(names, table.fields, strict=True)]
    sql = f"SELECT {', '.join(casts)} FROM VALUES {found['rows']} AS s({', '.join(names)})"
    rows = session.query(sql)
    if found["how"] == "OVERWRITE":
        head = table.require_branch(branch)
        paths = frozenset(file.path for file, _ in (() if head is None else head.files))
        values = [_values(table, row) for row in rows]
        session.lake.replace_files(table, branch, paths, (), values)
    else:
        _append(session, table, branch, rows)
    return len(rows)


def _append(session: Interpreter, table: Table, branch: str, rows: Iterable[tuple[Any, ...]]) -> None:
    session.lake.append(table, branch, [_values(table, row) for row in rows], session.session_summary())


def _values(table: Table, row: tuple[Any, ...]) -> dict[int, Any]:
    return {one.field_id: value for one, value in zip(table.fields, row, strict=True)}


@statement(rf"DELETE FROM (?P<name>{NAME}(?:\.`[^`]+`)?) WHERE (?P<condition>[^\n]*)")
def _delete(session: Interpreter, found: re.Match[str]) -> int | None:
    table, branch = session.target(found["name"])
    where = f"FROM {found['name']} WHERE {found['condition']}"
    gone = {row[0] for row in session.query(f"SELECT `_row_id` {where}")}
    head = table.require_branch(branch)
    taken = [
        one for one in (() if head is None else head.files) if gone & {row.row_id for row in one[0].rows}
    ]
    if all({row.row_id for row in file.rows} <= gone | hidden for file, hidden in taken):
        session.lake.delete_files(table, branch, frozenset(file.path for file, _ in taken))
    else:
        _change(session, table, branch, {row_id: {} for row_id in gone}, "delete")
    return None


@statement(
    rf"UPDATE (?P<name>{NAME}) SET (?P<column>\w+) = (?P<value>[^\n]*?)(?: WHERE (?P<condition>[^\n]*))?"
)
def _update(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    one = table.field_named(found["column"])
    value = f"CAST({found['value']} AS {one.type})"
    where = f"FROM {found['name']} WHERE {found['condition'] or 'true'}"
    rows = session.query(f"SELECT `_row_id`, {value} {where}")
    _change(session, table, MAIN, {row_id: {one.field_id: new} for row_id, new in rows}, "update")
    return None


def _change(
    session: Interpreter, table: Table, branch: str, changes: dict[int, dict[int, Any]], kind: str
) -> None:
    """Rows that go, or that get other values: by deletion vectors or by new files, as the table says."""
    head = table.require_branch(branch)
    files = () if head is None else head.files
    stored = {row.row_id: row for file, _ in files for row in file.rows}
    updated = [(row_id, {**stored[row_id].values, **new}) for row_id, new in changes.items() if new]
    if table.properties.get(f"write.{kind}.mode") == "merge-on-read":
        if kind == "delete":
            session.lake.delete_rows(table, branch, frozenset(changes), {})
        else:
            session.lake.merge(table, branch, frozenset(changes), updated, [], {})
        return
    taken = [one for one in files if any(row.row_id in changes for row in one[0].rows)]
    kept = [
        row
        for file, hidden in taken
        for row in file.rows
        if row.row_id not in hidden and row.row_id not in changes
    ]
    now = [*kept, *(Row(row_id, table.last_sequence + 1, values) for row_id, values in updated)]
    session.lake.replace_files(table, branch, frozenset(file.path for file, _ in taken), now, ())


@statement(rf"ALTER TABLE (?P<name>{NAME}) ADD COLUMN {_WORD} (?P<type>\w+)")
def _add_column(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.add_columns(table, [(found[2], found["type"].lower())])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) DROP COLUMN {_WORD}")
def _drop_column(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.drop_columns(table, [found[2]])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) RENAME COLUMN {_WORD} TO {_WORD}")
def _rename_column(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.replace_field(table, replace(table.field_named(found[2]), name=found[3]))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) ALTER COLUMN {_WORD} TYPE (?P<type>[A-Z]+)")
def _widen(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.replace_field(table, replace(table.field_named(found[2]), type=found["type"].lower()))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) CREATE (?P<kind>BRANCH|TAG) (?P<reference>\w+)")
def _create_reference(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    if found["kind"] == "BRANCH":
        session.lake.create_branch(table, found["reference"], None)
    elif table.head is None:
        raise Refused(f"Cannot create the tag {found['reference']}: {table.name} has no snapshot")
    else:
        session.lake.create_tag(table, found["reference"], table.head.snapshot_id)
    return None


@statement(rf"ALTER VIEW (?P<name>{NAME}) RENAME TO {_WORD}\.{_WORD}")
def _rename_view(session: Interpreter, found: re.Match[str]) -> int | None:
    session.lake.rename_view(*parts_of(found["name"])[1:], found[3])
    return None
