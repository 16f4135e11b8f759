"""Identifies a process, and checks whether it is still running.

Depends only on the operating system.
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
    """A process, in a form that others on the same machine can recognise.

    :param space: the namespace of the process id. A container has its own ids.
    :param started: a mark of the start time, which distinguishes it from a later process with the same id.
    """

    host: str
    space: str
    pid: int
    started: str

    @property
    def description(self) -> str:
        """A description for messages."""
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """The current process."""
    return _process(os.getpid())


def is_running(process: Process) -> bool | None:
    """Whether a process is still running; ``None`` if that cannot be determined from here."""
    here = this_process()
    if (process.host, process.space) != (here.host, here.space):
        return None
    return started(process.pid) == process.started


def started(pid: int) -> str:
    """A mark of the start time of a process; empty if there is no process with this id or it has ended."""
    if not (_PROC / "self" / "stat").exists():
        return _started_by_ps(pid)
    try:
        # The name, in brackets, may itself contain brackets.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    if fields[0] in "ZX":  # a zombie: it has ended, and its parent has not waited for it yet
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
