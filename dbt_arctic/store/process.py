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
    :param started: a mark of the machine's start and of the process's, which distinguishes it from a later
        process with the same id.
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
    """Whether a process is still running; ``None`` if that cannot be determined from here.

    Machines may have the same name, and all have the same number for the ids outside of containers. Only
    since the same start of a machine is the absence of a process a proof that it has ended.
    """
    here = this_process()
    if (process.host, process.space) != (here.host, here.space):
        return None
    if started(process.pid) == process.started:
        return True
    boot = _boot_of(process.started)
    return False if boot and boot == _boot_of(here.started) else None


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


def _boot_of(mark: str) -> str:
    return mark.partition(":")[0]


@lru_cache(maxsize=1)
def _boot() -> str:
    """The id of the machine's current start; empty if unknown."""
    try:
        return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return _output("sysctl", "-n", "kern.bootsessionuuid")


def _started_by_ps(pid: int) -> str:
    shown = _output("ps", "-p", str(pid), "-o", "stat=", "-o", "lstart=")
    since = "" if shown.startswith("Z") else " ".join(shown.split()[1:])
    return f"{_boot()}:{since}" if since else ""


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
