"""What a profile may say, for each way to reach Spark, and what it never shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_catalog
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.connect_settings import connect_conf, parsed_host
from dbt_arctic.errors import ProfileError


def profile(**settings: Any) -> ArcticCredentials:
    return ArcticCredentials.from_dict({"database": "lake", "schema": "dev", **settings})


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("warehous", "did you mean warehouse?"),
        ("thread", "did you mean threads?"),
        ("server_side_parameters", "under spark_conf"),
        ("http_path", "Spark Connect"),
        ("colour", "use one of: auth, catalog, catalog_properties"),
    ],
)
def test_an_unknown_setting_is_refused(name: str, fix: str) -> None:
    with pytest.raises(DbtRuntimeError, match=rf"(?s)AR-101 {name} is not a setting.*{re.escape(fix)}"):
        profile(**{name: "x"})


@pytest.mark.parametrize(
    ("settings", "said", "fix"),
    [
        ({"port": "s3cret"}, "port must be a whole number", "without quotes"),
        ({"use_ssl": "s3cret"}, "use_ssl must be true or false", "without quotes"),
        ({"password": 1234}, "password must be a text", "in quotes"),
        ({"packages": "s3cret"}, "packages must be a list", "write a list"),
        ({"packages": [1]}, "packages.0 must be a text", "in quotes"),
        ({"spark_conf": ["s3cret"]}, "spark_conf must be a mapping of names to values", "write a mapping"),
        ({"driver_memory": None}, "driver_memory must be a text", "write a text"),
    ],
)
def test_a_value_of_another_type_is_an_error_with_the_name_of_the_setting(
    settings: dict[str, Any], said: str, fix: str
) -> None:
    """As dbt reads a profile: it validates the settings before it makes the credentials."""
    with pytest.raises(DbtRuntimeError) as raised:
        ArcticCredentials.validate({"database": "lake", "schema": "dev", **settings})
    text = str(raised.value)
    assert f"AR-101 {said}" in text
    assert fix in text
    assert "s3cret" not in text
    assert "1234" not in text


def test_a_server_is_named_by_a_host_or_a_connection_string() -> None:
    plain = profile(method="connect", host="spark.example.com").connect_settings()
    assert (plain.host, plain.port, plain.url) == (
        "spark.example.com",
        15002,
        "sc://spark.example.com:15002/",
    )
    full = profile(method="connect", host="sc://h:443/;use_ssl=true;token=a%3Db;x-tenant=t", user_id="me")
    settings = full.connect_settings()
    assert (settings.use_ssl, settings.token, settings.parameters) == (True, "a=b", {"x-tenant": "t"})
    assert settings.url == "sc://h:443/;x-tenant=t;use_ssl=true;token=a%3Db;user_id=me"
    given = profile(method="connect", host="sc://[::1]:1/", port=2, token="t").connect_settings()
    assert (given.endpoint, given.token) == ("sc://[::1]:2", "t")


@pytest.mark.parametrize(
    "host", ["https://h", "sc://", "sc://h:port", "sc://h/path", "sc://me:secret@h", "sc://h/;token"]
)
def test_what_is_no_address_is_an_error_without_what_may_be_secret(host: str) -> None:
    with pytest.raises(ProfileError) as raised:
        parsed_host(host + ";token=s3cret")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"method": "connect"}, "host is missing"),
        ({"method": "connect", "host": "https://h"}, "host is not the address"),
        ({"method": "connect", "host": "h", "driver_memory": "4g"}, "driver_memory has no effect"),
        ({"method": "connect", "host": "h", "small_data": True}, "small_data has no effect"),
        ({"method": "connect", "host": "h", "repositories": ["r"]}, "repositories has no effect"),
        ({"method": "conect", "host": "h"}, "write method: connect"),
        ({"method": "batch"}, "write method: session"),
        ({"host": "h"}, "host has no effect with method: session"),
        ({"token": "t"}, "write method: connect"),
        ({"method": "http"}, "session, connect, thrift"),
        ({"method": "thrift"}, "host is missing"),
        ({"method": "thrift", "host": "sc://h"}, "host is not the name of a machine"),
        ({"method": "thrift", "host": "h", "auth": "jwt"}, "plain, ldap, nosasl, kerberos"),
        ({"method": "thrift", "host": "h", "token": "t"}, "token has no effect with method: thrift"),
        ({"method": "thrift", "host": "h", "master": "yarn"}, "master has no effect with method: thrift"),
        ({"method": "connect", "host": "h", "password": "s"}, "password has no effect with method: connect"),
        ({"warehouse": " "}, "warehouse is empty"),
        ({"executor_memory": "4g"}, "executor_memory has no effect with master: local"),
        ({"method": "connect", "host": "h", "max_executors": 2}, "max_executors has no effect"),
        (
            {"master": "spark://127.0.0.1:1", "small_data": True},
            "small_data has no effect with master: spark",
        ),
        ({"spark_conf": {"spark.master": "yarn"}, "small_data": True}, "small_data has no effect"),
        ({"master": "yarn"}, "is a folder of this machine"),
        ({"master": "yarn", "warehouse": "./lake"}, "is a folder of this machine"),
        ({"spark_conf": {"spark": {"x": 1}}}, "nested value"),
    ],
)
def test_a_setting_without_effect_is_an_error(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(DbtRuntimeError, match=told):
        profile(**settings)


def test_what_dbt_debug_shows_has_no_secret() -> None:
    shown = profile(
        method="connect",
        host="sc://h:1/;token=s3cret;x-key=s3cret",
        token="s3cret",
        catalog_properties={"type": "rest", "uri": "u", "credential": "s3cret"},
    )
    assert "s3cret" not in str(dict(shown.connection_info(with_aliases=True)))
    assert dict(shown.connection_info())["endpoint"] == "sc://h:1"


def test_a_thrift_server_gets_no_properties_of_catalogs() -> None:
    given = profile(
        method="thrift",
        host="h",
        password="s3cret",
        catalog_properties={"type": "rest", "uri": "u", "credential": "s3cret"},
        catalogs={"archive": {"type": "rest", "uri": "u", "token": "s3cret"}},
        spark_conf={"spark.sql.ansi.enabled": False},
    )
    settings = given.thrift_settings()
    assert "s3cret" not in str([settings.conf, settings, dict(given.connection_info(with_aliases=True))])
    assert {key: value for key, value in settings.conf.items() if ".catalog." in key} == {
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.catalog.archive.cache-enabled": "false",
    }
    assert settings.conf["spark.sql.ansi.enabled"] == "false"
    assert dict(given.connection_info())["endpoint"] == settings.endpoint == "thrift://h:10000"


def test_a_catalog_of_the_server_is_not_set_up_again_but_never_cached() -> None:
    conf = connect_conf("lake", None, {}, {})
    assert {key: value for key, value in conf.items() if ".catalog." in key} == {
        "spark.sql.catalog.lake.cache-enabled": "false"
    }


def test_a_catalog_of_the_profile_is_set_up_in_each_session() -> None:
    settings = profile(
        method="connect",
        host="h",
        warehouse="s3://bucket",
        catalog_properties={"type": "rest", "uri": "u", "x": True},
        spark_conf={"spark.sql.ansi.enabled": False},
    ).connect_settings()
    assert settings.conf["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"
    assert settings.conf["spark.sql.catalog.lake.warehouse"] == "s3://bucket"
    assert settings.conf["spark.sql.catalog.lake.x"] == "true"
    assert settings.conf["spark.sql.ansi.enabled"] == "false"


def test_the_folder_of_tables_belongs_to_the_project(tmp_path: Path) -> None:
    assert profile().resolved_warehouse(str(tmp_path)) == str(tmp_path / "lake")
    assert profile(warehouse="s3://bucket/w").resolved_warehouse(str(tmp_path)) == "s3://bucket/w"


@pytest.mark.parametrize(
    ("properties", "reader"),
    [
        ({}, SparkSqlCatalog),
        ({"header.X-Realm": "r"}, SparkSqlCatalog),
        ({"type": "jdbc", "uri": "jdbc:sqlite:/on/the/server.db"}, SparkSqlCatalog),
        ({"type": "rest", "uri": "http://127.0.0.1:1/"}, RemoteCatalog),
    ],
)
def test_the_catalog_of_a_server_is_never_taken_for_a_folder_here(
    properties: dict[str, str], reader: type
) -> None:
    """Nothing would exist there, and tables would be created again."""
    credentials = profile(method="connect", host="h", catalog_properties=properties)
    found = choose_catalog(credentials, None, lambda sql: [])
    assert isinstance(found, WithRecords)
    assert type(found.behind) is reader


@pytest.mark.parametrize(
    "settings",
    [
        {"warehouse": "s3://bucket/w", "catalog_properties": {"type": "glue"}},
        {"warehouse": "main", "catalog_properties": {"type": "rest", "uri": "http://c"}},
        {"catalog_properties": {"type": "hive", "warehouse": "hdfs:///w"}},
    ],
)
def test_a_cluster_has_a_warehouse_that_all_machines_reach(settings: dict[str, Any]) -> None:
    found = profile(master="spark://head:7077", executor_memory="4g", max_executors=3, **settings)
    made = found.spark_settings()
    assert (made.cores, made.executor_memory, made.executor_cores, made.max_executors) == (
        None,
        "4g",
        None,
        3,
    )
