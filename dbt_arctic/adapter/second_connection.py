"""A second connection, for a thread that runs at the same time as a model's thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.base import BaseAdapter

from dbt_arctic.adapter.translate import as_own_errors
from dbt_arctic.store.context import RunStatement


@contextmanager
def connection_beside(adapter: BaseAdapter, run: RunStatement) -> Iterator[RunStatement]:
    """Run statements on a connection of this thread, which goes back to dbt at the end.

    Raises ``StatementCancelled`` where dbt was told to stop.

    :param run: runs a statement on the adapter's connection of the current thread.
    """
    with as_own_errors(), adapter.connection_named("beside"):
        yield run
