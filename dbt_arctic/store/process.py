"""Identifies a process, and checks whether it still runs.

Knows the operating system and nothing of tables.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process, as others on the same machine can recognise it.

    :param space: where process ids mean something: a container has numbers of its own.
    :param started: a mark of when it started, to tell it from a later process with the same number.
    """

    host: str
    space: str
    pid: int
    started: str

    @property
    def told(self) -> str:
        """For people."""
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    return _process(os.getpid())


def is_running(process: Process) -> bool | None:
    """Whether a process still runs; ``None`` where that cannot be told from here."""
    here = this_process()
    if (process.host, process.space) != (here.host, here.space):
        return None
    return started(process.pid) == process.started


def started(pid: int) -> str:
    """A mark of when a process started; empty when there is none of that number, or it has ended."""
    if not (_PROC / "self" / "stat").exists():
        return _started_by_ps(pid)
    try:
        # The name, in brackets, may hold anything, brackets too.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    if fields[0] in "ZX":  # ended, and its parent has not asked for it yet
        return ""
    return f"{_boot()}:{fields[19]}"


@lru_cache(maxsize=1)
def _process(pid: int) -> Process:
    space = _PROC / "self" / "ns" / "pid"
    return Process(socket.gethostname(), os.readlink(space) if space.is_symlink() else "", pid, started(pid))


def _boot() -> str:
    return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()


def _started_by_ps(pid: int) -> str:
    shown = subprocess.run(
        ["ps", "-p", str(pid), "-o", "stat=", "-o", "lstart="], capture_output=True, text=True, check=False
    ).stdout.strip()
    return "" if shown.startswith("Z") else " ".join(shown.split()[1:])
