"""What ``dbt debug`` asks: does each thing work that a run needs, and if not, what to type next."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.connect_settings import ConnectSettings
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
    """The checks of an embedded Spark in the order of a run: java, jars, spark, catalog, write.

    The first one that fails is the last one in the list: the others need what it lacks.
    """
    if java_home is not None:
        settings = dataclasses.replace(settings, java_home=java_home)

    def java() -> list[Check]:
        found = find_java(settings.java_home)
        return [Check("java", True, f"Java {found.version}, {found.home}")]

    def spark() -> list[Check]:
        version = _spark_version(connection)
        return [
            Check("jars", True, ", ".join(packages(settings)) or "none of ours are wanted"),
            Check("spark", True, f"Spark {version}, {settings.master}"),
        ]

    with contextlib.closing(SessionEngine(settings).connect()) as connection:
        stored = _of_the_catalog(connection, settings.catalog, _kind(settings), settings.warehouse)
        return _until_one_fails([("java", java), ("spark", spark), *stored])


def diagnose_server(settings: ConnectSettings, description: str) -> list[Check]:
    """The checks of a Spark Connect server: spark, catalog, write; see ``diagnose``."""

    def spark() -> list[Check]:
        return [Check("spark", True, f"Spark {_spark_version(connection)}, {description}")]

    with contextlib.closing(ConnectEngine(settings).connect()) as connection:
        stored = _of_the_catalog(connection, settings.catalog, "as the server has it", settings.catalog)
        return _until_one_fails([("spark", spark), *stored])


_Step = tuple[str, Callable[[], list[Check]]]


def _of_the_catalog(connection: Connection, catalog: str, kind: str, place: str) -> list[_Step]:
    def listed() -> list[Check]:
        schemas = _rows(connection, f"SHOW SCHEMAS IN `{catalog}`")
        return [Check("catalog", True, f"{catalog} ({kind}), {len(schemas)} schemas")]

    def written() -> list[Check]:
        with _scratch_schema(connection, catalog) as schema:
            _write_and_read(connection, f"{schema}.written")
        return [Check("write", True, f"a table can be made, read and dropped in {place}")]

    return [("catalog", listed), ("write", written)]


def _until_one_fails(steps: list[_Step]) -> list[Check]:
    checks: list[Check] = []
    for name, check in steps:
        try:
            checks.extend(check())
        except ArcticError as error:
            failed = "jars" if isinstance(error, DependencyError) else name
            detail = " ".join(part for part in (error.what, error.where, error.why) if part)
            fix = error.fix or f"See {error.code} in the documentation."
            return [*checks, Check(failed, False, detail, fix)]
    return checks


def _spark_version(connection: Connection) -> str:
    return str(_rows(connection, "SELECT split(version(), ' ')[0]")[0][0])


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
        raise ArcticError("The values read differ from the values written.", where=table, why=f"Read: {read}")


def _rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def _kind(settings: SparkSettings) -> str:
    conf = catalog_conf(settings)
    return conf.get("type") or conf["catalog-impl"].rsplit(".", 1)[-1]
