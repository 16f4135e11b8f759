"""Four cells of the matrix that differ most, with one round of the project each. ``make matrix`` runs all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.dbt.keyed.kafka_topics import tools
from tests.matrix.__main__ import run
from tests.matrix.cells import Cell

CELLS = (
    Cell("postgres", "standalone", "file"),
    Cell("rest", "connect", "s3"),
    Cell("hive", "thrift", "file"),
    Cell("glue", "embedded", "s3"),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_project_has_the_rows_of_an_oracle(cell: Cell, tmp_path: Path) -> None:
    """Every component is expected in CI. On a machine without it, the cell is skipped."""
    result = run(cell, tools(), tmp_path)
    if result.state == "not run" and not os.environ.get("CI"):
        pytest.skip(f"{cell.name} was not run: {result.why}")
    assert result.state == "passed", result.why
