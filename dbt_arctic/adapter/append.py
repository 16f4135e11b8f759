"""``dbt_arctic.append``: rows of a DataFrame, appended to a table of the project's catalog.

Finds project and target as the commands do. No project is parsed, so its macros are not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.project import load_target
from dbt_arctic.adapter.target_session import TargetSession, target_session
from dbt_arctic.engine.frames import in_every_session, register_frame
from dbt_arctic.errors import ConfigError, PythonModelFailed, UnknownRelation
from dbt_arctic.keyed.names import quote
from dbt_arctic.refresh.external_append import Appended, AppendOptions, append_rows, is_appended


def append_dataframe(
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
    """What ``dbt_arctic.append`` does; it documents the arguments."""
    ordered = (deduplicate_by,) if isinstance(deduplicate_by, str) else tuple(deduplicate_by)
    options = AppendOptions(idempotency_key, action, sequence, ordered)
    found = load_target(_path(project_dir), _path(profiles_dir), target)
    with target_session(found, "append") as session:
        name = session.to_write(table)
        if is_appended(session.catalog, name, options):
            return Appended(name.dotted, written=False, rows=0)
        with _registered(session, rows, table) as sql:
            return append_rows(session.context, name, sql, options)


@contextmanager
def _registered(session: TargetSession, rows: Any, table: str) -> Iterator[str]:
    """Register a DataFrame as a temporary view. Returns SQL of its rows."""
    view = f"arctic_append_{session.context.new_txn()}"
    spark = session.spark
    shared = in_every_session(rows, view)
    if shared is None:
        _register(spark, view, rows, table)
        shared = quote(view)
    try:
        sql = f"SELECT * FROM {shared}"
        try:
            session.context.query_schema(sql)
        except UnknownRelation as error:
            raise ConfigError(
                "the DataFrame belongs to another Spark than the table",
                where=f"append to {table}",
                why="the profile describes another server, or another Spark application",
                fix="create the DataFrame with the server of the profile, or pass rows.toArrow()",
            ) from error
        yield sql
    finally:
        spark.catalog.dropTempView(view)
        spark.catalog.dropGlobalTempView(view)


def _register(spark: Any, view: str, rows: Any, table: str) -> None:
    try:
        register_frame(spark, view, rows, f"append to {table}")
    except PythonModelFailed as error:
        raise ConfigError(
            f"the rows are of the type {type(rows).__name__} and cannot be read"
            + (f": {error.what}" if error.why else ""),
            where=f"append to {table}",
            why=error.why or "it is not a DataFrame",
            fix=error.fix
            if error.why
            else "pass a DataFrame of pandas, PySpark or Polars, or an Arrow table",
        ) from error


def _path(text: str | Path | None) -> Path | None:
    return None if text is None else Path(text)


__all__ = ["append_dataframe"]
