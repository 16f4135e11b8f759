"""What a command of ``dbt-arctic`` changes for the dbt invocations in its process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Mode:
    """A mode of the process, which is on in a block.

    It is not a context variable, which the threads of dbt would not see.
    """

    def __init__(self) -> None:
        self._on = threading.Event()

    @contextmanager
    def on(self) -> Iterator[None]:
        """The mode is on in the block."""
        self._on.set()
        try:
            yield
        finally:
            self._on.clear()

    @property
    def is_on(self) -> bool:
        """Whether the mode is on."""
        return self._on.is_set()


KEEPING = Mode()
"""``dbt-arctic keep`` compacts by itself, so ``compact_due()`` in a hook of the project does nothing."""
REPLAYING = Mode()
"""``dbt-arctic ingest replay``: models take their rejected rows again."""

__all__ = ["KEEPING", "REPLAYING", "Mode"]
