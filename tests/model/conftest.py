"""One Spark for the tests here that need a real one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_arctic.auto import few_rows
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from tests.model.spark import SparkWorld, embedded_world
from tests.model.world import MemoryWorld


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture(scope="session")
def engine(warehouse: Path) -> Iterator[SessionEngine]:
    settings = SparkSettings(catalog="lake", warehouse=str(warehouse), master="local[2]", driver_memory="2g")
    made = SessionEngine(settings)
    yield made
    made.close()


@pytest.fixture
def spark_world(engine: SessionEngine, warehouse: Path) -> Iterator[SparkWorld]:
    made = embedded_world(engine, warehouse)
    yield made
    made.close()


@pytest.fixture
def memory_world() -> Iterator[MemoryWorld]:
    made = MemoryWorld()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of tests have few rows. Tests that are not about that refresh as if they had many."""
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
