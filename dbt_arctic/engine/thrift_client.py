"""A client of HiveServer2's protocol, which Spark's Thrift server speaks: sessions, statements, results.

impyla opens the transport and has the generated classes of the protocol. Its cursor is not used: it fails at
statements without a result, and drops the stack trace of an error.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import PackageMissing

_ROWS_AT_ONCE = 10_000
_VALUES = ("boolVal", "byteVal", "i16Val", "i32Val", "i64Val", "doubleVal", "stringVal", "binaryVal")


class OperationFailed(Exception):
    """The server reports an error: its message with the Java stack trace."""


class OperationCancelled(Exception):
    """The server has stopped a statement."""


@dataclass
class Result:
    """What a statement returned.

    :param names: the columns; empty for a statement without a result.
    :param types: their types, without those inside of nested types.
    """

    names: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)


class ThriftClient:
    """One session on a server. It runs one statement at a time; ``cancel`` may be called from any thread."""

    def __init__(self, settings: ThriftSettings) -> None:
        self._settings = settings
        self._types = _generated()
        self._connection = _opened(settings)
        self._client = self._connection.service.client
        self._operation: Any = None
        self._changing = threading.Lock()
        self.is_broken = False
        self._used_at = time.monotonic()
        t = self._types
        request = t.TOpenSessionReq(
            client_protocol=t.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V8, username=settings.user
        )
        with self._noting_breaks():
            self._session = self._checked(self._client.OpenSession(request)).sessionHandle

    def run(self, sql: str) -> Result:
        """Run a statement to its end and fetch its rows.

        :raises OperationFailed: the server reports an error.
        :raises OperationCancelled: the statement was cancelled.
        """
        t = self._types
        with self._noting_breaks():
            request = t.TExecuteStatementReq(self._session, sql, confOverlay={}, runAsync=True)
            operation = self._checked(self._client.ExecuteStatement(request)).operationHandle
            with self._changing:
                self._operation = operation
            try:
                self._wait(operation)
                result = self._fetched(operation)
            except (OperationFailed, OperationCancelled):
                self._end(operation)
                raise
            self._end(operation)
            self._used_at = time.monotonic()
            return result

    def idle_s(self) -> float:
        """The seconds since the last statement ended."""
        return time.monotonic() - self._used_at

    def is_known(self) -> bool:
        """Whether the server still has the session. Runs nothing."""
        t = self._types
        request = t.TGetInfoReq(self._session, t.TGetInfoType.CLI_DBMS_NAME)
        try:
            with self._noting_breaks():
                self._checked(self._client.GetInfo(request))
        except Exception:  # any failure: a new session then reports why it cannot be opened
            return False
        return True

    def _end(self, operation: Any) -> None:
        """Release a statement that has ended. On a broken connection, the server does so by itself."""
        with self._changing:
            self._operation = None
        self._client.CloseOperation(self._types.TCloseOperationReq(operation))

    def cancel(self) -> bool:
        """Stop the statement that runs, on a connection of its own. Returns whether there was one."""
        with self._changing:
            operation = self._operation
        if operation is None:
            return False
        with contextlib.closing(_opened(self._settings)) as other:
            other.service.client.CancelOperation(self._types.TCancelOperationReq(operation))
        return True

    def close(self) -> None:
        """End the session. Nothing is raised if the server is gone."""
        with contextlib.suppress(Exception):
            if not self.is_broken:
                self._client.CloseSession(self._types.TCloseSessionReq(self._session))
        self._connection.close()

    @contextlib.contextmanager
    def _noting_breaks(self) -> Iterator[None]:
        """Record an error of the transport, after which nothing can be sent any more."""
        try:
            yield
        except (OperationFailed, OperationCancelled):
            raise
        except BaseException:
            self.is_broken = True
            raise

    def _wait(self, operation: Any) -> None:
        t = self._types
        states = t.TOperationState
        unfinished = (states.INITIALIZED_STATE, states.RUNNING_STATE, states.PENDING_STATE)
        while True:
            # The server answers when the statement ends, or after some seconds.
            request = t.TGetOperationStatusReq(operation)
            found = self._checked(self._client.GetOperationStatus(request))
            if found.operationState not in unfinished:
                break
        if found.operationState == states.CANCELED_STATE:
            raise OperationCancelled
        if found.operationState != states.FINISHED_STATE:
            raise OperationFailed(found.errorMessage or "the server reports an error without a message")

    def _fetched(self, operation: Any) -> Result:
        t = self._types
        described = self._checked(
            self._client.GetResultSetMetadata(t.TGetResultSetMetadataReq(operation))
        ).schema
        columns = described.columns if described is not None else []
        result = Result([one.columnName for one in columns], [self._type(one) for one in columns])
        while True:
            request = t.TFetchResultsReq(operation, t.TFetchOrientation.FETCH_NEXT, _ROWS_AT_ONCE)
            found = self._checked(self._client.FetchResults(request)).results
            if not found.columns:
                return Result()  # a command: its only column is a placeholder
            rows = list(zip(*map(_values, found.columns), strict=True))
            result.rows += rows
            if not rows:
                return result

    def _type(self, column: Any) -> str:
        entry = column.typeDesc.types[0].primitiveEntry
        name = str(self._types.TTypeId._VALUES_TO_NAMES[entry.type]).removesuffix("_TYPE").lower()
        if name == "decimal" and entry.typeQualifiers is not None:
            given = {key: value.i32Value for key, value in entry.typeQualifiers.qualifiers.items()}
            return f"decimal({given['precision']},{given['scale']})"
        return {"null": "void"}.get(name, name)

    def _checked(self, answer: Any) -> Any:
        status, codes = answer.status, self._types.TStatusCode
        if status.statusCode not in (codes.SUCCESS_STATUS, codes.SUCCESS_WITH_INFO_STATUS):
            raise OperationFailed("\n".join([status.errorMessage or "", *(status.infoMessages or [])]))
        return answer


def _values(column: Any) -> list[Any]:
    """The values of a column, with ``None`` for NULL, which a bit map marks."""
    (held,) = (value for name in _VALUES if (value := getattr(column, name)) is not None)
    texts = column.stringVal is not None
    nulls = held.nulls or b""
    return [
        None
        if at // 8 < len(nulls) and nulls[at // 8] >> at % 8 & 1
        else value.decode("utf-8", "replace")
        if texts and isinstance(value, bytes)
        else value
        for at, value in enumerate(held.values)
    ]


def _generated() -> Any:
    try:
        from impala_thrift_gen.TCLIService import ttypes
    except ImportError as error:
        raise PackageMissing(
            "impyla is not installed, which method: thrift needs.",
            where="the environment of dbt",
            why=str(error),
            fix="pip install 'dbt-arctic[thrift]'",
        ) from error
    return ttypes


def _opened(settings: ThriftSettings) -> Any:
    """A connection of impyla. Its limit of time is that of one call, not of a statement, which is polled."""
    from impala.dbapi import connect

    return connect(
        settings.host,
        settings.port,
        timeout=settings.timeout_s,
        use_ssl=settings.use_ssl or settings.tls_ca is not None,
        ca_cert=None if settings.tls_ca is None else str(settings.tls_ca),
        verify_cert=True,
        auth_mechanism={"kerberos": "GSSAPI"}.get(settings.auth, settings.auth.upper()),
        user=settings.user,
        password=settings.password,
        kerberos_service_name=settings.service,
    )
