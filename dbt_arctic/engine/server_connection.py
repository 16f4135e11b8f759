"""The part that connections to a server share: the settings of a session, and whether it holds state."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_arctic.engine.api import Traffic
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.statement import RunningStatement, Statement


class ServerConnection(ABC):
    """Base of one session on a server.

    It runs one statement at a time; ``cancel`` may be called from any thread.
    """

    def __init__(self, new_conf: dict[str, str]) -> None:
        """Create a connection.

        :param new_conf: the conf of a new session, as soon as one connection of the engine has read it.
        """
        self._new_conf = new_conf
        self.running = RunningStatement()
        self._session: Any = None
        self._has_state = False
        self._opening = threading.Lock()

    @abstractmethod
    def fault(self, error: Exception, statement: Statement) -> Fault | None:
        """Classify an error, and discard the session if it is lost."""

    @abstractmethod
    def _read_conf(self) -> dict[str, str]: ...

    @property
    def is_open(self) -> bool:
        """Whether a session exists to which statements can be sent."""
        return self._session is not None and not self.running.is_cancelled

    def conf(self, *, start: bool = True) -> Mapping[str, str]:
        if not start and not self.is_open and self._new_conf:
            return self._new_conf
        found = self._read_conf()
        if not self._has_state:
            self._new_conf.update(found)
        return found

    def remember_state(self) -> None:
        """Record that the session holds state (a setting, a temporary view) that a new one would lack."""
        self._has_state = True

    def noting(self) -> AbstractContextManager[list[str]]:
        return self.running.noting()

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        return None

    def cancel(self) -> None:
        """Stop the running statement and refuse new ones with ``StatementCancelled``."""
        self.running.cancel()

    @contextmanager
    def _translated(self, sql: str) -> Iterator[Statement]:
        """Raise errors of the server inside the block as an ``ArcticError`` with its cause."""
        statement = Statement(sql, lambda statement: None)
        try:
            yield statement
        except Exception as error:
            fault = self.fault(error, statement)
            if fault is None or fault.error is error:
                raise
            raise fault.error from error
