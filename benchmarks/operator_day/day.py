"""The runs of the day: the shop is built, changed in rounds, compacted; some rounds leave models out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from dbt.cli.main import dbtRunner

PROJECT = Path(__file__).resolve().parent


class Day:
    """One work folder. dbt runs in this process, so that Spark starts once."""

    def __init__(self, work: Path, orders: int, told: Callable[[str], None] = print) -> None:
        self.work, self._orders, self._told = work, orders, told
        self._round = 0
        os.environ["DAY_WAREHOUSE"] = str(work / "warehouse")
        os.environ["DBT_TARGET_PATH"] = str(work / "target")

    def run(self, *arguments: str) -> None:
        """A round: every model, or those that ``--select`` names.

        :raises RuntimeError: dbt failed.
        """
        variables = f"{{round: {self._round}, orders: {self._orders}}}"
        self._round += 1
        self._dbt("run", "--vars", variables, *arguments)

    def _dbt(self, *arguments: str) -> None:
        began = time.monotonic()
        places = ["--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
        places += ["--log-path", str(self.work / "logs"), "--log-level", "none"]
        done = dbtRunner().invoke([*arguments, *places])
        if not done.success:
            raise RuntimeError(f"dbt {' '.join(arguments)} failed: {self.work / 'logs' / 'dbt.log'}")
        self._told(f"dbt {' '.join(arguments)}: {time.monotonic() - began:.0f} s")
