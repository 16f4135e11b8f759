"""The folder of the embedded catalog, before Spark opens it."""

from __future__ import annotations

from pathlib import Path

from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.warehouse import prepare_warehouse


def test_git_ignores_a_new_warehouse_and_an_existing_one_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    for folder in ("lake", "shared"):
        for _ in range(2):
            prepare_warehouse(SparkSettings(catalog="lake", warehouse=str(tmp_path / folder)))
    assert (tmp_path / "lake" / ".gitignore").read_text() == "*\n"
    assert [file.name for file in (tmp_path / "shared").iterdir()] == ["catalog.db"]
