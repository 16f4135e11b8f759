"""SQL of the rows of a database's table that do not fit their source, as rows of the rejected table. Pure.

A table has states, not events: a row is read again when it changes, when it is within the overlap of the
cursor, or in each run. So the rejected rows of a source are those that did not fit when they were last read.
A row that is read again replaces its rejected row, whether it fits now or not, and one that has not changed
stays as it is. A row is recognized by its key.

The rejected row has the text of each value, so a replay reads it as it would be read from the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dbt_arctic.databases.api import Family
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.sources.database_columns import NATIVE, ReadColumn
from dbt_arctic.sources.database_rows import TableRows, as_json, error_text, is_bad, values
from dbt_arctic.store.rejected_table import COLUMNS, RejectedVersion

_OF_CURSOR: dict[Family, str] = {"timestamptz": "Z", "timestamp": "Z", "date": " 00:00:00Z"}
"""What makes a point in time of a cursor's text."""
_ROW, _PROBLEM, _KEY = "_arctic_row", "_arctic_problem", "_arctic_key"
# Without the option, Jackson reads no text of more than 20 million characters.
_MAP = "'MAP<STRING,STRING>', map('maxStringLen', '2147483647')"
_NO_TEXT = "CAST(NULL AS STRING)"
_SAME = " AND ".join(f"`found`.`{name}` <=> `known`.`{name}`" for name in ("key", "error", "raw"))


def count_bad(table: TableRows, view: str, base: RejectedVersion | None) -> str:
    """SQL of the table's name, and of how many of its rows do not fit and are not rejected yet."""
    return (
        f"SELECT `location`, sum(`row_count`)\nFROM (\n{rejected_rows(table, view, base)}\n)\n"
        "GROUP BY `location`"
    )


def rejected_rows(table: TableRows, view: str, base: RejectedVersion | None) -> str:
    """SQL of the rows of a view that do not fit, as rows of the rejected table.

    With the policy ``drop``, without their values apart from the key. Rows that are read once have no key, so
    there is one row for each error.

    :param base: the rejected rows so far. A row that is among them as it is now is left out.
    """
    if table.on_bad_row == "drop" and not table.reads_again:
        return (
            f"SELECT {_selected(table, 'count(*)', 'max(`modified`)')}\n"
            f"FROM (\nSELECT {error_text(table)} AS `error`, {_modified(table)} AS `modified`, "
            f"{_NO_TEXT} AS `key`, {_NO_TEXT} AS `raw`, CAST(NULL AS BIGINT) AS `position`\n"
            f"FROM {quote(view)}\nWHERE {table.is_read} AND ({is_bad(table)})\n)\n"
            "GROUP BY `error`, `key`, `raw`, `position`"
        )
    rows = (
        f"SELECT {_selected(table, 'CAST(1 AS BIGINT)', '`modified`')}\n"
        f"FROM (\nSELECT *\nFROM (\n{_read(table, view)}\n)\nWHERE `error` IS NOT NULL\n)"
    )
    if base is None or not table.reads_again:
        return rows
    known = f"SELECT `key`, `error`, `raw`\nFROM {base.rows}\nWHERE {_is_mine(table)}"
    return (
        f"SELECT {quote_all(COLUMNS)}\nFROM (\n{rows}\n) AS `found`\n"
        f"LEFT ANTI JOIN (\n{known}\n) AS `known` ON {_SAME}"
    )


def count_superseded(table: TableRows, view: str, base: RejectedVersion) -> str:
    """SQL of the number of rejected rows that do not stay, because their rows were read again."""
    before = f"SELECT count(*)\nFROM {base.rows}\nWHERE {_is_mine(table)}"
    return f"SELECT (\n{before}\n) - (\nSELECT count(*)\nFROM (\n{_staying(table, view, base)}\n)\n)"


def rows_not_superseded(table: TableRows, view: str, base: RejectedVersion) -> str:
    """SQL of the rejected rows that stay, those of other sources included.

    A rejected row stays if its row was not read again, or is as it was. If keys are compared, it must also
    be in the table still.
    """
    others = f"SELECT {quote_all(COLUMNS)}\nFROM {base.rows}\nWHERE NOT ({_is_mine(table)})"
    return f"{others}\nUNION ALL\n{_staying(table, view, base)}"


