"""dbt's own adapter test suite on an embedded Spark: one Spark and one warehouse for each test worker.

The suite runs dbt inside this process and gives every class a schema of its own. dbt-arctic keeps one engine
for equal settings, so all classes of a worker share a Spark although the suite resets dbt's adapters.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403  # fixtures, for this folder only


@pytest.fixture(scope="session")
def dbt_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this worker's tables."""
    return tmp_path_factory.mktemp("suite_warehouse")


@pytest.fixture(scope="class")
def dbt_profile_target(dbt_warehouse: Path) -> dict[str, Any]:
    return {
        "type": "arctic",
        "method": "session",
        "catalog": "lake",
        "warehouse": str(dbt_warehouse),
        "master": "local[2]",
        "driver_memory": "1g",
        "threads": 2,
        # The tables have a few rows: more partitions only mean more tasks.
        "spark_conf": {"spark.sql.shuffle.partitions": 2},
    }


@pytest.fixture(scope="class")
def profile_user() -> str:
    """The owner that the suite expects of each relation: a folder of files has none."""
    return ""


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory, prefix: str) -> Iterator[str]:
    """dbt's logs of one class; the suite's own fixture writes them into the repository."""
    folder = str(tmp_path_factory.mktemp("logs") / prefix)
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]


@pytest.fixture(scope="session")
def shared_data_dir() -> str:
    """Data that tests share: here there is none."""
    return ""


@pytest.fixture(scope="class")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a test may make its data; the suite's own fixture writes into the repository."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True, scope="session")
def _schemas_are_left() -> Iterator[None]:
    """Classes do not drop their schema at the end: its name is never used again, and dropping takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestProjInfo, "drop_test_schema", lambda project: None)  # noqa: F405
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The suite defines fixtures in a way that pytest 10 will no longer accept.
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning"))
