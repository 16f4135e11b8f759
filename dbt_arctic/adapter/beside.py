"""A second connection for a thread of ours that works beside a model's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbt_arctic.refresh.edge import RunStatement

if TYPE_CHECKING:
    from dbt_arctic.adapter.keyed_api import KeyedApi


@contextmanager
def connection_beside(adapter: KeyedApi) -> Iterator[RunStatement]:
    """dbt keeps one connection a thread, and gives it back at the end."""
    with adapter.connection_named("beside"):
        yield adapter._run