def _staying(table: TableRows, view: str, base: RejectedVersion) -> str:
    columns = table.key_columns
    # A key that has changed since is in the values of the row.
    of_key, of_row = f"from_json(`key`, {_MAP})", f"from_json(`raw`, {_MAP})"
    names = {name: quote(f"{_KEY}_{at}") for at, name in enumerate(columns)}
    stored = ", ".join(
        f"coalesce(try_element_at({of_key}, {literal(name)}), try_element_at({of_row}, {literal(name)})) "
        f"AS {names[name]}"
        for name in columns
    )
    mine = f"SELECT *, {stored}\nFROM {base.rows}\nWHERE {_is_mine(table)}"
    listed = ", ".join(names.values())
    read = f"SELECT `key`, `error`, `raw`, {listed}\nFROM (\n{_read(table, view, names.items())}\n)"
    known = f"SELECT `key`, `error`, `raw`\nFROM {base.rows}\nWHERE {_is_mine(table)}"
    changed = (
        f"SELECT {listed}\nFROM (\n{read}\n) AS `found`\n"
        f"LEFT ANTI JOIN (\n{known}\n) AS `known` ON `found`.`error` IS NOT NULL AND {_SAME}"
    )
    # Rows whose key is NULL are not the same row.
    again = "".join(
        f"\nLEFT ANTI JOIN (\n{changed}\n) AS `again_{at}` ON "
        + " AND ".join(f"`mine`.{names[name]} = `again_{at}`.{names[name]}" for name in key)
        for at, key in enumerate(table.keys)
    )
    there = ""
    if table.compared:
        texts = ", ".join(f"{table.text(name)} AS {names[name]}" for name in table.compared)
        same = " AND ".join(f"`mine`.{names[name]} <=> `there`.{names[name]}" for name in table.compared)
        there = f"\nLEFT SEMI JOIN (\nSELECT {texts}\nFROM {quote(view)}\n) AS `there` ON {same}"
    return f"SELECT {quote_all(COLUMNS)}\nFROM (\n{mine}\n) AS `mine`{again}{there}"


def _read(table: TableRows, view: str, keys: Iterable[tuple[str, str]] = ()) -> str:
    """SQL of the rows that were read, with what is stored of one that does not fit.

    :param keys: columns to return as well, each with its quoted name in the result.
    """
    raw = as_json(table, [one.column.name for one in table.columns])
    if table.on_bad_row == "fail":
        error = raw = _NO_TEXT  # a row that does not fit is an error of the pull
    else:
        bad = is_bad(table)
        error = f"CASE WHEN {bad} THEN {error_text(table)} END"
        raw = f"CASE WHEN {bad} THEN {raw} END" if table.on_bad_row == "quarantine" else _NO_TEXT
    key = as_json(table, table.key_columns) if table.key_columns else _NO_TEXT
    dropped = "CAST(NULL AS BIGINT)" if table.on_bad_row == "drop" else _position(table)
    parts = [
        f"{error} AS `error`, {raw} AS `raw`, {key} AS `key`",
        f"{dropped} AS `position`, {_modified(table)} AS `modified`",
        *(f"{table.text(name)} AS {to}" for name, to in keys),
    ]
    return f"SELECT {', '.join(parts)}\nFROM {quote(view)}\nWHERE {table.is_read}"


def _selected(table: TableRows, rows: str, modified: str) -> str:
    made = {
        "source": literal(table.name),
        "location": literal(table.source.table),
        "modified": modified,
        "row_count": rows,
        "rejected_at": "current_timestamp()",
        "message": f"CAST(NULL AS {COLUMNS['message']})",
    }
    return ", ".join(f"{made[name]} AS {quote(name)}" if name in made else quote(name) for name in COLUMNS)


def _cursor(table: TableRows) -> ReadColumn | None:
    name = table.source.cursor.lower()
    return next((one for one in table.columns if one.column.name.lower() == name), None)


def _modified(table: TableRows) -> str:
    """SQL of a cursor that is a time. Without a time zone, it is in UTC."""
    cursor = _cursor(table)
    if cursor is None or cursor.column.family not in _OF_CURSOR:
        return "CAST(NULL AS TIMESTAMP)"
    zone = literal(_OF_CURSOR[cursor.column.family])
    return f"try_cast(concat({table.text(cursor.column.name)}, {zone}) AS TIMESTAMP)"


