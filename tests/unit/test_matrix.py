"""The matrix of catalogs: which cells there are, and what its page says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.__main__ import chosen, run
from tests.matrix.cells import ALL, Cell
from tests.matrix.page import Result, keep, stored_results, write_page
from tests.matrix.story import Oracle


def test_cells_are_chosen_by_name() -> None:
    assert chosen("all") == list(ALL)
    assert chosen("rest-embedded-s3,sqlite-connect-file") == [
        Cell("rest", "embedded", "s3"),
        Cell("sqlite", "connect", "file"),
    ]
    with pytest.raises(SystemExit, match="no cell nowhere"):
        chosen("nowhere")


def test_a_cell_is_impossible_only_with_a_reason() -> None:
    impossible = {cell.name for cell in ALL if cell.impossible}
    assert impossible == {
        "sqlite-embedded-s3",
        "sqlite-connect-s3",
        "sqlite-thrift-s3",
        "sqlite-standalone-s3",
        "glue-embedded-file",
        "glue-connect-file",
        "glue-thrift-file",
        "glue-standalone-file",
    }


def test_the_page_has_each_cell_with_its_result(tmp_path: Path) -> None:
    results = [
        Result(
            ALL[0],
            "passed",
            components=["X 1"],
            facts={"states": {"views": "missing"}, "steps": 300, "tests": 9, "example": "has views"},
            day="2026-11-30",
        ),
        Result(ALL[1], "impossible", "a reason"),
        Result(ALL[2], "not run", "no such program"),
    ]
    write_page(tmp_path / "page.md", results, {"pyspark": "4"})
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    row = f"| `{ALL[0].name}` | passed | 2026-11-30 | X 1 | 300 | 9 | has views |  |  |  |  | missing |  |  |"
    assert row in text
    assert f"* `{ALL[1].name}`: a reason" in text
    assert f"Not run yet: `{ALL[2].name}`." in text


def test_results_are_kept_for_the_versions_with_which_they_were_found(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    keep(kept, Result(ALL[0], "passed", components=["X 1"], seconds=3), {"pyspark": "4"})
    first, second, third, *_ = stored_results(kept, {"pyspark": "4"})
    assert (first.cell, first.state, first.components, first.seconds) == (ALL[0], "passed", ["X 1"], 3)
    assert (second.cell, second.state) == (ALL[1], "impossible")
    assert third.state == "not run"
    keep(kept, Result(ALL[2], "failed", "a reason"), {"pyspark": "5"})
    assert [one.state for one in stored_results(kept, {"pyspark": "5"})[:3]] == [
        "not run",
        "impossible",
        "failed",
    ]
    assert stored_results(kept, {"pyspark": "4"})[0].state == "passed"


def test_what_a_cell_raises_fails_this_cell_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise RuntimeError("a broken pipe")

    monkeypatch.setattr("tests.matrix.__main__.running", fails)
    result = run(ALL[0], tmp_path, tmp_path)
    assert (result.state, result.why) == ("failed", "RuntimeError: a broken pipe")


def test_the_oracle_keeps_the_newest_row_of_each_key() -> None:
    oracle = Oracle()
    oracle.take({1: ("north", 10), 2: ("south", 20)})
    oracle.take({1: ("south", 11)})
    assert oracle.tables == {
        "orders": [(1, "south", 11), (2, "south", 20)],
        "merged": [(1, "south", 11), (2, "south", 20)],
        "totals": [("south", 2, 31)],
        "history": [(1, "north", 10), (1, "south", 11), (2, "south", 20)],
    }
