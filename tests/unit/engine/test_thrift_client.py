"""The client of HiveServer2's protocol, with a server that answers with the protocol's own messages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from impala_thrift_gen.TCLIService import ttypes

from dbt_arctic.engine import thrift_client
from dbt_arctic.engine.thrift_client import OperationCancelled, OperationFailed, Result, ThriftClient
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import PackageMissing

OK = ttypes.TStatus(ttypes.TStatusCode.SUCCESS_STATUS)
STATES = ttypes.TOperationState


class Server:
    """Answers calls of the protocol, and records them."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.states = [STATES.RUNNING_STATE, STATES.FINISHED_STATE]
        self.columns: list[ttypes.TColumnDesc] = []
        self.pages: list[list[ttypes.TColumn]] = []
        self.refuses: str | None = None
        self.breaks_at: str | None = None

    def __getattr__(self, name: str) -> Any:
        def call(request: Any) -> Any:
            self.calls.append(name)
            if self.breaks_at == name:
                raise ConnectionResetError("reset")
            return getattr(self, "on" + re.sub("([A-Z])", r"_\1", name).lower())(request)

        return call

    def on_open_session(self, request: Any) -> Any:
        return SimpleNamespace(status=OK, sessionHandle="session")

    def on_execute_statement(self, request: Any) -> Any:
        failed = ttypes.TStatus(ttypes.TStatusCode.ERROR_STATUS, errorMessage=self.refuses)
        return SimpleNamespace(status=failed if self.refuses else OK, operationHandle="operation")

    def on_get_operation_status(self, request: Any) -> Any:
        return SimpleNamespace(status=OK, operationState=self.states.pop(0), errorMessage="[X] no such thing")

    def on_get_result_set_metadata(self, request: Any) -> Any:
        return SimpleNamespace(status=OK, schema=ttypes.TTableSchema(self.columns))

    def on_fetch_results(self, request: Any) -> Any:
        return SimpleNamespace(status=OK, results=ttypes.TRowSet(0, [], self.pages.pop(0)))

    def on_close_operation(self, request: Any) -> Any:
        return SimpleNamespace(status=OK)

    on_cancel_operation = on_close_session = on_close_operation

    def on_get_info(self, request: Any) -> Any:
        failed = ttypes.TStatus(ttypes.TStatusCode.ERROR_STATUS, errorMessage="Invalid SessionHandle")
        return SimpleNamespace(status=failed if self.refuses else OK)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    connection = SimpleNamespace(
        service=SimpleNamespace(client=made), close=lambda: made.calls.append("gone")
    )
    monkeypatch.setattr(thrift_client, "_opened", lambda settings: connection)
    return made


@pytest.fixture
def client(server: Server) -> ThriftClient:
    return ThriftClient(ThriftSettings("h", "lake"))


def column(name: str, type_: int, **qualifiers: int) -> ttypes.TColumnDesc:
    given = {key: ttypes.TTypeQualifierValue(i32Value=value) for key, value in qualifiers.items()}
    entry = ttypes.TPrimitiveTypeEntry(type_, ttypes.TTypeQualifiers(given) if given else None)
    return ttypes.TColumnDesc(name, ttypes.TTypeDesc([ttypes.TTypeEntry(primitiveEntry=entry)]), 1)


def test_rows_are_read_page_by_page_with_their_nulls(server: Server, client: ThriftClient) -> None:
    numbers = list(range(9))
    server.columns = [
        column("n", ttypes.TTypeId.INT_TYPE),
        column("s", ttypes.TTypeId.STRING_TYPE),
        column("d", ttypes.TTypeId.DECIMAL_TYPE, precision=10, scale=2),
        column("b", ttypes.TTypeId.BINARY_TYPE),
        column("z", ttypes.TTypeId.NULL_TYPE),
    ]

    def page(numbers: list[int], nulls: bytes) -> list[ttypes.TColumn]:
        texts = [f"ü{number}".encode() for number in numbers]
        return [
            ttypes.TColumn(i32Val=ttypes.TI32Column(numbers, b"")),
            ttypes.TColumn(stringVal=ttypes.TStringColumn(texts, nulls)),
            ttypes.TColumn(stringVal=ttypes.TStringColumn([b"1.50"] * len(numbers), b"")),
            ttypes.TColumn(binaryVal=ttypes.TBinaryColumn([b"\xff"] * len(numbers), b"")),
            ttypes.TColumn(stringVal=ttypes.TStringColumn([b""] * len(numbers), b"\xff\xff")),
        ]

    # Of nine values, the first and the last are NULL: one bit each.
    server.pages = [page(numbers, b"\x01\x01"), page([9], b""), page([], b"")]
    found = client.run("SELECT 1")
    assert (found.names, found.types) == (
        ["n", "s", "d", "b", "z"],
        ["int", "string", "decimal(10,2)", "binary", "void"],
    )
    texts = [None, *(f"ü{number}" for number in range(1, 8)), None, "ü9"]
    assert found.rows == [(n, text, "1.50", b"\xff", None) for n, text in enumerate(texts)]
    assert server.calls[-1] == "CloseOperation"


