"""A Spark Connect server that the tests start themselves: the project's own, one for each test worker."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine.connect import ConnectConnection, ConnectEngine
from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.engine.server import Server, read_server, start_server, stop_server
from dbt_arctic.engine.settings import SparkSettings
from tests.spark.conftest import keeper  # noqa: F401  # a fixture of the same tests
from tests.spark.keyed.conftest import (  # noqa: F401  # fixtures of the same tests
    cut_off,
    has_views,
    schema,
    shop,
)

SPARK_CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A handful of rows: what costs is to plan, to compile and to start tasks."""


@pytest.fixture
def modelled() -> bool:
    """The stories run on Spark here, whatever their marks are."""
    return False


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the server's tables and its catalog."""
    return tmp_path_factory.mktemp("connect_warehouse")


@pytest.fixture(scope="session")
def server_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the project that the server belongs to."""
    return tmp_path_factory.mktemp("connect_project")


@pytest.fixture(scope="session")
def server_settings(warehouse: Path) -> SparkSettings:
    return SparkSettings(
        catalog="lake",
        warehouse=str(warehouse),
        master="local[2]",
        driver_memory="1g",
        spark_conf=SPARK_CONF,
    )


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is known of servers is kept in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@contextlib.contextmanager
def ends_with_this_process(pid: int) -> Iterator[None]:
    """A server outlives the process that started it. A server of a test must not, however the test's process
    ends.
    """
    waits = f"import os, sys; sys.stdin.read(); os.kill({pid}, 15)"
    # Its input ends when this process does.
    with subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE) as watcher:
        yield
        watcher.kill()


@pytest.fixture(scope="session")
def server(_own_state: None, server_project: Path, server_settings: SparkSettings) -> Iterator[Server]:
    """The running server."""
    started = start_server(server_project, server_settings)
    with ends_with_this_process(started.pid):
        yield started
        # What `stop` promises. A failure here is an error of the last test.
        assert stop_server(server_project) == started
    assert not started.is_alive()
    assert read_server(server_project) is None
    assert list(Path(started.log).parent.glob(f"{started.id}*")) == []


@pytest.fixture(scope="session")
def connect_settings(server: Server, server_settings: SparkSettings) -> ConnectSettings:
    return server.connect_settings(server_settings)


@pytest.fixture(scope="session")
def engine(connect_settings: ConnectSettings) -> ConnectEngine:
    return ConnectEngine(connect_settings)


@pytest.fixture
def connection(engine: ConnectEngine) -> Iterator[ConnectConnection]:
    """A session of its own for one test."""
    made = engine.connect()
    yield made
    made.close()


@pytest.fixture
def sql(connection: ConnectConnection) -> Callable[..., list[tuple[Any, ...]]]:
    """Run a statement and get its rows."""

    def run(text: str, bindings: list[Any] | None = None) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        cursor.execute(text, bindings)
        return cursor.fetchall()

    return run
