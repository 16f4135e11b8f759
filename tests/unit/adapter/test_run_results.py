"""What dbt's artifact of the last command contains for each model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.run_results import Refresh, read_run_results
from dbt_arctic.errors import ConfigError


def result(unique_id: str, status: str = "success", **changes: Any) -> dict[str, Any]:
    told = {"unique_id": unique_id, "status": status, "execution_time": 1.5, "message": "OK"}
    return {**told, "adapter_response": {}, **changes}


def write_run_results(folder: Path, *results: dict[str, Any]) -> Path:
    document = {
        "metadata": {"generated_at": "2027-01-15T08:00:00Z"},
        "args": {"which": "build"},
        "elapsed_time": 9.5,
        "results": list(results),
    }
    (folder / "run_results.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_a_model_reports_its_strategy_and_what_it_read(tmp_path: Path) -> None:
    response = {
        "strategy": "incremental",
        "reason": None,
        "keys": 3,
        "rows_affected": 5,
        "bytes_read": 700,
        "bytes_written": 80,
    }
    found = read_run_results(
        write_run_results(
            tmp_path,
            result("model.shop.revenue", adapter_response=response),
            result("seed.shop.zones"),
            result("test.shop.not_null", "fail"),
        )
    )
    assert found is not None
    assert (found.command, found.seconds) == ("build", 9.5)
    assert found.refreshes == (
        Refresh("revenue", "success", 1.5, "incremental", "", 3, 5, 700, 80),
        Refresh("zones", "success", 1.5),
    )


def test_a_failure_shows_what_happened(tmp_path: Path) -> None:
    failed = result("model.shop.revenue", "error", message="Database Error\n  AR-303 NULL")
    found = read_run_results(write_run_results(tmp_path, failed))
    assert found is not None
    assert found.refreshes == (Refresh("revenue", "error", 1.5, reason="AR-303 NULL"),)


def test_before_the_first_command_there_is_nothing(tmp_path: Path) -> None:
    assert read_run_results(tmp_path) is None


@pytest.mark.parametrize("command", ["compile", "generate", "show"])
def test_a_command_that_runs_nothing_has_no_results(tmp_path: Path, command: str) -> None:
    file = write_run_results(tmp_path, result("model.shop.revenue")) / "run_results.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"build"', f'"{command}"'), encoding="utf-8")
    assert read_run_results(tmp_path) is None


@pytest.mark.parametrize("content", ["{", "[]", '{"results": []}', '{"metadata": 1}'])
def test_another_file_of_that_name_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "run_results.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="an artifact of dbt cannot be read"):
        read_run_results(tmp_path)
