"""dbt's connections: one engine per profile, one Spark session per thread, and all errors are raised."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.sql.connections import SQLConnectionManager
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_engine
from dbt_arctic.adapter.show import table_value
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.data_type import parse_type
from dbt_arctic.engine.api import Cursor, Engine
from dbt_arctic.engine.lexer import split_statements
from dbt_arctic.engine.statement import cancelled_error

if TYPE_CHECKING:
    import agate


@dataclass
class ArcticResponse(AdapterResponse):
    """The entry of a statement in ``run_results.json``. ``jobs`` is its number of Spark jobs, if known."""

    jobs: int | None = 0
    statement: str = field(default="", metadata={"serialize": "omit"})
    """The statement that wrote a keyed table, for `target/run`."""


@dataclass
class AutoResponse(ArcticResponse):
    """The entry of an automatic model's refresh in ``run_results.json``.

    :param strategy: ``incremental``, ``full`` or ``skip``.
    :param reason: the code of the reason.
    :param keys: the number of recomputed keys, if the refresh was by keys.
    :param bytes_read: the size of the data files that its statements read. Not available over Connect.
    :param bytes_written: the size of the data files that they added. Not available over Connect.
    :param stages: the executed stages of its plan, in order: ``relation``, ``stage``, ``seconds``, ``rows``.
    :param fell_back: why the refresh fell back to another plan; empty if the first plan was executed.
    :param verified: ``result``, ``keys``, ``seconds`` and ``why``; ``None`` if nothing was to be verified.
    """

    strategy: str = ""
    reason: str | None = None
    keys: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    stages: list[dict[str, Any]] = field(default_factory=list)
    fell_back: list[str] = field(default_factory=list)
    verified: dict[str, Any] | None = None


class ArcticConnectionManager(SQLConnectionManager):
    """dbt's connection manager for Spark."""

    TYPE = "arctic"
    _engines: ClassVar[dict[Any, Engine]] = {}
    _engines_lock: ClassVar[threading.Lock] = threading.Lock()
    _project_root: ClassVar[str | None] = None
    connectors: ClassVar[Callable[[], tuple[str, ...]]] = staticmethod(tuple)
    """The formats of Spark's readers that the project's sources need."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        # Threads instead of their ids, which the operating system reuses.
        self._cancelled: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        # A relative warehouse belongs to the project, but `open` only gets the credentials.
        type(self)._project_root = getattr(config, "project_root", None)
        # dbt creates a manager for each invocation. Creating an engine starts nothing, and a server that an
        # earlier invocation was connected to may be gone.
        with self._engines_lock:
            self._engines.clear()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Set the handle of the connection. Spark starts with its first statement, not here."""
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials = connection.credentials
        if not isinstance(credentials, ArcticCredentials):
            raise DbtRuntimeError(f"not a profile of type arctic, but of type {credentials.type}")
        with as_dbt_errors():
            connection.handle = cls.engine(credentials).connect()
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def engine(cls, credentials: ArcticCredentials) -> Engine:
        """The engine for a profile, which all invocations of the process share."""
        # Not repr(), which omits secrets.
        connectors = cls.connectors()
        given = json.dumps(asdict(credentials), sort_keys=True, default=str)
        identity = (given, cls._project_root, connectors)
        with cls._engines_lock:
            if identity not in cls._engines:
                cls._engines[identity] = choose_engine(credentials, cls._project_root, connectors).engine
            return cls._engines[identity]

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Convert errors to dbt's."""
        with as_dbt_errors():
            yield

    def cancel(self, connection: Connection) -> None:
        """Cancel the running statement of a connection."""
        connection.handle.cancel()

    def cancel_open(self) -> list[str]:
        """Cancel the statements of the other threads of this invocation.

        They cannot open connections from then on.
        """
        self._cancelled.update(set(threading.enumerate()) - {threading.current_thread()})
        return super().cancel_open()

    def set_connection_name(self, name: str | None = None) -> Connection:
        """Get the connection of this thread, unless it was cancelled."""
        if threading.current_thread() in self._cancelled:
            with as_dbt_errors():
                raise cancelled_error(f"open a connection for {name or 'master'}")
        return super().set_connection_name(name)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Run a statement.

        A hook of ``on-run-start`` or ``on-run-end`` may have several statements, or only a comment.

        Other SQL must be a single statement: a second one in a model would run in addition to creating its
        table.
        """
        from dbt_common.clients.agate_helper import empty_table

        if fetch or get_node_info().get("resource_type") != "operation":
            return super().execute(sql, auto_begin, fetch, limit)
        response: AdapterResponse = ArcticResponse(_message="OK", code="OK")
        for statement in split_statements(sql):
            response, _ = super().execute(statement, auto_begin, fetch, limit)
        return response, empty_table()  # type: ignore[no-untyped-call] # dbt's

    @classmethod
    def get_result_from_cursor(cls, cursor: Any, limit: int | None) -> agate.Table:
        """Like dbt's implementation, but supports values that it would truncate or cannot convert."""
        from dbt_common.clients.agate_helper import table_from_data_flat

        names = [str(column[0]) for column in cursor.description or []]
        types = [parse_type(column[1]) for column in cursor.description or []]
        rows = cursor.fetchmany(limit) if limit else cursor.fetchall()
        shown = [[table_value(value, one) for value, one in zip(row, types, strict=True)] for row in rows]
        data = cls.process_results(names, shown)  # renames columns of the same name
        return table_from_data_flat(data, names)

    @classmethod
    def get_response(cls, cursor: Cursor) -> ArcticResponse:
        """The response of a statement for ``run_results.json``."""
        rows = cursor.known_rows
        return ArcticResponse(
            _message="OK" if rows is None else f"OK {rows}",
            code="OK",
            rows_affected=rows,
            query_id=cursor.statement_id,
            jobs=cursor.job_count,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """The name of a type. The cursor describes columns with Spark's own type names."""
        return str(type_code)

    # Iceberg commits each statement separately: there is no transaction to begin, commit or roll back.

    def commit(self) -> None:
        """End the transaction that dbt counts for this thread.

        Macros of packages commit after statements that began none, which is an error in dbt's implementation.
        """
        if self.get_thread_connection().transaction_open:
            super().commit()  # type: ignore[no-untyped-call] # dbt's

    def add_begin_query(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, because there are no transactions."""

    def add_commit_query(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, because there are no transactions."""

    @classmethod
    def _rollback_handle(cls, connection: Connection) -> None:
        return None
