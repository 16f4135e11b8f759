"""Whether the current invocation takes rejected rows again: ``dbt-arctic ingest replay``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Not a context variable, which the threads of dbt would not see.
_ACTIVE = threading.Event()


@contextmanager
def replaying() -> Iterator[None]:
    """Models that run in the block take their rejected rows again."""
    _ACTIVE.set()
    try:
        yield
    finally:
        _ACTIVE.clear()


def active() -> bool:
    """Whether models take rejected rows again."""
    return _ACTIVE.is_set()


__all__ = ["active", "replaying"]
