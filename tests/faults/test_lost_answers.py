"""Commits whose answers are lost, see ``tests/faults/lost_answers.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.lost_answers import CREATED

ROOT = Path(__file__).parents[2]


def played(*words: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.lost_answers", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-2000:]}"
    return ended.stdout.splitlines()


def test_a_catalog_in_a_database_neither_loses_commits_nor_deletes_their_files() -> None:
    assert played("postgres", "short") == [
        "append, 1 others: done",
        "append, 3 others: unknown",
        "update, 0 others: done",
        *(f"{what}: done" for what in CREATED),
        "cut after 0.0 s: AR203",
        "cut after 1.2 s: 08003",
        "answers: 0 wrong",
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["postgres", "rest", "hive", "glue"])
def test_each_kind_of_commit_can_lose_its_answer(kind: str) -> None:
    assert played(kind)[-1] == "answers: 0 wrong"
