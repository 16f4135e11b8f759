"""Starts the process of one peer, waits for it, and reads its report. It does not know the products."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from benchmarks.peers.order import WorkOrder
from benchmarks.peers.report import ProcessReport, first_line, read_lines

ROOT = Path(__file__).parents[2]


def carry_out(order: WorkOrder, python: Path, java_home: str, log: Path, timeout_s: float) -> ProcessReport:
    """One process with its Spark from its start to its end; nothing of it is left running."""
    order.folder.mkdir(parents=True, exist_ok=True)
    order.results.unlink(missing_ok=True)
    written = order.results.with_suffix(".order.json")
    written.write_text(order.to_json(), encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": java_home,
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_DIRS": str(order.folder / "spark"),
    }
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [str(python), "-m", "benchmarks.peers.child", str(written)],
            cwd=order.folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _end(process)
    told = read_lines(
        order.results.read_text(encoding="utf-8").splitlines() if order.results.exists() else []
    )
    if late:
        told.error = f"not finished after {timeout_s / 60:.0f} minutes"
    elif process.returncode and told.error is None:
        lines = [
            line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
        ]
        told.error = first_line(lines[-1] if lines else f"ended with {process.returncode}")
    return told


def _end(process: subprocess.Popen[bytes]) -> None:
    """The group of a process that we began: Python and its Spark."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
