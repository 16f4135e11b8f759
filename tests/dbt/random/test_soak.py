"""The command ``make soak-dbt``, with runs that are not made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.dbt.random import soak
from tests.dbt.random.case_folder import write_case
from tests.dbt.random.generate import draw_case
from tests.dbt.random.project import Batch, Case, Column, Model, Round
from tests.dbt.random.run import CaseResult, Difference
from tests.dbt.random.shrink import shrink


@pytest.mark.parametrize("differences", [0, 2])
def test_the_last_line_counts_and_a_difference_is_a_failure(
    differences: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(case: Case) -> CaseResult:
        found = [Difference(case.seed, 0, "m0", "other rows")] if case.seed < 5 + differences else []
        return CaseResult(runs=4, models=20, refused=3, differences=found)

    @contextmanager
    def bench() -> Iterator[Any]:
        yield SimpleNamespace(judge=judge)

    monkeypatch.setattr(soak, "bench", bench)
    monkeypatch.setattr(soak, "shrink", lambda place, case, difference: (case, difference))
    monkeypatch.setattr(soak, "quicken", lambda: None)
    words = ["--cases", "12", "--seed", "5", "--found", str(tmp_path)]
    assert soak.main(words) == (1 if differences else 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"dbt: 12 runs, 60 models, 9 refused, {differences} differences"
    assert len(list(tmp_path.iterdir())) == differences


def test_a_failing_case_is_written_as_a_project_that_can_be_run(tmp_path: Path) -> None:
    case = draw_case(7)
    write_case(case, tmp_path, "other rows")
    script = (tmp_path / "run.sh").read_text(encoding="utf-8")
    assert script.count("\ndbt ") == len(case.rounds)
    assert (tmp_path / "dbt_project.yml").is_file()
    assert (tmp_path / "rounds" / str(len(case.rounds) - 1)).is_dir()


def test_a_case_is_made_smaller_as_long_as_it_fails_in_the_same_way() -> None:
    """A column goes with what ``column_types`` says of it; a smaller case that fails otherwise is none."""

    def judge(case: Case) -> CaseResult:
        (model,) = case.models
        columns = {one.name for one in case.rounds[0].batches["m0"].columns}
        if {name.lower() for name in model.config.get("column_types", {})} - columns:
            kind = "refused AR-301"
        else:
            kind = "rows" if "zip" in columns else "columns"
        return CaseResult(differences=[Difference(case.seed, 0, "m0", kind, kind)])

    columns = (Column("id", "bigint"), Column("zip", "string"), Column("n", "smallint"))
    seed = Model("m0", "seed", {"column_types": {"ZIP": "string", "n": "smallint"}})
    case = Case(1, (seed,), (Round({"m0": Batch(columns, ((1, "x", 2), (2, "y", 3)))}),))
    first = judge(case).differences[0]
    smaller, difference = shrink(cast(Any, SimpleNamespace(judge=judge)), case, first)
    assert difference.kind == "rows"
    assert [one.name for one in smaller.rounds[0].batches["m0"].columns] == ["zip"]
    assert smaller.models[0].config == {"column_types": {"ZIP": "string"}}
    assert smaller.rounds[0].batches["m0"].rows == ()
