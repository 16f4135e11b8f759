"""Secrets of the settings stay out of errors, descriptions and what other users of the machine can read."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic import secret
from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.private_file import blank_secrets, write_properties
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.startup import start_error
from dbt_arctic.errors import ArcticError, CatalogUnavailable, StatementError

CANARY = "canary-4711"


@pytest.mark.parametrize(
    ("name", "hides"),
    [
        ("token", True),
        ("credential", True),
        ("jdbc.password", True),
        ("oauth2.client-secret", True),
        ("s3.secret-access-key", True),
        ("s3.access-key-id", True),
        ("adls.auth.shared-key.account.key", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net", True),
        ("spark.ssl.keyStorePassword", True),
        ("header.Authorization", True),
        ("header.X-Gateway-Pass", True),
        ("header.X-Shop-Auth", True),
        ("header.X-Tenant", False),
        ("header.X-Iceberg-Access-Delegation", False),
        ("uri", False),
        ("warehouse", False),
        ("jdbc.user", False),
        ("spark.sql.shuffle.partitions", False),
    ],
)
def test_a_secret_is_known_by_the_name_of_its_setting(name: str, hides: bool) -> None:
    assert secret.is_secret(name) is hides
    assert (CANARY in secret.masked(name, CANARY)) is not hides


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("https://me:s3cret@repo.example/x", "https://me:*****@repo.example/x"),
        ("jdbc:mysql://h/d?user=me&password=s3cret&ssl=1", "jdbc:mysql://h/d?user=me&password=*****&ssl=1"),
        ("sc://h:1/;token=s3cret;user_id=me", "sc://h:1/;token=*****;user_id=me"),
        ("SELECT 'a' AS token FROM t@x WHERE b = 1", "SELECT 'a' AS token FROM t@x WHERE b = 1"),
    ],
)
def test_a_secret_is_known_by_its_place_in_an_address(text: str, left: str) -> None:
    assert secret.without_secrets(text) == left


@pytest.mark.parametrize("value", ["true", "", "no", "None"])
def test_a_word_is_not_hidden_for_being_a_settings_value(value: str) -> None:
    secret.remember({"token-refresh-enabled": value, "password": value})
    assert secret.without_secrets(f"it is {value}, no doubt") == f"it is {value}, no doubt"


def catalog() -> RemoteCatalog:
    properties = {"type": "rest", "uri": "http://127.0.0.1:1/", "credential": f"id:{CANARY}"}
    return RemoteCatalog("lake", properties, SparkSqlCatalog("lake", lambda sql: []), views_by_sql=False)


def an_error_of_a_catalog() -> ArcticError:
    made = catalog()
    made._open = lambda: (_ for _ in ()).throw(RuntimeError(f"401 for {CANARY}"))  # type: ignore[assignment, method-assign]
    with pytest.raises(CatalogUnavailable) as caught:
        made.list_schemas()
    return caught.value


def an_error_of_java() -> ArcticError:
    SparkSettings(catalog="lake", warehouse="x", spark_conf={"spark.hadoop.fs.s3a.secret.key": CANARY})
    return classify(
        [Cause("java.lang.RuntimeException", f"wrong signature {CANARY}")], f"SELECT '{CANARY}'"
    ).error


def an_error_of_a_start() -> ArcticError:
    settings = SparkSettings("lake", "x", repositories=(f"https://me:{CANARY}@repo.example/maven",))
    return start_error(f"unresolved dependency: {CANARY}", "x.log", settings, "Java 17")


def an_error_in_words() -> ArcticError:
    SparkSettings("lake", "x", catalog_properties={"token": CANARY})
    return StatementError(f"a {CANARY}", where=CANARY, why=CANARY, fix=f"echo {CANARY}")


@pytest.mark.parametrize(
    "make", [an_error_of_a_catalog, an_error_of_java, an_error_of_a_start, an_error_in_words]
)
def test_no_error_contains_a_secret(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "_known", set())
    error = make()
    assert CANARY not in str(error)
    assert CANARY not in "".join((error.what, error.where, error.why, error.fix))
    assert secret.HIDDEN in str(error)


def test_credentials_and_settings_are_described_without_secrets() -> None:
    secrets: dict[str, Any] = {"catalog_properties": {"token": CANARY}, "spark_conf": {"a.password": CANARY}}
    embedded = ArcticCredentials(**secrets)
    host = f"sc://spark.example:443/;x-token={CANARY}"
    connect = ArcticCredentials(method="connect", host=host, token=CANARY, **secrets)
    for credentials in (embedded, connect):
        shown = dict(credentials.connection_info(with_aliases=True))
        assert CANARY not in f"{credentials!r} {shown} {credentials.unique_field}"
    assert CANARY not in f"{embedded.spark_settings()!r} {connect.connect_settings()!r}"
    assert CANARY in connect.connect_settings().url, "or nobody would be let in"


def test_a_secret_in_a_log_is_overwritten_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret, "_known", set())
    secret.remember({"repositories": f"https://me:{CANARY}@repo.example/maven"})
    log = tmp_path / "spark.log"
    log.write_text(f"https://me:{CANARY}@repo.example/maven added\nmore\n")
    with log.open("r+") as written_on:
        written_on.seek(0, 2)
        blank_secrets(log)
        written_on.write("later\n")
    assert log.read_text() == f"https://me:{'*' * len(CANARY)}@repo.example/maven added\nmore\nlater\n"
    blank_secrets(tmp_path / "not_written.log")


def test_a_file_with_settings_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "launch.conf"
    write_properties(path, {"spark.a b": " c=d\n\\é", "spark.password": CANARY})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == f"spark.a\\ b=\\ c=d\\n\\\\\\u00e9\nspark.password={CANARY}\n"
