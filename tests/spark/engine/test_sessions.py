"""Concurrent sessions: isolation, cancelling, conflicting writers, one Spark for all."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.auto.session_settings import session_text
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.engine.capabilities import probe
from dbt_arctic.engine.doctor import diagnose
from dbt_arctic.engine.faults import Fault, classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import (
    CatalogUnavailable,
    CommitConflict,
    SparkStartError,
    StatementCancelled,
    StatementError,
)
from dbt_arctic.secret import REDACTED_BY_SPARK

Sql = Callable[..., list[tuple[Any, ...]]]

# One task, so that one of the two slots is free for other statements.
CAPABILITIES = (
    "format v3",
    "row lineage",
    "branches",
    "concurrent commits",
    "views",
    "rename",
    "drop",
)
ENDLESS = "SELECT sum(hash(id)) FROM range(0, 1000000000000, 1, 1)"


def test_conf_and_temporary_views_are_a_connections_own(engine: SessionEngine, sql: Sql) -> None:
    sql("SET spark.sql.shuffle.partitions = 3")
    sql("CREATE TEMPORARY VIEW mine AS SELECT 1 AS a")
    with contextlib.closing(engine.connect()) as other:
        cursor = other.cursor()
        cursor.execute("SET spark.sql.shuffle.partitions")
        assert cursor.fetchall() != [("spark.sql.shuffle.partitions", "3")]
        with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
            cursor.execute("SELECT * FROM mine")


def test_the_conf_of_a_session_is_known_before_it_is_opened(
    spark_settings: SparkSettings,
) -> None:
    settings = dataclasses.replace(
        spark_settings, spark_conf={**spark_settings.spark_conf, "spark.sql.x": "a"}
    )
    with contextlib.closing(SessionEngine(settings).connect()) as own:
        expected = session_text(own.conf(start=False))
        assert "spark.sql.x=a" in expected.split(";")
        assert not own.is_open
        assert session_text(own.conf()) == expected
        own.cursor().execute("SET `spark.sql.x`=`b -> c; d`")
        assert own.conf(start=False)["spark.sql.x"] == "b -> c; d"
        assert len(session_text(own.conf()).split(";")) == len(expected.split(";"))


def test_spark_hides_the_secrets_of_a_catalog_and_no_properties_of_tables(
    sql: Sql, connection: SessionConnection, schema: str
) -> None:
    prefix = "spark.sql.catalog.other."
    secrets = ("header.Authorization", "credential", "adls.auth.shared-key.account.key", "jdbc.password")
    for name in (*secrets, "uri"):
        sql(f"SET `{prefix}{name}`=hunter2")
    shown = {key: value for key, value in sql("SET") if key.startswith(prefix)}
    assert {key for key, value in shown.items() if value == "hunter2"} == {f"{prefix}uri"}
    assert len(shown) == len(secrets) + 1
    properties = {"authorization": "a", "account.key": "c"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    sql(f"CREATE TABLE lake.{schema}.t (a INT) USING iceberg TBLPROPERTIES ({listed})")
    assert properties.items() <= dict(sql(f"SHOW TBLPROPERTIES lake.{schema}.t")).items()
    config = connection.process.context._jvm.org.apache.spark.internal.config
    pattern = getattr(getattr(config, "package$"), "MODULE$").SECRET_REDACTION_PATTERN()
    assert REDACTED_BY_SPARK.startswith(f"{pattern.defaultValueString()}|")


def test_a_short_statement_does_not_wait_for_all_tasks_of_a_long_one(
    engine: SessionEngine, connection: SessionConnection
) -> None:
    status = connection.process.context.statusTracker()

    def completed() -> int:
        stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None and stage.numTasks == 900)

    brief = "SELECT count(*) FROM range(0, 100, 1, 4)"
    connection.cursor().execute(brief)  # its code is generated once
    with contextlib.closing(engine.connect()) as other, ThreadPoolExecutor() as pool:
        long = pool.submit(other.cursor().execute, "SELECT sum(hash(id)) FROM range(0, 1800000000, 1, 900)")
        while not completed():
            time.sleep(0.02)
        short = pool.submit(connection.cursor().execute, brief)
        while not short.done() and completed() < 300:
            time.sleep(0.02)
        in_time = short.done()
        other.cancel()
        with pytest.raises(StatementCancelled):
            long.result()
        short.result()
    assert in_time


def test_connections_see_each_others_commits_at_once(engine: SessionEngine, sql: Sql, schema: str) -> None:
    table = f"lake.{schema}.t"
    sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
    with contextlib.closing(engine.connect()) as other:
        reader = other.cursor()
        for number in range(3):
            reader.execute(f"SELECT count(*) FROM {table}")
            assert reader.fetchall() == [(number,)]
            sql(f"INSERT INTO {table} VALUES ({number})")


def cancel_until_done(connection: SessionConnection, running: Future[None]) -> None:
    """Cancel as a user does: again, when the first attempt came before the statement."""
    while not running.done():
        connection.cancel()
        wait([running], timeout=0.1)


def test_a_statement_is_cancelled_from_another_thread_and_none_is_sent_after_it(
    connection: SessionConnection, sql: Sql, schema: str
) -> None:
    cursor = connection.cursor()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(cursor.execute, ENDLESS)
        cancel_until_done(connection, running)
    assert isinstance(running.exception(), StatementCancelled)
    for send in (
        lambda: cursor.execute(f"CREATE TABLE lake.{schema}.late (a INT) USING iceberg"),
        lambda: connection.query_schema("SELECT 1"),
        lambda: connection.create_temp_view("late", ["a"], [["1"]]),
    ):
        with pytest.raises(StatementCancelled):
            send()


def test_cancelling_stops_only_the_own_statement(
    engine: SessionEngine, connection: SessionConnection
) -> None:
    with contextlib.closing(engine.connect()) as other, ThreadPoolExecutor(2) as threads:
        own_running = threads.submit(connection.cursor().execute, ENDLESS)
        other_running = threads.submit(other.cursor().execute, ENDLESS)
        try:
            cancel_until_done(connection, own_running)
            assert isinstance(own_running.exception(), StatementCancelled)
            assert not other_running.done()
        finally:
            cancel_until_done(connection, own_running)
            cancel_until_done(other, other_running)
        assert isinstance(other_running.exception(), StatementCancelled)


def test_concurrent_writers_all_get_their_rows_in(engine: SessionEngine, sql: Sql, schema: str) -> None:
    table = f"lake.{schema}.t"
    # Without Iceberg's own retries each lost race comes up to the cursor.
    sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('commit.retry.num-retries'='0')")

    def write(number: int) -> int:
        with contextlib.closing(engine.connect()) as own:
            cursor = own.cursor()
            written = 0
            for part in range(2):
                cursor.execute(f"INSERT INTO {table} VALUES ({number * 10 + part})")
                written += cursor.rowcount
            return written

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(write, range(8))) == [2] * 8
    assert sql(f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(16, 16)]


@pytest.mark.parametrize(
    ("statement", "tries"), [("SELECT 1", 8), ("CALL lake.system.x()", 1), ("BEGIN END", 1)]
)
def test_a_conflict_is_tried_again_only_where_nothing_can_have_been_committed(
    connection: SessionConnection, monkeypatch: pytest.MonkeyPatch, statement: str, tries: int
) -> None:
    conflict = [Cause("org.apache.iceberg.exceptions.CommitFailedException", "metadata changed")]
    attempts: list[str] = []

    def losing(self: SessionCursor, statement: Statement) -> Fault:
        attempts.append(statement.sql)
        return classify(conflict, statement.sql)

    monkeypatch.setattr("dbt_arctic.engine.cursor.FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(SessionCursor, "_attempt", losing)
    with pytest.raises(CommitConflict):
        connection.cursor().execute(statement)
    assert len(attempts) == tries


def test_a_session_may_have_a_catalog_of_its_own(spark_settings: SparkSettings, tmp_path: Path) -> None:
    elsewhere = dataclasses.replace(spark_settings, catalog="other", warehouse=str(tmp_path / "elsewhere"))
    with contextlib.closing(SessionEngine(elsewhere).connect()) as own:
        cursor = own.cursor()
        cursor.execute("CREATE SCHEMA mine")
        cursor.execute("SHOW SCHEMAS")
        assert cursor.fetchall() == [("mine",)]
        with pytest.raises(StatementError):
            cursor.execute("SHOW SCHEMAS IN lake")
    assert (tmp_path / "elsewhere" / "catalog.db").exists()


def test_a_setting_that_needs_another_process_is_refused(
    spark_settings: SparkSettings, connection: SessionConnection
) -> None:
    connection.cursor().execute("SELECT 1")
    other = SessionEngine(dataclasses.replace(spark_settings, driver_memory="3g"))
    with pytest.raises(SparkStartError, match=r"spark\.driver\.memory: 2g is running, 3g is wanted"):
        other.connect().cursor().execute("SELECT 1")


def impatient(settings: SparkSettings, warehouse: Path) -> SparkSettings:
    return dataclasses.replace(
        settings, warehouse=str(warehouse), catalog_properties={"jdbc.busy_timeout": "100"}
    )


def test_a_locked_catalog_is_waited_for_and_then_an_error(
    spark_settings: SparkSettings, tmp_path: Path
) -> None:
    with contextlib.closing(SessionEngine(impatient(spark_settings, tmp_path)).connect()) as own:
        cursor = own.cursor()
        cursor.execute("CREATE SCHEMA s")
        with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as locker:
            locker.execute("BEGIN EXCLUSIVE")
            started = time.monotonic()
            with pytest.raises(CatalogUnavailable, match="locked"):
                cursor.execute("CREATE SCHEMA s2")
            assert time.monotonic() - started > 0.1
            locker.execute("ROLLBACK")
        cursor.execute("CREATE SCHEMA s2")


def test_a_damaged_catalog_is_an_error_that_says_so(spark_settings: SparkSettings, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"this is no database" * 100)
    damaged = SessionEngine(impatient(spark_settings, tmp_path)).connect()
    with pytest.raises(CatalogUnavailable, match="not a database"):
        damaged.cursor().execute("SHOW SCHEMAS IN lake")
    damaged.close()


def test_the_doctor_finds_nothing_wrong_and_leaves_nothing_behind(
    spark_settings: SparkSettings, sql: Sql
) -> None:
    before = sql("SHOW SCHEMAS IN lake")
    checks = list(diagnose(spark_settings))
    assert [(check.name, check.ok) for check in checks] == [
        (name, True) for name in ("java", "jars", "spark", "catalog", "write", *CAPABILITIES)
    ]
    assert {check.state for check in checks} == {""}
    assert sql("SHOW SCHEMAS IN lake") == before


def test_what_a_catalog_lacks_is_found_by_trying(
    connection: SessionConnection, sql: Sql, tmp_path: Path
) -> None:
    """Iceberg's catalog in folders has no views and renames nothing."""
    sql("SET spark.sql.catalog.folders = org.apache.iceberg.spark.SparkCatalog")
    sql("SET spark.sql.catalog.folders.type = hadoop")
    sql(f"SET spark.sql.catalog.folders.warehouse = {tmp_path}")
    found = probe(connection, "folders")
    assert {one.name for one in found.tried if not one.works} == {"views", "rename"}
    assert sql("SHOW SCHEMAS IN folders") == []
    has_views = {name: SparkSqlCatalog(name, sql).has_views() for name in ("lake", "folders")}
    assert has_views == {"lake": True, "folders": False}


def test_the_doctor_stops_at_what_is_wrong(spark_settings: SparkSettings, tmp_path: Path) -> None:
    *_, java = diagnose(spark_settings, java_home=str(tmp_path))
    assert (java.name, java.ok) == ("java", False)
    assert "java_home" in java.fix
    (tmp_path / "catalog.db").write_bytes(b"this is no database" * 100)
    *_, catalog = diagnose(impatient(spark_settings, tmp_path))
    assert (catalog.name, catalog.ok) == ("catalog", False)
