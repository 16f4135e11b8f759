"""The execution context of an operation: catalog, session, and the functions that run its statements."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.store.row_cache import SharedRows


@dataclass(frozen=True)
class ModelsOfRun:
    """The automatic models that one invocation refreshes.

    :param readers: the models that read a relation, directly or through views.
    :param until: the version at which they read a relation; ``None`` for the newest.
    """

    readers: Callable[[Name], Sequence[Name]]
    until: Callable[[Name], Consumed | None] = lambda name: None


class RunStatement(Protocol):
    """Runs one statement and returns the number of rows written; ``None`` if unknown.

    ``step`` names the statement in logs and for overriding macros.
    """

    def __call__(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None: ...


@dataclass(frozen=True)
class Context:
    """The catalog, session and functions that one refresh uses.

    :param query_schema: returns the columns of a query by analysis only.
    :param query: returns the rows of a query.
    :param run_id: invocation and model. It is committed with the data, so that the commit can be recognised
        later.
    :param second_connection: opens a separate connection for another thread, for the lifetime of the
        context; ``None`` if not available.
    """

    catalog: CatalogReader
    run: RunStatement
    query_schema: Callable[[str], list[ColumnInfo]]
    query: Callable[[str], list[tuple[Any, ...]]]
    run_id: str = ""
    now_ms: Callable[[], int] = field(default=lambda: int(time.time() * 1000))
    second_connection: Callable[[], AbstractContextManager[RunStatement]] | None = None
    shared: SharedRows | None = None
    """Rows that several refreshes read; ``None`` if each refresh computes its own."""
    alongside: ModelsOfRun | None = None
    """The other models that the same invocation refreshes; ``None`` if unknown."""
    tuned: Callable[[Mapping[str, str]], AbstractContextManager[None]] = field(
        default=lambda conf: nullcontext()
    )
    """Changes session settings for the lifetime of a context manager; has no effect if the session is not
    ours to configure.
    """
    cores: int | None = None
    """Cores of the machine that Spark runs on, if it is a single machine; ``None`` for a cluster or if
    unknown.
    """

    require_conflicts: Callable[[Name], None] = field(default=lambda name: None)
    """Checks that the catalog refuses a commit on an old version of a table: ``engine.commit_conflicts``."""

    prints_only: bool = False
    """Statements are only printed and not executed, so the objects that they would create do not exist."""

    def new_txn(self) -> int:
        """A unique BIGINT: milliseconds since the epoch, followed by 20 random bits."""
        return (self.now_ms() << 20) | secrets.randbits(20)
