"""A catalog in plain words: what Iceberg's two clients are given, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.catalog import translate
from dbt_arctic.catalog.translate import pyiceberg_properties
from dbt_arctic.engine.catalog_settings import read_definition
from dbt_arctic.engine.connectors import AWS_BUNDLE, POSTGRES_DRIVER
from dbt_arctic.engine.jdbc_driver import TIMEOUTS
from dbt_arctic.engine.settings import SQLITE_DRIVER, is_embedded, packages, session_conf
from dbt_arctic.errors import ProfileError
from dbt_arctic.secret import without_secrets


def profile(**settings: Any) -> ArcticCredentials:
    """As dbt reads a target: names translated, validated, then made."""
    data = ArcticCredentials.translate_aliases({"schema": "dev", **settings})
    ArcticCredentials.validate(data)
    return ArcticCredentials.from_dict(data)


def catalog_of(conf: dict[str, str], name: str = "lake") -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}."
    return {key.removeprefix(prefix): value for key, value in conf.items() if key.startswith(prefix)}


def jars(credentials: ArcticCredentials) -> set[str]:
    return {jar.rpartition(":")[0] for jar in packages(credentials.spark_settings())}


POSTGRES = {"type": "postgres", "uri": "postgresql://db:5433/lake", "warehouse": "/data/lake"}


def test_a_name_alone_is_what_it_was() -> None:
    assert profile(catalog="lake").catalog_properties == {}
    assert session_conf(profile(catalog={"type": "sqlite"}).spark_settings("/p")) == session_conf(
        profile().spark_settings("/p")
    )


def test_sqlite_may_have_its_file_in_another_place() -> None:
    made = profile(
        catalog={"type": "sqlite", "uri": "sqlite:////srv/c.db", "warehouse": "/data", "name": "w"}
    )
    found = catalog_of(session_conf(made.spark_settings()), "w")
    assert (found["uri"], found["warehouse"]) == ("jdbc:sqlite:/srv/c.db", "/data")
    assert found["catalog-impl"].endswith("JdbcCatalog")
    assert SQLITE_DRIVER.rpartition(":")[0] in jars(made)


def test_postgres_is_one_database_for_spark_and_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "find_spec", lambda module: module == "sqlalchemy" or module == "psycopg")
    made = profile(
        catalog={**POSTGRES, "user": "ada", "password": "p@ss/word", "sslmode": "require", "name": "lake"}
    )
    assert catalog_of(session_conf(made.spark_settings())) == {
        "cache-enabled": "false",
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": "jdbc:arctic:postgresql://db:5433/lake",
        "warehouse": "/data/lake",
        "jdbc.schema-version": "V1",
        "jdbc.user": "ada",
        "jdbc.password": "p@ss/word",
        "jdbc.sslmode": "require",
        **TIMEOUTS,
    }
    translated = pyiceberg_properties(made.iceberg_properties)
    assert translated is not None
    address, _, parameters = translated["uri"].partition("?")
    assert address == "postgresql+psycopg://ada:p%40ss%2Fword@db:5433/lake"
    assert parameters == (
        "sslmode=require&connect_timeout=10&tcp_user_timeout=60000"
        "&keepalives_idle=30&keepalives_interval=10&keepalives_count=3"
    )
    assert POSTGRES_DRIVER.rpartition(":")[0] in jars(made)
    assert AWS_BUNDLE not in jars(made)


def test_limits_on_time_of_the_user_win_and_metadata_is_still_read_without_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translate, "find_spec", lambda module: module == "sqlalchemy" or module == "psycopg")
    own = {"jdbc.socketTimeout": 0, "jdbc.connectTimeout": 3, "jdbc.tcpKeepAlive": False}
    made = profile(catalog=POSTGRES, catalog_properties=own)
    found = catalog_of(session_conf(made.spark_settings()))
    assert [found[name] for name in own] == ["0", "3", "false"]
    translated = pyiceberg_properties(made.iceberg_properties)
    assert translated is not None
    assert translated["uri"] == "postgresql+psycopg://db:5433/lake?connect_timeout=3"


def test_a_password_comes_from_the_setting_the_address_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("of-a-file\n")
    environ = {"PGUSER": "env", "PGPASSWORD": "of-the-environment"}

    def login(**settings: str) -> tuple[str | None, str | None]:
        found = read_definition({**POSTGRES, **settings}, environ).properties
        return found.get("jdbc.user"), found.get("jdbc.password")

    assert login(user="ada", password="given") == ("ada", "given")
    assert login(uri="postgresql://ada:p%2Fw@db/lake") == ("ada", "p/w")
    assert login(user="ada", password_file=str(file)) == ("ada", "of-a-file")
    assert login() == ("env", "of-the-environment")
    # Both drivers look into ~/.pgpass themselves.
    assert "jdbc.password" not in read_definition(POSTGRES, {}).properties
    assert (
        "ada" not in read_definition({**POSTGRES, "uri": "postgresql://ada:x@db/lake"}, {}).properties["uri"]
    )


def test_a_secret_of_a_definition_is_never_shown() -> None:
    made = profile(catalog={**POSTGRES, "user": "ada", "password": "hunter2-catalog"})
    assert "hunter2-catalog" not in repr(made) + str(dict(made.connection_info(with_aliases=True)))
    made.spark_settings()
    assert "hunter2-catalog" not in without_secrets("the driver said: hunter2-catalog")


def test_rest_has_its_ways_to_log_in(tmp_path: Path) -> None:
    file = tmp_path / "credential"
    file.write_text("id:secret")
    made = profile(
        catalog={
            "type": "rest",
            "uri": "https://host/catalog",
            "warehouse": "main",
            "credential_file": str(file),
            "scope": "all",
            "headers": {"X-Realm": "r"},
            "s3": {"endpoint": "http://store:9000", "region": "eu-1", "path_style": True},
        }
    )
    shared = {
        "uri": "https://host/catalog",
        "credential": "id:secret",
        "scope": "all",
        "header.X-Realm": "r",
        "s3.endpoint": "http://store:9000",
        "s3.path-style-access": "true",
        "client.region": "eu-1",
    }
    conf = catalog_of(session_conf(made.spark_settings()))
    assert conf == {"cache-enabled": "false", "type": "rest", "warehouse": "main", **shared}
    assert AWS_BUNDLE in jars(made)
    translated = pyiceberg_properties({"warehouse": "main", **made.iceberg_properties})
    assert translated is not None
    assert shared.items() <= translated.items()
    basic = read_definition(
        {"type": "rest", "uri": "u", "auth": "basic", "user": "ada", "password": "pw"}, {}
    ).properties
    assert (pyiceberg_properties(basic) or {})["auth"]["basic"] == {"username": "ada", "password": "pw"}


def test_a_rest_catalog_may_hand_out_credentials_for_its_store() -> None:
    plain = profile(catalog={"type": "rest", "uri": "u"})
    vended = profile(catalog={"type": "rest", "uri": "u", "vended_credentials": True})
    off = profile(catalog={"type": "rest", "uri": "u", "vended_credentials": False})
    header = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    assert vended.iceberg_properties == {**plain.iceberg_properties, **header}
    assert off.iceberg_properties == plain.iceberg_properties
    assert jars(vended) == {*jars(plain), AWS_BUNDLE}
    assert catalog_of(session_conf(vended.spark_settings())).items() >= header.items()
    assert (pyiceberg_properties(vended.iceberg_properties) or {}).items() >= header.items()
    with pytest.raises(ProfileError, match="vended_credentials"):
        read_definition({"type": "rest", "uri": "u", "vended_credentials": "vended-credentials"}, {})


def test_postgres_of_a_server_with_the_driver_has_its_address() -> None:
    arctic = {**POSTGRES, "uri": "jdbc:arctic:postgresql://ada:pw@db:5433/lake"}
    found = read_definition(arctic, {}).properties
    assert (found["uri"], found["jdbc.user"]) == ("jdbc:arctic:postgresql://db:5433/lake", "ada")
    on_server = profile(method="connect", host="sc://h", catalog=arctic).connect_settings()
    assert catalog_of(dict(on_server.conf))["uri"] == "jdbc:arctic:postgresql://db:5433/lake"


def test_hive_and_glue_keep_tables_in_s3() -> None:
    hive = profile(
        catalog={
            "type": "hive",
            "uri": "thrift://host:9083",
            "warehouse": "s3://shop/lake",
            "s3": {"access_key_id": "k", "secret_access_key": "s3cret-of-hive"},
        }
    )
    assert hive.iceberg_properties == {
        "type": "hive",
        "uri": "thrift://host:9083",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.access-key-id": "k",
        "s3.secret-access-key": "s3cret-of-hive",
    }
    glue = profile(
        catalog={"type": "glue", "region": "eu-1", "catalog_id": "42", "warehouse": "s3://shop/lake"}
    )
    assert glue.iceberg_properties == {
        "type": "glue",
        "client.region": "eu-1",
        "glue.id": "42",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }
    assert AWS_BUNDLE in jars(glue) & jars(hive)
    assert profile(
        catalog={"type": "hive", "uri": "thrift://h:1", "warehouse": "/lake"}
    ).iceberg_properties == {
        "type": "hive",
        "uri": "thrift://h:1",
    }


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({"AWS_REGION": "eu-1", "AWS_DEFAULT_REGION": "us-1"}, "eu-1"),
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "us-1"}, "us-1"),
        ({}, None),
    ],
)
@pytest.mark.parametrize(
    "glue",
    [
        {"catalog": {"type": "glue", "warehouse": "s3://shop/lake"}},
        {"warehouse": "s3://shop/lake", "catalog_properties": {"type": "glue"}},
        {
            "warehouse": "s3://shop/lake",
            "catalog_properties": {"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"},
        },
    ],
)
def test_both_clients_of_glue_use_one_region_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, glue: dict[str, Any], environ: dict[str, str], region: str | None
) -> None:
    monkeypatch.setattr(translate, "find_spec", lambda module: True)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    made = profile(**glue)
    assert catalog_of(session_conf(made.spark_settings())).get("client.region") == region
    assert (pyiceberg_properties(made.iceberg_properties) or {}).get("client.region") == region
    chosen = profile(catalog={"type": "glue", "warehouse": "s3://shop/lake", "region": "ap-1"})
    assert chosen.iceberg_properties["client.region"] == "ap-1"


def test_glue_and_its_store_have_one_region() -> None:
    glue = {"type": "glue", "warehouse": "s3://shop/lake", "region": "eu-1"}
    assert read_definition({**glue, "s3": {"region": "eu-1"}}, {}).properties["client.region"] == "eu-1"
    with pytest.raises(ProfileError, match="s3 has us-1"):
        read_definition({**glue, "s3": {"region": "us-1"}}, {})


def test_the_embedded_catalog_takes_the_settings_of_a_store_for_files_of_sources() -> None:
    assert AWS_BUNDLE not in jars(profile(catalog="lake"))
    by_properties = profile(catalog_properties={"s3.endpoint": "http://store:9000"})
    by_setting = profile(catalog={"type": "sqlite", "s3": {"endpoint": "http://store:9000"}})
    assert by_setting.catalog_properties == by_properties.catalog_properties
    assert {AWS_BUNDLE, "org.apache.hadoop:hadoop-aws"} <= jars(by_setting)
    assert is_embedded(by_setting.spark_settings())


def test_raw_properties_win_and_a_server_is_given_the_same() -> None:
    made = profile(
        method="connect",
        host="h",
        catalog=POSTGRES,
        catalog_properties={"jdbc.connectTimeout": 5, "uri": "x"},
    )
    conf = catalog_of(dict(made.connect_settings().conf))
    assert (conf["uri"], conf["jdbc.connectTimeout"], conf["warehouse"]) == ("x", "5", "/data/lake")


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"uri": "x"}, "catalog has no type"),
        ({"uri": "x", "typ": "rest"}, "write type instead of typ"),
        ({"type": "glu"}, "did you mean glue?"),
        ({"type": "postgresql"}, "dbt-arctic knows: sqlite, postgres, rest, hive, glue"),
        ({"type": "postgres"}, "catalog has no uri"),
        ({"type": "glue"}, "catalog has no warehouse"),
        ({**POSTGRES, "pasword": "x"}, "write password; the settings are:"),
        ({**POSTGRES, "token": "x"}, "has no setting of this name"),
        ({**POSTGRES, "uri": "mysql://h/d"}, "address of a database"),
        ({**POSTGRES, "uri": "postgresql://h/d?sslmode=require"}, "settings of their own"),
        ({**POSTGRES, "password": "a", "password_file": "b"}, "password is given as well"),
        ({**POSTGRES, "password_file": "/none/at/all"}, "cannot be read"),
        ({**POSTGRES, "s3": {"endpont": "x"}}, "write endpoint; the settings are:"),
        ({**POSTGRES, "s3": "http://x"}, "settings of its own"),
        ({**POSTGRES, "user": ["a"]}, "takes one value"),
        ({"type": "rest", "uri": "u", "auth": "kerberos"}, "oauth2, basic, sigv4, none"),
        ({"type": "sqlite", "uri": "/c.db"}, "sqlite:////folder/catalog.db"),
    ],
)
def test_a_definition_that_cannot_be_meant_is_an_error(definition: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=r"profiles\.yml, catalog") as raised:
        read_definition(definition, {})
    assert message in str(raised.value)


def test_what_contradicts_the_rest_of_the_profile_is_an_error() -> None:
    with pytest.raises(DbtRuntimeError, match="warehouse is given twice"):
        profile(catalog=POSTGRES, warehouse="/other")
    with pytest.raises(DbtRuntimeError, match="on the server's machine"):
        profile(method="connect", host="h", catalog={"type": "sqlite"})
