"""The SQL by which a snapshot identifies rows and detects changes. Pure functions over columns."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from dbt_arctic.adapter.column import ArcticColumn
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import EXACT_JSON, raise_error_sql
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.keyed.null_safe_equality import comparable

STORED, QUERIED = "snapshotted_data", "source_data"
"""The aliases of the snapshot's rows and of the model's rows in dbt's staging query."""


def key_expression(unique_key: str | Sequence[str], columns: Sequence[str]) -> str:
    """SQL of a single value, never NULL, for the key of a row. A key may contain NULL.

    :param unique_key: columns, or SQL expressions over them.

    >>> key_expression(["shop", "a - b"], ["Shop", "a", "b"])
    "named_struct('k1', `Shop`, 'k2', a - b)"
    """
    parts = [unique_key] if isinstance(unique_key, str) else list(unique_key)
    listed = ", ".join(f"'k{number}', {column_or_sql(part, columns)}" for number, part in enumerate(parts, 1))
    return f"named_struct({listed})"


def column_or_sql(text: str, columns: Sequence[str]) -> str:
    """A column of the query in backticks, or an SQL expression as it is.

    >>> column_or_sql("X-Y", ["x", "y", "x-y"]), column_or_sql("x - y", ["x", "y", "x-y"])
    ('`x-y`', 'x - y')
    """
    name = next((column for column in columns if column.lower() == text.strip().lower()), None)
    return text if name is None else quote(name)


def unique_rows(
    rows: str, source: str, unique_key: str | Sequence[str], columns: Sequence[str], model: str
) -> str:
    """SQL of the rows to write, which fails if two rows of the snapshot's query have the same key.

    Otherwise the first run would store both, and later runs would close one by the other. The keys are
    counted by a subquery that reads only the key columns.

    :param rows: SQL of the rows.
    :param source: the snapshot's query.
    """
    parts = [unique_key] if isinstance(unique_key, str) else list(unique_key)
    shown = ", ".join(f"{literal(part)}, {column_or_sql(part, columns)}" for part in parts)
    error = raise_error_sql(
        "AR-304",
        "several rows of the snapshot's query have the same key: ",
        "concat_ws(', ', collect_list(replace(left(shown, 200), '|', '/')))",
        model.replace("|", "/"),
        "a snapshot follows one row of each key; nothing was written",
        "make unique_key unique in the query: add a column to it, or select one row of each key",
    )
    return (
        f"SELECT *\nFROM (\n{rows}\n) AS arctic_rows\nWHERE (\n"
        f"  SELECT CASE WHEN count(*) = 0 THEN true ELSE {error} END\n  FROM (\n"
        f"    SELECT first(to_json(named_struct({shown}), {EXACT_JSON})) AS shown\n"
        f"    FROM (\n{source}\n) AS arctic_source\n"
        f"    GROUP BY {key_expression(unique_key, columns)}\n    HAVING count(*) > 1\n    LIMIT 3\n"
        "  ) AS arctic_repeated\n)"
    )


def unique_ids(rows: str, target: str, scd_id: str, other_id: str) -> str:
    """SQL of the rows to write, in which no new record has the id of a stored one.

    dbt computes the id from the key and ``updated_at``. A row that returns with its old ``updated_at`` after
    its key was deleted, or that changes without a new ``updated_at``, would get the id of an earlier record,
    and the MERGE would not insert it.

    :param target: SQL of the snapshot's name.
    :param other_id: SQL of an id for such a row.
    """
    return (
        f"SELECT arctic_changes.* EXCEPT ({scd_id}),\n"
        f"  CASE WHEN arctic_stored_id IS NULL THEN {scd_id} ELSE {other_id} END AS {scd_id}\n"
        f"FROM (\n{rows}\n) AS arctic_changes\n"
        f"LEFT JOIN (SELECT DISTINCT {scd_id} AS arctic_stored_id FROM {target})\n"
        f"  ON dbt_change_type = 'insert' AND {scd_id} = arctic_stored_id"
    )


def ended_rows(rows: str, valid_to: str, now: str) -> str:
    """SQL of the rows to write, in which a record that ends has an end.

    dbt ends a record at the ``updated_at`` of its successor. If that is NULL, the record would stay
    current.

    :param now: SQL of the time of the run, in the type of ``valid_to``.
    """
    return (
        f"SELECT arctic_ended.* EXCEPT ({valid_to}),\n"
        f"  CASE WHEN dbt_change_type = 'update' THEN coalesce({valid_to}, {now}) ELSE {valid_to} END"
        f" AS {valid_to}\n"
        f"FROM (\n{rows}\n) AS arctic_ended"
    )


