"""What ``dbt debug`` asks: does each thing work that a run needs, and if not, what to type next."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings, catalog_conf, packages
from dbt_arctic.errors import ArcticError, DependencyError


class Check(NamedTuple):
    """One thing looked at. ``fix`` is empty where ``ok``."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def diagnose(settings: SparkSettings, java_home: str | None = None) -> list[Check]:
    """The checks in the order of a run: java, jars, spark, catalog, write.

    The first one that fails is the last one in the list: the others need what it lacks.
    """
    if java_home is not None:
        settings = dataclasses.replace(settings, java_home=java_home)
    checks: list[Check] = []
    name = "java"
    try:
        java = find_java(settings.java_home)
        checks.append(Check(name, True, f"Java {java.version}, {java.home}"))
        name = "spark"
        connection = SessionEngine(settings).connect()
        with contextlib.closing(connection):
            version = _rows(connection, "SELECT split(version(), ' ')[0]")[0][0]
            checks.append(Check("jars", True, ", ".join(packages(settings)) or "none of ours are wanted"))
            checks.append(Check(name, True, f"Spark {version}, {settings.master}"))
            name = "catalog"
            schemas = _rows(connection, f"SHOW SCHEMAS IN `{settings.catalog}`")
            checks.append(
                Check(name, True, f"{settings.catalog} ({_kind(settings)}), {len(schemas)} schemas")
            )
            name = "write"
            with _scratch_schema(connection, settings.catalog) as schema:
                _write_and_read(connection, f"{schema}.written")
            checks.append(Check(name, True, f"a table can be made, read and dropped in {settings.warehouse}"))
    except ArcticError as error:
        failed = "jars" if isinstance(error, DependencyError) else name
        detail = " ".join(part for part in (error.what, error.where, error.why) if part)
        checks.append(
            Check(failed, False, detail, error.fix or f"Look up {error.code} in the documentation.")
        )
    return checks


@contextlib.contextmanager
def _scratch_schema(connection: Connection, catalog: str) -> Iterator[str]:
    name = f"`{catalog}`.`dbt_arctic_debug_{uuid.uuid4().hex[:12]}`"
    _rows(connection, f"CREATE SCHEMA {name}")
    try:
        yield name
    finally:
        _rows(connection, f"DROP TABLE IF EXISTS {name}.written PURGE")
        _rows(connection, f"DROP SCHEMA {name}")


def _write_and_read(connection: Connection, table: str) -> None:
    _rows(connection, f"CREATE TABLE {table} USING iceberg AS SELECT 42 AS answer")
    read = _rows(connection, f"SELECT answer FROM {table}")
    if read != [(42,)]:
        raise ArcticError("What was written was not read again.", where=table, why=f"Read: {read}")


def _rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def _kind(settings: SparkSettings) -> str:
    conf = catalog_conf(settings)
    return conf.get("type") or conf["catalog-impl"].rsplit(".", 1)[-1]
