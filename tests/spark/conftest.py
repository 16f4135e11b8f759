"""One Spark for all tests of a worker: starting one costs seconds, stopping one kills the others'."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the tables and the catalog of this worker's tests."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark_settings(warehouse: Path) -> SparkSettings:
    """What every test's Spark is started with; a test may replace what a session can set for itself."""
    return SparkSettings(catalog="lake", warehouse=str(warehouse), master="local[2]", driver_memory="2g")


@pytest.fixture(scope="session")
def engine(spark_settings: SparkSettings) -> Iterator[SessionEngine]:
    """The engine that this worker's tests share."""
    made = SessionEngine(spark_settings)
    yield made
    made.close()


@pytest.fixture
def connection(engine: SessionEngine) -> Iterator[SessionConnection]:
    """A session of its own for one test."""
    made = engine.connect()
    yield made
    made.close()


@pytest.fixture
def sql(connection: SessionConnection) -> Sql:
    """Run a statement and get its rows."""

    def run(text: str, bindings: list[Any] | None = None) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        cursor.execute(text, bindings)
        return cursor.fetchall()

    return run


@pytest.fixture
def schema(engine: SessionEngine) -> Iterator[str]:
    """A fresh schema's name (without the catalog's), dropped after the test with all that is in it."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    keeper = engine.connect()
    cursor = keeper.cursor()
    cursor.execute(f"CREATE SCHEMA lake.{name}")
    yield name
    cursor.execute(f"SHOW VIEWS IN lake.{name}")
    for row in cursor.fetchall():
        if not row[2]:  # temporary views are listed too, and belong to another session
            cursor.execute(f"DROP VIEW lake.{name}.`{row[1]}`")
    cursor.execute(f"SHOW TABLES IN lake.{name}")
    for row in cursor.fetchall():
        cursor.execute(f"DROP TABLE lake.{name}.`{row[1]}` PURGE")
    cursor.execute(f"DROP SCHEMA lake.{name}")
    keeper.close()
