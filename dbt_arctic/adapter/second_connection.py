"""A second connection, for a thread that runs concurrently with the thread of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.base import BaseAdapter

from dbt_arctic.adapter.translate import as_own_errors
from dbt_arctic.store.context import RunStatement


@contextmanager
def open_second_connection(adapter: BaseAdapter, run: RunStatement) -> Iterator[RunStatement]:
    """Run statements on a connection of this thread, which is returned to dbt at the end.

    Raises ``StatementCancelled`` if dbt was stopped.

    :param run: runs a statement on the adapter's connection of the current thread.
    """
    with as_own_errors(), adapter.connection_named("second"):
        yield run
