"""dbt-arctic: keyed lakehouse tables on Apache Spark and Apache Iceberg, for dbt.

``append`` and ``read`` are for programs that are not dbt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

    from dbt_arctic.refresh.external_append import Appended

__all__ = ["append", "read"]


def append(
    table: str,
    rows: Any,
    *,
    idempotency_key: str | None = None,
    action: str | None = None,
    sequence: str | None = None,
    deduplicate_by: str | Sequence[str] = (),
    project_dir: str | Path | None = None,
    profiles_dir: str | Path | None = None,
    target: str | None = None,
) -> Appended:
    """Append the rows of a DataFrame to a keyed or plain table, in one commit.

    In a keyed table, a row replaces the one with its key, or deletes it.

    :param table: ``orders`` in the schema of the target, or ``schema.orders``. It must exist.
    :param rows: of pandas, PySpark, pandas-on-Spark, Arrow or Polars, with exactly the columns of the table,
        and for a keyed table optionally an action.
    :param idempotency_key: a name of the batch of at most 128 characters. If a batch with this name is in the
        table, nothing is written.
    :param action: the column of ``U`` (upsert) and ``D`` (delete). Default: ``_action``, if there is one.
    :param sequence: the column with the values of the table's ``sequence_by``, if it has another name.
    :param deduplicate_by: of several rows with one key, the one with the greatest values of these SQL
        expressions wins. Without it, they are an error.
    :param project_dir: the folder of the dbt project. Default: as dbt finds it.
    :param profiles_dir: the folder of ``profiles.yml``. Default: as dbt finds it.
    :param target: a target of the profile. Default: that of the profile.
    :returns: whether the batch was written now, and the number of its rows.
    :raises dbt_arctic.errors.SchemaChanged: columns or types are not those of the table.
    :raises dbt_arctic.errors.ConcurrentRun: a full refresh is active, or other writers kept committing.
        Nothing was written.
    :raises dbt_arctic.errors.ArcticError: any other error, with a code.
    """
    # Importing dbt takes a second, and most of the package is used without it.
    from dbt_arctic.adapter.append import append_dataframe

    return append_dataframe(
        table,
        rows,
        idempotency_key=idempotency_key,
        action=action,
        sequence=sequence,
        deduplicate_by=deduplicate_by,
        project_dir=project_dir,
        profiles_dir=profiles_dir,
        target=target,
    )


def read(
    table: str,
    *,
    columns: Sequence[str] | None = None,
    keys: Any = None,
    where: Mapping[str, Any] | None = None,
    at: str | int | date | None = None,
    limit: int | None = None,
    project_dir: str | Path | None = None,
    profiles_dir: str | Path | None = None,
    target: str | None = None,
) -> pyarrow.Table:
    """Read rows of a table as Arrow, without Spark: the same rows that its view has.

    Only the files that may have the keys are opened. The rows are in no particular order, and all in memory.

    :param table: ``orders`` in the schema of the target, or ``schema.orders``: a keyed table, a plain one, or
        a clone.
    :param columns: names of columns. Default: all.
    :param keys: the keys whose rows are returned, of a keyed table: values of its key column; tuples if the
        key has several columns; dictionaries; or a DataFrame or Arrow table with the key columns.
    :param where: values of columns: a row is returned if each of these columns has its value, or one of its
        values if several are given. ``None`` is NULL. If one of the columns has an index, the rows are found
        through it.
    :param at: a version that ``dbt-arctic history`` lists, a savepoint or a time (UTC by default). For a
        plain table, the id of a snapshot or a time. Default: now.
    :param limit: at most this number of rows. Files are only read until there are enough rows.
    :param project_dir: the folder of the dbt project. Default: as dbt finds it.
    :param profiles_dir: the folder of ``profiles.yml``. Default: as dbt finds it.
    :param target: a target of the profile. Default: that of the profile.
    :returns: the columns in the order of the view, or of ``columns``. Strings, binary values and lists have
        Arrow's large types, and a ``timestamp`` is in UTC.
    :raises dbt_arctic.errors.OnlyBySpark: only Spark can read the table.
    :raises dbt_arctic.errors.ArcticError: any other error, with a code.
    """
    # Importing dbt takes a second, and most of the package is used without it.
    from dbt_arctic.adapter.read import read_rows

    return read_rows(
        table,
        columns=columns,
        keys=keys,
        where=where,
        at=at,
        limit=limit,
        project_dir=project_dir,
        profiles_dir=profiles_dir,
        target=target,
    )
