"""What several files of planner tests share."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.planner import tpch_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """TPC-H before and after a change, for one file."""
    folder: Path = tmp_path_factory.mktemp("tpch")
    tpch_data.generate(folder)
    connection = tpch_data.load(folder)
    tpch_data.change(connection, 1)
    return connection
