"""A real Spark Thrift server: what a JDBC client reads, accepted certificates, and what follows a loss."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner

from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.thrift import ThriftConnection, ThriftEngine
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import ArcticError, ServerUnreachable
from tests.matrix.components import spark_jars
from tests.matrix.thrift_server import thrift_server

pytestmark = pytest.mark.long
PASSWORD = "keystore"
PROMPT = re.compile(r"^\d+: jdbc:\S+> ")


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


def run_dbt(project: Path, *arguments: str) -> None:
    folders = ("--project-dir", str(project), "--profiles-dir", str(project))
    outcome = dbtRunner().invoke([*arguments, *folders, "--quiet"])
    assert outcome.success, outcome


def beeline(address: str, *statements: str) -> list[list[str]]:
    """The rows of statements, read by Hive's JDBC driver in Hive's own client."""
    java = Path(find_java(None).home, "bin", "java")
    jars = spark_jars() / "*"
    options = ("--outputformat=tsv2", "--silent=true", "--showHeader=false")
    given = [part for statement in statements for part in ("-e", statement)]
    command = [
        java,
        "-cp",
        jars,
        "org.apache.hive.beeline.BeeLine",
        "-u",
        f"jdbc:hive2://{address}/shop",
        "-n",
        "bi",
    ]
    done = subprocess.run(
        [*map(str, command), *options, *given], check=True, capture_output=True, timeout=120, text=True
    )
    lines = (PROMPT.sub("", line) for line in done.stdout.splitlines())
    return [line.split("\t") for line in lines if line.strip()]


def test_a_jdbc_client_reads_merged_rows_and_lists_no_tables(tmp_path: Path) -> None:
    conf = {"spark.sql.defaultCatalog": "lake"}
    target = {"warehouse": str(tmp_path / "lake"), "schema": "shop", "type": "arctic", "spark_conf": conf}
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text(yaml.safe_dump({"name": "shop", "profile": "shop"}))
    (project / "models" / "orders.sql").write_text(
        "{{ config(materialized='incremental', unique_key='id') }}\n"
        "select id, {{ var('amount') }} as amount from range({{ var('first') }}, {{ var('last') }})"
    )
    with thrift_server(tmp_path, target) as server:
        host, port = server.address.split(":")
        output = {"type": "arctic", "method": "thrift", "host": host, "port": int(port), "schema": "shop"}
        profile = {"shop": {"target": "dev", "outputs": {"dev": {**output, "user": "dbt", "threads": 1}}}}
        (project / "profiles.yml").write_text(yaml.safe_dump(profile))
        run_dbt(project, "run", "--vars", "{amount: 1, first: 0, last: 10}")
        run_dbt(project, "run", "--vars", "{amount: 2, first: 8, last: 12}")
        sums, names = "SELECT count(*), sum(amount) FROM shop.orders", "SHOW VIEWS IN shop"
        by_amount = "SELECT amount, count(*) FROM (SELECT * FROM lake.shop.orders) AS q GROUP BY 1 ORDER BY 1"
        found = beeline(server.address, sums, by_amount, names, "SHOW TABLES IN shop", "!tables")
        assert found == [
            ["12", "16"],
            *(["1", "8"], ["2", "4"]),
            ["shop", "orders", "false"],
            *(["shop", "orders__base_1", "false"], ["shop", "orders__change_1", "false"]),
        ], "and nothing of !tables, which calls getTables"


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

        # The server closes the session, as it does with one that was idle for long.
        for name, idle in (("one", 0.0), ("two", 99.0)):
            session: Any = connection.client
            assert session.is_known()
            session._client.CloseSession(session._types.TCloseSessionReq(session._session))
            session._used_at -= idle
            rows(connection, f"CREATE SCHEMA lake.{name}")
            assert connection.client is not session
        assert {("one",), ("two",)} <= {row[:1] for row in rows(connection, "SHOW SCHEMAS IN lake")}

        assert server.pid is not None
        os.killpg(server.pid, signal.SIGKILL)
        with pytest.raises(ArcticError) as lost:
            rows(connection, "CREATE SCHEMA lake.x")
        assert lost.value.code in ("AR-106", "AR-205"), lost.value.render()
        with pytest.raises(ServerUnreachable):
            rows(connection, "SELECT 1")
