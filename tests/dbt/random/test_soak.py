"""The command ``make soak-dbt``, with runs that are not made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dbt.random import soak
from tests.dbt.random.generate import draw_case
from tests.dbt.random.project import Case
from tests.dbt.random.run import Difference, Judged
from tests.dbt.random.written import write_case


@pytest.mark.parametrize("differences", [0, 2])
def test_the_last_line_counts_and_a_difference_is_a_failure(
    differences: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(case: Case) -> Judged:
        found = [Difference(case.seed, 0, "m0", "other rows")] if case.seed < 5 + differences else []
        return Judged(runs=4, models=20, refused=3, differences=found)

    @contextmanager
    def bench() -> Iterator[Any]:
        yield SimpleNamespace(judge=judge)

    monkeypatch.setattr(soak, "bench", bench)
    monkeypatch.setattr(soak, "shrink", lambda place, case, difference: (case, difference))
    monkeypatch.setattr(soak, "quicken", lambda: None)
    monkeypatch.setattr(soak.java, "choose", lambda options: None)
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
