"""Whether this process is ``dbt-arctic keep``, which compacts by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Not a context variable, which the threads of dbt would not see.
_ACTIVE = threading.Event()


@contextmanager
def keeping() -> Iterator[None]:
    """In the block, ``compact_due()`` in a hook of the project does nothing."""
    _ACTIVE.set()
    try:
        yield
    finally:
        _ACTIVE.clear()


def active() -> bool:
    """Whether ``dbt-arctic keep`` runs in this process."""
    return _ACTIVE.is_set()


__all__ = ["active", "keeping"]
