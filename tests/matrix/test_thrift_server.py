"""A real Spark Thrift server with TLS: which certificates are accepted, and what follows if it is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.thrift import ThriftConnection, ThriftEngine
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import ArcticError, ServerUnreachable
from tests.matrix.thrift_server import thrift_server

pytestmark = pytest.mark.long
PASSWORD = "keystore"


def keystore(folder: Path, name: str) -> tuple[Path, Path]:
    """A key for ``localhost`` in a keystore of Java, and its certificate as PEM."""
    tool, store, pem = (
        Path(find_java(None).home, "bin", "keytool"),
        folder / f"{name}.p12",
        folder / f"{name}.pem",
    )
    of_store = ("-keystore", store, "-storepass", PASSWORD, "-alias", name)
    names = ("-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1", "-ext", "bc=ca:true")
    for command in (
        ("-genkeypair", *of_store, "-keyalg", "RSA", "-keysize", "2048", "-storetype", "PKCS12", *names),
        ("-exportcert", *of_store, "-rfc", "-file", pem),
    ):
        subprocess.run([str(part) for part in (tool, *command)], check=True, capture_output=True, timeout=60)
    return store, pem


def rows(connection: ThriftConnection, sql: str) -> list[tuple[object, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def opened(settings: ThriftSettings) -> ThriftConnection:
    return ThriftEngine(settings).connect()


def test_a_server_with_tls(tmp_path: Path) -> None:
    store, pem = keystore(tmp_path, "server")
    _, other = keystore(tmp_path, "other")
    tls = {
        "hive.server2.use.SSL": "true",
        "hive.server2.keystore.path": str(store),
        "hive.server2.keystore.password": PASSWORD,
    }
    target = {"warehouse": str(tmp_path / "lake"), "schema": "dev", "type": "arctic"}
    with thrift_server(tmp_path, target, conf=tls) as server:
        port = int(server.address.rpartition(":")[2])
        trusting = ThriftSettings(
            "localhost", "lake", port, user="dbt", use_ssl=True, tls_ca=pem, timeout_s=20
        )
        connection = opened(trusting)
        assert rows(connection, "SELECT 1 AS one, 'ü' AS letter") == [(1, "ü")]
        for wrong, why in (
            (replace(trusting, tls_ca=other), "CERTIFICATE_VERIFY_FAILED"),
            (replace(trusting, tls_ca=None), "CERTIFICATE_VERIFY_FAILED"),
            (replace(trusting, use_ssl=False, tls_ca=None), ""),
        ):
            with pytest.raises(ServerUnreachable) as caught:
                rows(opened(wrong), "SELECT 1")
            assert why in caught.value.why
            assert "use_ssl" in caught.value.fix

        assert server.pid is not None
        os.killpg(server.pid, signal.SIGKILL)
        with pytest.raises(ArcticError) as lost:
            rows(connection, "CREATE SCHEMA lake.x")
        assert lost.value.code in ("AR-106", "AR-205"), lost.value.render()
        with pytest.raises(ServerUnreachable):
            rows(connection, "SELECT 1")
