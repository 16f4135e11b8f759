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


@pytest.fixture(scope="session")
def keeper(engine: SessionEngine) -> Iterator[SessionConnection]:
    """Makes the schemas: a session of its own for each would cost more than the schema."""
    made = engine.connect()
    yield made
    made.close()


@pytest.fixture
def schema(keeper: SessionConnection) -> str:
    """A fresh schema's name (without the catalog's). It stays, as the warehouse is thrown away: to drop what
    is in it takes seconds.
    """
    name = f"test_{uuid.uuid4().hex[:12]}"
    keeper.cursor().execute(f"CREATE SCHEMA lake.{name}")
    return name
