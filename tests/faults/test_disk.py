"""A full or read-only disk: nothing is lost, and the error says that it is the disk.

The cases run in a process of its own, since they spoil its disk and its limits.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults.disks import obey_permissions

ROOT = Path(__file__).parents[2]


def test_nothing_is_lost_on_a_disk_that_is_full_or_read_only(tmp_path: Path) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"),
            *("tests/faults/disk_cases.py", f"--basetemp={tmp_path / 'disk'}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=obey_permissions,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