def without_deletions(rows: str, is_deleted: str | None) -> str:
    """SQL of the rows to write, without those that say that a key is no longer there.

    :param is_deleted: the column that marks the record of a deletion; ``None`` if there are no such records.
    """
    records = f" AND NOT (dbt_change_type = 'insert' AND {is_deleted} <=> 'True')" if is_deleted else ""
    return f"SELECT *\nFROM (\n{rows}\n) AS arctic_found\nWHERE dbt_change_type <> 'delete'{records}"


def known_deletions(rows: str, is_deleted: str) -> str:
    """dbt's SQL of the rows to write, in which a record without a mark is not a deleted one.

    A record has no mark if it was written without ``hard_deletes='new_record'``. dbt would compare NULL with
    'True', and so would never notice that the key was deleted.
    """
    return rows.replace(f"{STORED}.{is_deleted} = 'True'", f"{STORED}.{is_deleted} <=> 'True'")


def time_type(model: str, updated_at: str, type_: str, hard_deletes: str) -> str:
    """The type of the times of a snapshot, which is that of ``updated_at``.

    :param type_: the type of ``updated_at``.
    :returns: empty for TIMESTAMP, which needs no cast, and for types that are not compared with a time.
    :raises ConfigError: the time of a deletion cannot be a value of this type.
    """
    if type_ in ("date", "timestamp_ntz"):
        return type_
    if type_ != "timestamp" and hard_deletes != "ignore":
        raise ConfigError(
            f"updated_at is {updated_at}, which is of type {type_}, and hard_deletes is '{hard_deletes}'",
            where=model,
            why="the time of a deletion is stored in the same columns, and cannot be compared with it",
            fix="cast it to timestamp in the snapshot's query, or set hard_deletes to 'ignore'",
        )
    return ""


def checked_columns(model: str, check_cols: str | Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that are compared, in the spelling of the query.

    :raises ConfigError: a named column is not in the query.
    """
    if check_cols == "all":
        return list(columns)
    known = {column.lower(): column for column in columns}
    names = [check_cols] if isinstance(check_cols, str) else list(check_cols)
    if not names:
        raise ConfigError("check_cols is empty", where=model, fix="check_cols='all', or a list of columns")
    wrong = [name for name in names if _plain(name) not in known]
    if wrong:
        meant = difflib.get_close_matches(wrong[0].lower(), known, n=1)
        raise ConfigError(
            f"check_cols contains {wrong[0]}, which is not a column of the snapshot's query",
            where=model,
            why=f"its columns are: {', '.join(columns)}",
            fix=f"did you mean {known[meant[0]]}?"
            if meant
            else "use a column; for an expression, select it under a name and use that name",
        )
    return [known[_plain(name)] for name in names]


def has_changed(
    checked: Sequence[str], queried: Sequence[ArcticColumn], stored: Sequence[ArcticColumn]
) -> str:
    """SQL condition that a row of the query differs from the current one of the snapshot in a checked column.

    Supports every type. NULL equals NULL. If the snapshot lacks the column, it has changed in each row.

    :param queried: in the shape of ``stored``: struct fields with the same names in the same order.
    """
    there: Mapping[str, ArcticColumn] = {column.name.lower(): column for column in stored}
    types = {column.name: column.dtype for column in queried}
    if any(name.lower() not in there for name in checked):
        return "(true)"  # dbt appends to it without a space
    differing = []
    for name in checked:
        column = there[name.lower()]
        old = comparable(f"{STORED}.{column.quoted}", column.dtype)
        new = comparable(f"{QUERIED}.{quote(name)}", types[name])
        differing.append(f"not ({old} <=> {new})")
    return "(" + "\n  or ".join(differing) + ")"


def is_newer(columns: Mapping[str, str]) -> str:
    """SQL condition that a row was updated after the current one. Any time is after NULL.

    :param columns: the names of the snapshot's own columns, by dbt's names. In dbt's SQL, the row of the
        query has its ``updated_at``, which may be an expression, under one of them.
    """
    old, new = f"{STORED}.{columns['dbt_valid_from']}", f"{QUERIED}.{columns['dbt_updated_at']}"
    return f"({old} < {new} or ({old} is null and {new} is not null))"


def _plain(name: str) -> str:
    return name.strip().strip("`").lower()
