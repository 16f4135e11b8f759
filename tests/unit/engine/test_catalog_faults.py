"""An error of a catalog's server says what to do: REST, Hive and PostgreSQL."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import CatalogUnavailable, CommitStateUnknown, StatementError
from tests.unit.engine.test_faults import ICEBERG, chain

HIVE = "org.apache.iceberg.hive.RuntimeMetaException"
JDBC = "org.apache.iceberg.jdbc.UncheckedSQLException"
PG = "org.postgresql.util.PSQLException"
META = "org.apache.hadoop.hive.metastore.api.MetaException"
NO_STORE = (
    "Could not connect to meta store using any of the URIs provided. Most recent failure: "
    "org.apache.thrift.transport.TTransportException: java.net.ConnectException: Connection refused"
)

FAILURES = [
    (
        chain((HIVE, "Failed to reconnect to Hive Metastore"), (META, NO_STORE)),
        "cannot be reached",
        "its server runs",
    ),
    (
        chain(
            ("java.lang.RuntimeException", "Failed to get table info from metastore shop.orders"),
            ("org.apache.thrift.transport.TTransportException", "Socket is closed by peer."),
        ),
        "cannot be reached",
        "its server runs",
    ),
    (
        chain(
            (HIVE, "Failed to connect to Hive Metastore"),
            (
                META,
                "Could not connect to meta store. Most recent failure: TTransportException: GSS initiate "
                "failed",
            ),
        ),
        "credentials",
        "Kerberos",
    ),
    (
        chain(
            (HIVE, "Metastore operation failed for shop.t"),
            (META, "Got exception: java.io.IOException mkdir"),
        ),
        "metastore failed",
        "log of the metastore",
    ),
    (chain((ICEBERG + "NotAuthorizedException", "Not authorized: Token expired")), "credentials", "expired"),
    (
        chain((ICEBERG + "BadRequestException", "Malformed request: invalid_grant: Invalid credentials")),
        "credentials",
        "`credential`",
    ),
    (chain((ICEBERG + "ForbiddenException", "Forbidden: Principal may not")), "permit", "grant"),
    (
        chain((ICEBERG + "ServiceFailureException", "Server error: NullPointerException: null")),
        "server failed",
        "log of the server",
    ),
    (
        chain((ICEBERG + "ServiceUnavailableException", "Service unavailable: Slow down")),
        "server failed",
        "run again",
    ),
    (
        chain((ICEBERG + "RESTException", "Unable to process (code: 502, type: null): Bad Gateway")),
        "server failed",
        "run again",
    ),
    (
        chain((JDBC, "Cannot initialize JDBC catalog: Failed to connect: jdbc:arctic:postgresql://db/lake")),
        "cannot be reached",
        "its server runs",
    ),
    (
        chain(
            (JDBC, "Failed to connect: jdbc:arctic:postgresql://db/lake"),
            (PG, 'FATAL: password authentication failed for user "u"'),
        ),
        "credentials",
        "`password`",
    ),
    (
        chain(
            (JDBC, "Failed to execute: SELECT * FROM iceberg_tables"),
            (PG, "An I/O error occurred while sending to the backend."),
            ("java.net.SocketTimeoutException", "Read timed out"),
        ),
        "cannot be reached",
        "network",
    ),
]


@pytest.mark.parametrize(("causes", "what", "fix"), FAILURES)
def test_a_failure_of_the_server_says_what_to_do(causes: list[Cause], what: str, fix: str) -> None:
    error = classify(causes, "INSERT INTO t SELECT 1").error
    assert type(error) is CatalogUnavailable
    assert what in error.what
    assert fix in error.fix
    assert causes[-1].message.partition("\n")[0] in error.why
    # The state of a commit comes before its cause.
    unknown = [Cause(ICEBERG + "CommitStateUnknownException", "Cannot determine"), *causes]
    assert type(classify(unknown, "INSERT INTO t SELECT 1").error) is CommitStateUnknown


def test_a_request_that_the_server_rejects_is_no_lost_server() -> None:
    causes = chain((ICEBERG + "BadRequestException", "Malformed request: format version 3 is not supported"))
    error = classify(causes, "CREATE TABLE t").error
    assert type(error) is StatementError
    assert "dbt debug" in error.fix


def test_a_database_that_is_a_source_is_not_the_catalog() -> None:
    causes = chain(
        ("org.apache.spark.SparkException", "Job aborted"),
        (PG, "An I/O error occurred while sending to the backend."),
    )
    assert type(classify(causes, "SELECT 1").error) is StatementError
