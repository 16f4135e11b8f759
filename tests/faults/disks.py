"""A disk that fills up, or loses its write permissions, between two statements; for any user, root included.

A full disk is a limit on the size of files: each write beyond it fails, in Java and in this process. The
limit can be set and lifted from outside while they run. What root may do in spite of permissions is taken
from it before Java starts.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sqlite3
from pathlib import Path

KINDS = ("full", "catalog full", "read-only", "catalog read-only")
_LARGEST = 256 * 1024
"""Larger than any file of these tests but the catalog's, which begins with more than that."""
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def obey_permissions() -> None:
    """Called before a program is started: permissions restrict where it may write, even if root runs it."""
    if os.geteuid() == 0:
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def make_catalog(warehouse: Path) -> None:
    """A catalog whose tables lie behind the size at which a disk is full for it alone."""
    connection = sqlite3.connect(warehouse / "catalog.db")
    connection.execute(f"CREATE TABLE ballast AS SELECT zeroblob({2 * _LARGEST}) AS filler")
    connection.commit()
    connection.close()


class Disk:
    """The disk of a warehouse.

    :param java: the process that writes to it.
    """

    def __init__(self, warehouse: Path, java: int) -> None:
        self._warehouse = warehouse
        self._processes = (java, os.getpid())
        self._limit = resource.prlimit(java, resource.RLIMIT_FSIZE)

    def spoil(self, kind: str) -> None:
        if kind == "full":
            self._set_limit(0)
        elif kind == "catalog full":
            self._set_limit(_LARGEST)
        else:
            self._permit(kind, writing=False)

    def mend(self) -> None:
        self._set_limit(self._limit[0])
        self._permit("read-only", writing=True)

    def _set_limit(self, size: int) -> None:
        for process in self._processes:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (size, self._limit[1]))

    def _permit(self, kind: str, writing: bool) -> None:
        folders = [self._warehouse]
        if kind == "read-only":
            folders += [path for path in self._warehouse.rglob("*") if path.is_dir()]
        for folder in folders:
            folder.chmod(0o755 if writing else 0o555)
        (self._warehouse / "catalog.db").chmod(0o600 if writing else 0o400)
