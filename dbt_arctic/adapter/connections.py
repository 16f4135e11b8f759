"""dbt's connections: one engine a profile, one Spark session a thread, errors that always surface."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Iterator
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
from dbt_arctic.engine.api import Cursor, Engine
from dbt_arctic.engine.lexer import split_statements
from dbt_arctic.engine.statement import cancelled_error
from dbt_arctic.keyed.data_type import parse_type

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

    :param strategy: ``incremental``, ``full`` or ``skip``; ``reason``: the code that says why.
    :param keys: how many keys were computed anew, where it was done by keys.
    :param bytes_read: of the data files that its statements opened; ``bytes_written``: of those that they
        added. Not told over Connect.
    :param stages: what was run of its plan, in this order: ``relation``, ``stage``, ``seconds``, ``rows``.
    :param fell_back: why another plan has followed; empty where the first one was carried out.
    """

    strategy: str = ""
    reason: str | None = None
    keys: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    stages: list[dict[str, Any]] = field(default_factory=list)
    fell_back: list[str] = field(default_factory=list)


class ArcticConnectionManager(SQLConnectionManager):
    TYPE = "arctic"
    _engines: ClassVar[dict[Any, Engine]] = {}
    _engines_lock: ClassVar[threading.Lock] = threading.Lock()
    _project_root: ClassVar[str | None] = None

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        # Threads, not their numbers: the system gives these again.
        self._cancelled: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        # A relative warehouse belongs to the project; `open` is given the credentials only.
        type(self)._project_root = getattr(config, "project_root", None)
        # dbt makes a manager for each invocation. To make an engine starts nothing, and a server that one of
        # before was connected to may be gone.
        with self._engines_lock:
            self._engines.clear()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Give the connection its handle. Spark starts with its first statement, not here."""
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
        # Not repr(), which leaves secrets out.
        identity = (json.dumps(asdict(credentials), sort_keys=True, default=str), cls._project_root)
        with cls._engines_lock:
            if identity not in cls._engines:
                cls._engines[identity] = choose_engine(credentials, cls._project_root).engine
            return cls._engines[identity]

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        with as_dbt_errors():
            yield

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    def cancel_open(self) -> list[str]:
        """Cancel what the other threads of this invocation run, and let them open no connection any more."""
        self._cancelled.update(set(threading.enumerate()) - {threading.current_thread()})
        return super().cancel_open()

    def set_connection_name(self, name: str | None = None) -> Connection:
        if threading.current_thread() in self._cancelled:
            with as_dbt_errors():
                raise cancelled_error(f"open a connection for {name or 'master'}")
        return super().set_connection_name(name)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """A hook of ``on-run-start`` and ``on-run-end`` may be several statements, or nothing but a comment.

        Nothing else may: of a model's SQL the second statement would be run beside its table.
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
        """dbt's own, of values that it would cut or fail at as well."""
        from dbt_common.clients.agate_helper import table_from_data_flat

        names = [str(column[0]) for column in cursor.description or []]
        types = [parse_type(column[1]) for column in cursor.description or []]
        rows = cursor.fetchmany(limit) if limit else cursor.fetchall()
        shown = [[table_value(value, one) for value, one in zip(row, types, strict=True)] for row in rows]
        data = cls.process_results(names, shown)  # renames columns of the same name
        return table_from_data_flat(data, names)

    @classmethod
    def get_response(cls, cursor: Cursor) -> ArcticResponse:
        rows = cursor.rowcount
        return ArcticResponse(
            _message="OK" if rows < 0 else f"OK {rows}",
            code="OK",
            rows_affected=None if rows < 0 else rows,
            query_id=cursor.statement_id,
            jobs=cursor.job_count,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """The cursor describes columns with Spark's own type names."""
        return str(type_code)

    # Iceberg commits each statement by itself: there is no transaction to begin, commit or roll back.

    def add_begin_query(self, *args: Any, **kwargs: Any) -> None:
        return None

    def add_commit_query(self, *args: Any, **kwargs: Any) -> None:
        return None

    @classmethod
    def _rollback_handle(cls, connection: Connection) -> None:
        return None
