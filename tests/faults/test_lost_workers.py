"""A standalone cluster that loses workers; see ``tests/matrix/lost_workers.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPERATIONS = {"build", "build of the automatic model", "upsert", "refresh", "compaction"}


@pytest.mark.long
def test_nothing_is_lost_or_doubled_by_a_worker_that_is_killed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.matrix.lost_workers", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
    lost = json.loads(ended.stdout.splitlines()[-1])
    assert lost.keys() == OPERATIONS
    assert all(tasks > 0 for tasks in lost.values())
