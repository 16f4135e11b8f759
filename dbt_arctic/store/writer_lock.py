"""Serializes the writers of one process where they would otherwise discard each other's work.

Between processes, the compare-and-swap of the commit decides. This lock only saves attempts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_arctic.keyed.names import Name

_locks: dict[Name, threading.RLock] = {}
_guard = threading.Lock()


@contextmanager
def writer_lock(target: Name) -> Iterator[None]:
    """Hold the turn to write to a table. The lock is reentrant."""
    with _guard:
        lock = _locks.setdefault(target, threading.RLock())
    with lock:
        yield
