"""The choice of a reader, and Spark's properties in pyiceberg's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbt_arctic.catalog import translate
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.jdbc import JdbcCatalog
from dbt_arctic.catalog.open import open_catalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.translate import pyiceberg_properties
from dbt_arctic.errors import OnlyBySpark

if TYPE_CHECKING:
    from tests.unit.catalog.conftest import HandmadeWarehouse


def no_statement(sql: str) -> list[tuple[Any, ...]]:
    raise AssertionError(f"asked Spark: {sql}")


@pytest.fixture(autouse=True)
def every_client_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "find_spec", lambda module: module)


@pytest.mark.parametrize(
    ("properties", "reader"),
    [
        ({}, EmbeddedCatalog),
        ({"s3.endpoint": "http://store"}, EmbeddedCatalog),
        (
            {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": "jdbc:sqlite:/x/y.db"},
            EmbeddedCatalog,
        ),
        ({"type": "rest", "uri": "http://host/"}, RemoteCatalog),
        ({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "uri": "http://host/"}, RemoteCatalog),
        ({"type": "hive", "uri": "thrift://host:9083"}, RemoteCatalog),
        ({"type": "glue"}, RemoteCatalog),
        ({"type": "jdbc", "uri": "jdbc:postgresql://host/db"}, JdbcCatalog),
        ({"type": "hive"}, SparkSqlCatalog),
        ({"type": "hadoop", "warehouse": "/x"}, SparkSqlCatalog),
        ({"type": "jdbc", "uri": "jdbc:oracle:thin:@host"}, SparkSqlCatalog),
        ({"catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"}, SparkSqlCatalog),
        (
            {"type": "rest", "uri": "http://host/", "rest.auth.type": "com.example.OwnAuthManager"},
            SparkSqlCatalog,
        ),
    ],
)
def test_each_catalog_has_its_reader_and_opening_reads_nothing(
    properties: dict[str, str], reader: type[object]
) -> None:
    assert type(open_catalog("lake", "none", properties, no_statement)) is reader


@pytest.mark.parametrize("location", ["hdfs://namenode:8020/lake", "viewfs://cluster/lake"])
@pytest.mark.parametrize(
    "properties",
    [{"type": "hive", "uri": "thrift://host"}, {"type": "jdbc", "uri": "jdbc:postgresql://host/db"}],
)
def test_metadata_in_hdfs_is_read_by_spark(properties: dict[str, str], location: str) -> None:
    assert type(open_catalog("lake", location, properties, no_statement)) is SparkSqlCatalog
    named = {**properties, "warehouse": location}
    assert type(open_catalog("lake", "none", named, no_statement)) is SparkSqlCatalog


def test_the_embedded_catalog_is_looked_for_where_spark_puts_it(
    handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(handmade.folder.parent))
    moved = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": f"jdbc:sqlite:{handmade.file}"}
    for warehouse, properties in (
        (str(handmade.folder), {}),
        (f"file://{handmade.folder}", {}),
        (f"~/{handmade.folder.name}", {}),
        ("/elsewhere", moved),
    ):
        assert open_catalog("lake", warehouse, properties, no_statement).list_schemas() == ["a"]


def test_without_its_client_a_catalog_is_read_by_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "find_spec", lambda module: None)
    for extra, properties in (
        ("hive", {"type": "hive", "uri": "thrift://host:9083"}),
        ("glue", {"type": "glue"}),
        ("postgres", {"type": "jdbc", "uri": "jdbc:postgresql://host/db"}),
    ):
        reader = open_catalog("lake", "none", properties, no_statement)
        assert type(reader) is SparkSqlCatalog
        with pytest.raises(OnlyBySpark) as caught:
            reader.arrow_table("a", "t")
        assert f"pip install 'dbt-arctic[{extra}]'" in caught.value.fix
        # There, it would not help.
        in_hadoop = open_catalog("lake", "hdfs://host/lake", properties, no_statement)
        with pytest.raises(OnlyBySpark) as caught:
            in_hadoop.arrow_table("a", "t")
        assert "pip install" not in caught.value.fix


def test_a_catalog_whose_client_is_there_misses_no_package() -> None:
    for properties in (
        {"type": "jdbc", "uri": "jdbc:postgresql://host/db", "jdbc.currentSchema": "prod"},
        {"type": "rest", "uri": "http://host", "rest.auth.type": "org.example.Auth"},
    ):
        with pytest.raises(OnlyBySpark) as caught:
            open_catalog("lake", "none", properties, no_statement).arrow_table("a", "t")
        assert "pip install" not in caught.value.fix


def test_rest_properties_pass_with_spark_s_own_left_out() -> None:
    spark = {
        "catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "cache-enabled": "false",
        "uri": "https://host/catalog",
        "warehouse": "main",
        "credential": "id:secret",
        "scope": "PRINCIPAL_ROLE:ALL",
        "s3.endpoint": "http://store:9000",
        "header.X-Realm": "r",
    }
    assert pyiceberg_properties(spark) == {
        "type": "rest",
        "snapshot-loading-mode": "all",
        "uri": "https://host/catalog",
        "warehouse": "main",
        "credential": "id:secret",
        "scope": "PRINCIPAL_ROLE:ALL",
        "s3.endpoint": "http://store:9000",
        "header.X-Realm": "r",
    }


def test_rest_logins_are_translated() -> None:
    basic = {
        "type": "rest",
        "uri": "http://host/",
        "rest.auth.type": "basic",
        "rest.auth.basic.username": "ada",
        "rest.auth.basic.password": "pw",
    }
    translated = pyiceberg_properties(basic)
    assert translated is not None
    assert translated["auth"] == {"type": "basic", "basic": {"username": "ada", "password": "pw"}}
    signed = pyiceberg_properties({"type": "rest", "uri": "http://host/", "rest.auth.type": "sigv4"})
    assert signed is not None
    assert signed["rest.sigv4-enabled"] == "true"


def test_a_jdbc_address_becomes_one_of_sqlalchemy_that_creates_nothing() -> None:
    translated = pyiceberg_properties(
        {
            "type": "jdbc",
            "uri": "jdbc:postgresql://host:5432/db",
            "jdbc.user": "ada",
            "jdbc.password": "p@ss/word",
            "warehouse": "s3://bucket/wh",
        }
    )
    assert translated is not None
    assert translated["type"] == "sql"
    assert translated["uri"] == "postgresql+psycopg://ada:p%40ss%2Fword@host:5432/db"
    assert translated["warehouse"] == "s3://bucket/wh"


def test_an_address_whose_parameters_only_the_driver_knows_is_left_to_spark() -> None:
    address = "jdbc:postgresql://host:5432/db?currentSchema=prod"
    assert pyiceberg_properties({"type": "jdbc", "uri": address}) is None
    as_property = {"type": "jdbc", "uri": "jdbc:postgresql://host:5432/db", "jdbc.currentSchema": "prod"}
    assert pyiceberg_properties(as_property) is None


def test_the_bucket_is_where_the_profile_says_in_both_clients() -> None:
    rest = {"type": "rest", "uri": "http://host/", "s3.endpoint": "https://oss.example.org"}
    forced = "s3.force-virtual-addressing"
    assert forced not in (pyiceberg_properties(rest) or {})
    assert forced not in (pyiceberg_properties({**rest, "s3.path-style-access": "true"}) or {})
    assert (pyiceberg_properties({**rest, "s3.path-style-access": "false"}) or {})[forced] == "true"


def test_all_snapshots_are_requested() -> None:
    refs = {"type": "rest", "uri": "http://host/", "snapshot-loading-mode": "refs"}
    assert (pyiceberg_properties(refs) or {})["snapshot-loading-mode"] == "all"
