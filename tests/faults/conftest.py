"""One Spark for the process that recovers what others left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_arctic.engine.session import SessionEngine
from tests.faults.child import settings_for


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def engine(warehouse: Path) -> Iterator[SessionEngine]:
    made = SessionEngine(settings_for(warehouse))
    yield made
    made.close()
