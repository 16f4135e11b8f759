"""The execution context of an operation: catalog, session, and the functions that run its statements."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.store.row_cache import SharedRows


@dataclass(frozen=True)
class Alongside:
    """The automatic models that one invocation refreshes.

    :param readers: those that read a relation, themselves or through views.
    :param until: the version at which they read a relation; ``None``: the newest.
    """

    readers: Callable[[Name], Sequence[Name]]
    until: Callable[[Name], Consumed | None] = lambda name: None


class RunStatement(Protocol):
    """Run one statement. ``step`` names it in logs and to overriding macros; returns rows written."""

    def __call__(self, step: str, sql: str, table: KeyedTable | None = None) -> int: ...


@dataclass(frozen=True)
class Context:
    """The outside world of one refresh.

    :param query_schema: the columns of a query, by analysis only.
    :param query: the rows of a query.
    :param run_id: invocation and model; committed with the data, to recognise it later.
    :param beside: a connection of its own for another thread, for as long as the context lasts; ``None``
        where there is none.
    """

    catalog: CatalogReader
    run: RunStatement
    query_schema: Callable[[str], list[ColumnInfo]]
    query: Callable[[str], list[tuple[Any, ...]]]
    run_id: str = ""
    now_ms: Callable[[], int] = field(default=lambda: int(time.time() * 1000))
    beside: Callable[[], AbstractContextManager[RunStatement]] | None = None
    shared: SharedRows | None = None
    """Rows that several refreshes read; ``None`` where each computes its own."""
    alongside: Alongside | None = None
    """Who else is refreshed by the same invocation; ``None`` where nobody tells."""
    tuned: Callable[[Mapping[str, str]], AbstractContextManager[None]] = field(
        default=lambda conf: nullcontext()
    )
    """Settings of the session for as long as a context lasts; none where they are not ours to choose."""
    cores: int | None = None
    """Of the machine that Spark runs on, if it is one; ``None`` for a cluster, or where nobody tells."""

    only_told: bool = False
    """Statements are told, and not run: nothing that they make is there."""

    def new_txn(self) -> int:
        """A unique BIGINT: milliseconds since the epoch, then 20 random bits."""
        return (self.now_ms() << 20) | secrets.randbits(20)


@dataclass(frozen=True)
class Choice:
    """How an automatic model was refreshed.

    :param reason: the code of a reason, where one was given.
    :param keys: how many keys were computed anew; ``None`` where it was not done by keys.
    :param how: in brackets, where there is neither.
    """

    strategy: Literal["incremental", "full", "skip"]
    reason: str = ""
    keys: int | None = None
    how: str = ""

    def __str__(self) -> str:
        told = self.how or self.reason if self.keys is None else f"{self.keys} keys"
        return f"{self.strategy.upper()} ({told})" if told else self.strategy.upper()


@dataclass(frozen=True)
class StageRun:
    """A stage of a refresh that was run.

    :param relation: the table that was refreshed; ``stage``: as ``dbt-arctic plan --json`` calls it.
    :param seconds: ``None`` where it was a part of another stage's statement.
    :param rows: that it found or wrote; ``None`` where nobody counted.
    """

    relation: str
    stage: str
    seconds: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a refresh did, for dbt's log and ``run_results.json``.

    :param stages: of an automatic model, in the order in which they were run.
    :param fell_back: why another plan has followed, one after the other.
    """

    message: str
    rows: int
    sql: str
    choice: Choice | None = None
    stages: tuple[StageRun, ...] = ()
    fell_back: tuple[str, ...] = ()