def _position(table: TableRows) -> str:
    """SQL of a cursor that is a whole number."""
    cursor = _cursor(table)
    if cursor is None or cursor.column.family != "integer":
        return "CAST(0 AS BIGINT)"
    return f"coalesce(try_cast({table.text(cursor.column.name)} AS BIGINT), 0)"


def count_fitting(table: TableRows, version: RejectedVersion) -> str:
    """SQL of the number of rejected rows that fit now."""
    return f"SELECT count(*)\nFROM (\n{_stored_rows(table, version)}\n)\nWHERE {_fits_now(table)}"


def fitting_rows(table: TableRows, version: RejectedVersion) -> str:
    """SQL of the rejected rows that fit now, with the columns of a pull."""
    tolerant = replace(table, source=replace(table.source, on_bad_row="quarantine"), compared=())
    listed = ", ".join([*values(tolerant), "'U' AS `_action`"])
    return f"SELECT {listed}\nFROM (\n{_stored_rows(table, version)}\n)\nWHERE {_fits_now(table)}"


def kept_rows(table: TableRows, version: RejectedVersion) -> str:
    """SQL of the rejected rows that stay after a replay, those of other sources included."""
    error = f"concat_ws('; ', {quote(_PROBLEM)}, nullif({error_text(table)}, ''))"
    changed = {"error": f"{error} AS `error`"}
    if table.on_bad_row == "drop":
        changed |= {"raw": f"{_NO_TEXT} AS `raw`", "position": "CAST(NULL AS BIGINT) AS `position`"}
    kept = ", ".join(changed.get(name, quote(name)) for name in COLUMNS)
    return (
        f"SELECT {quote_all(COLUMNS)}\nFROM {version.rows}\nWHERE NOT ({_has_values(table)})\n"
        f"UNION ALL\nSELECT {kept}\nFROM (\n{_stored_rows(table, version)}\n)\nWHERE NOT ({_fits_now(table)})"
    )


def _stored_rows(table: TableRows, version: RejectedVersion) -> str:
    """SQL of the rejected rows of a source, with the columns of the view that they were read from."""
    read, problems = [], []
    for one in table.columns:
        name = one.column.name
        text = f"try_element_at({quote(_ROW)}, {literal(name)})"
        kind = _returned(one)
        value = text if kind == "STRING" else f"unhex({text})"
        if kind not in ("STRING", "BINARY"):
            value = f"try_cast({text} AS {kind})"
        read.append(f"{value} AS {table.read(name)}")
        lacks = literal(f"the stored row has no column {name}")
        unlike = literal(f"the stored value of {name} cannot be read as {kind}")
        problems.append(
            f"CASE WHEN NOT map_contains_key({quote(_ROW)}, {literal(name)}) THEN {lacks} "
            f"WHEN {text} IS NOT NULL AND {value} IS NULL THEN {unlike} END"
        )
    problem = f"nullif(concat_ws('; ', {', '.join(problems)}), '')"
    broken = f"CASE WHEN {quote(_ROW)} IS NULL THEN 'the stored row is no JSON object' ELSE {problem} END"
    return (
        f"SELECT *, {', '.join(read)}, {broken} AS {quote(_PROBLEM)}\n"
        f"FROM (\nSELECT *, from_json(`raw`, {_MAP}) AS {quote(_ROW)}\nFROM {version.rows}\n"
        f"WHERE {_has_values(table)}\n)"
    )


def _returned(column: ReadColumn) -> str:
    """The type of the values that the JDBC reader returns for a column."""
    is_text = column.selected.as_text or column.column.family not in NATIVE
    return "STRING" if is_text else column.column.spark_type


def _fits_now(table: TableRows) -> str:
    return f"{quote(_PROBLEM)} IS NULL AND NOT ({is_bad(table)})"


def _is_mine(table: TableRows) -> str:
    return f"`source` = {literal(table.name)}"


def _has_values(table: TableRows) -> str:
    return f"{_is_mine(table)} AND `raw` IS NOT NULL"


__all__ = [
    "count_bad",
    "count_fitting",
    "count_superseded",
    "fitting_rows",
    "kept_rows",
    "rejected_rows",
    "rows_not_superseded",
]
