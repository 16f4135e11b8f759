"""A round or two of ``make tpch``: its queries are incremental models, and equal to their queries.

The short form has one of the queries for a round; all 22 run on DuckDB in ``tests/planner/test_tpch.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tpch.__main__ import arguments, models_of, run
from benchmarks.tpch.data import generate
from benchmarks.tpch.lake import Lake
from benchmarks.tpch.report import last_line
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.refresh import auto_inside
from tests.extent import extent
from tests.planner import tpch_data

ROUNDS = extent(1, 2)
FEW = ("q06",)
"""Sums of one table: what is tried here is the benchmark itself."""
QUERIES = extent(FEW, tuple(tpch_data.QUERIES))


@pytest.mark.timeout(1800)
def test_every_query_of_tpch_is_incremental_and_right(
    connection: SessionConnection,
    schema: str,
    warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What large tables get is tried on small ones.
    monkeypatch.setattr(auto_inside, "WORTH_ROWS", 1)
    generate(tmp_path, 0.01)
    lake = Lake(connection, EmbeddedCatalog("lake", str(warehouse)), 2, schema)
    for setting in ("spark.sql.shuffle.partitions = 2", "spark.sql.codegen.wholeStage = false"):
        lake.run(f"SET {setting}")
    given = arguments(
        ["--scale", "0.01", "--rounds", str(ROUNDS), "--compact-every", str(ROUNDS), "--buckets", "2"]
    )
    models = [model for name, model in models_of(given).items() if name in QUERIES]
    run(lake, models, given, tmp_path)
    ways = {model.query: {(one.strategy, one.reason) for one in model.rounds} for model in models}
    others = {name for name, found in ways.items() if not any(how == "incremental" for how, _ in found)}
    # What all their rows depend on has changed: what suppliers ask in all, and whether any is complained of.
    assert others <= {"q11", "q16"}, ways
    assert all(
        found == {("skip", "unchanged"), ("full", "guard")} for name, found in ways.items() if name in others
    )
    counts = f"{len(QUERIES)} queries, {len(QUERIES) - len(others)} incremental, {ROUNDS} rounds"
    assert last_line(models, ROUNDS) == f"tpch: {counts}, 0 differences"