def test_a_session_is_known_until_the_server_or_the_connection_is_gone(
    server: Server, client: ThriftClient
) -> None:
    assert client.is_known()
    assert not client.is_broken
    server.refuses = "gone"
    assert not client.is_known()
    server.refuses, server.breaks_at = None, "GetInfo"
    assert not client.is_known()
    assert client.is_broken
    assert {*server.calls} == {"OpenSession", "GetInfo"}


def test_a_command_without_a_result_has_no_columns(server: Server, client: ThriftClient) -> None:
    server.columns, server.pages = [column("Result", ttypes.TTypeId.STRING_TYPE)], [[]]
    assert client.run("CREATE TABLE t (a INT)") == Result()


def test_failures_are_those_of_the_statement_and_the_session_goes_on(
    server: Server, client: ThriftClient
) -> None:
    server.states = [STATES.ERROR_STATE]
    with pytest.raises(OperationFailed, match="no such thing"):
        client.run("SELECT 1")
    server.states = [STATES.CANCELED_STATE]
    with pytest.raises(OperationCancelled):
        client.run("SELECT 1")
    server.refuses = "Invalid SessionHandle"
    with pytest.raises(OperationFailed, match="Invalid SessionHandle"):
        client.run("SELECT 1")
    assert not client.is_broken
    client.close()
    assert server.calls[-2:] == ["CloseSession", "gone"]


def test_nothing_is_sent_on_a_broken_connection(server: Server, client: ThriftClient) -> None:
    server.breaks_at = "GetOperationStatus"
    with pytest.raises(ConnectionResetError):
        client.run("SELECT 1")
    assert client.is_broken
    client.close()
    assert server.calls[-2:] == ["GetOperationStatus", "gone"]


def test_a_statement_is_cancelled_while_it_runs_only(server: Server, client: ThriftClient) -> None:
    assert not client.cancel()
    seen = []
    server.columns, server.pages = [column("a", ttypes.TTypeId.INT_TYPE)], [[]]
    status = server.on_get_operation_status

    def cancelled(request: Any) -> Any:
        seen.append(client.cancel())
        return status(request)

    server.on_get_operation_status = cancelled  # type: ignore[method-assign]
    client.run("SELECT 1")
    assert seen == [True, True]
    assert server.calls.count("CancelOperation") == 2
    assert not client.cancel()


def test_a_certificate_is_always_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[dict[str, Any]] = []

    def connect(host: str, port: int, **options: Any) -> Any:
        given.append({"host": host, "port": port, **options})
        raise ConnectionRefusedError

    monkeypatch.setattr("impala.dbapi.connect", connect)
    for settings in (
        ThriftSettings("h", "lake", use_ssl=True, auth="ldap", user="u", password="p"),
        ThriftSettings("h", "lake", tls_ca=tmp_path / "ca.pem", auth="kerberos"),
        ThriftSettings("h", "lake"),
    ):
        with pytest.raises(ConnectionRefusedError):
            ThriftClient(settings)
    assert [one["verify_cert"] for one in given] == [True] * 3
    assert [one["use_ssl"] for one in given] == [True, True, False]
    assert [one["auth_mechanism"] for one in given] == ["LDAP", "GSSAPI", "PLAIN"]
    assert [one["ca_cert"] for one in given] == [None, str(tmp_path / "ca.pem"), None]


def test_without_impyla_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "impala_thrift_gen.TCLIService", None)
    with pytest.raises(PackageMissing, match=r"dbt-arctic\[thrift\]"):
        ThriftClient(ThriftSettings("h", "lake"))
