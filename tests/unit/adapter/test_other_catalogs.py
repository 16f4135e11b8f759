"""The section ``catalogs`` of a profile: what it may contain, and what Spark and the readers get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_catalog
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.jdbc import JdbcCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.connectors import POSTGRES_DRIVER
from dbt_arctic.engine.settings import SQLITE_DRIVER, packages, session_conf
from dbt_arctic.engine.warehouse import catalog_file, prepare_warehouses
from dbt_arctic.errors import CatalogUnavailable, ConfigError, ProfileError
from dbt_arctic.keyed.names import Name

POSTGRES = {"type": "postgres", "uri": "postgresql://db/x", "password": "s3cret", "warehouse": "s3://b/w"}
OTHERS: dict[str, Any] = {
    "archive": {"type": "sqlite", "warehouse": "../archive"},
    "shared": {"type": "rest", "uri": "https://catalog.example.org"},
    "warm": POSTGRES,
}


def profile(**settings: Any) -> ArcticCredentials:
    return ArcticCredentials.from_dict({"database": "lake", "schema": "dev", **settings})


def test_spark_opens_each_catalog_and_keeps_its_own_as_the_default() -> None:
    alone = session_conf(profile().spark_settings("/srv/p"))
    settings = profile(catalogs=OTHERS).spark_settings("/srv/p")
    conf = session_conf(settings)
    jars = "spark.jars.packages"
    assert {key: conf[key] for key in alone if key != jars} == {
        key: value for key, value in alone.items() if key != jars
    }, "nothing of the profile's own catalog changes"
    assert packages(settings).count(SQLITE_DRIVER) == 1
    assert POSTGRES_DRIVER in packages(settings)
    other = {key: value for key, value in conf.items() if key not in alone}
    assert other["spark.sql.catalog.archive"] == "org.apache.iceberg.spark.SparkCatalog"
    assert other["spark.sql.catalog.archive.uri"] == "jdbc:sqlite:/srv/archive/catalog.db"
    assert other["spark.sql.catalog.archive.warehouse"] == "/srv/archive"
    assert other["spark.sql.catalog.shared.type"] == "rest"
    assert "spark.sql.catalog.shared.warehouse" not in other
    assert other["spark.sql.catalog.warm.warehouse"] == "s3://b/w"
    assert {f"spark.sql.catalog.{name}.cache-enabled" for name in OTHERS} <= set(other)


def behind(reader: CatalogReader) -> CatalogReader:
    assert isinstance(reader, WithRecords), "one of the catalogs may have no views"
    return reader.behind


def test_each_catalog_has_its_reader() -> None:
    catalog = choose_catalog(profile(catalogs=OTHERS), "/srv/p", lambda sql: [])
    readers = {name: catalog.of(Name(name, "s", "t")) for name in ("lake", *OTHERS)}
    assert {name: type(behind(reader)) for name, reader in readers.items() if name != "warm"} == {
        "lake": EmbeddedCatalog,
        "archive": EmbeddedCatalog,
        "shared": RemoteCatalog,
    }
    assert isinstance(behind(readers["warm"]), (JdbcCatalog, SparkSqlCatalog)), "if its driver is installed"
    assert readers["lake"] is catalog
    with pytest.raises(ConfigError, match="no catalog cold"):
        catalog.of(Name("cold", "s", "t"))


def test_a_server_or_spark_conf_may_define_a_catalog() -> None:
    credentials = profile(method="connect", host="h", catalogs={"archive": None, "warm": POSTGRES})
    conf = credentials.connect_settings().conf
    assert conf["spark.sql.catalog.archive.cache-enabled"] == "false"
    assert "spark.sql.catalog.archive" not in conf
    assert conf["spark.sql.catalog.warm.warehouse"] == "s3://b/w"
    asked: list[str] = []
    catalog = choose_catalog(credentials, None, lambda sql: asked.append(sql) or [])  # type: ignore[func-returns-value]
    assert isinstance(behind(catalog.of(Name("archive", "s", "t"))), SparkSqlCatalog)
    catalog.of(Name("archive", "s", "t")).list_schemas()
    assert asked == ["SHOW SCHEMAS IN `archive`"]
    conf = {"spark.sql.catalog.archive": "org.apache.iceberg.spark.SparkCatalog"}
    by_conf = choose_catalog(profile(spark_conf=conf, catalogs={"archive": None}), None, lambda sql: [])
    assert isinstance(behind(by_conf.of(Name("archive", "s", "t"))), SparkSqlCatalog)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"lake": {"type": "hive", "uri": "thrift://h:1"}}, "The catalog lake is in the profile twice"),
        ({"LAKE": {"type": "hive", "uri": "thrift://h:1"}}, "dbt compares names without case"),
        ({"archive": None}, "The catalog archive has no settings"),
        ({"archive": "hive"}, "not defined by settings of its own"),
        ({"archive": {"type": "hive", "uri": "thrift://h:1", "name": "x"}}, "not defined by settings of its"),
        ({"archive": {"type": "sqlite"}}, "The catalog archive has no warehouse"),
        ({"archive": {"type": "postgres", "uri": "postgresql://h/d"}}, "has no warehouse"),
        (
            {"archive": {"type": "sqlite", "warehouse": "./lake"}},
            "the warehouse of the profile's own catalog",
        ),
        (
            {
                "warm": {"type": "postgres", "uri": "postgresql://h/d", "warehouse": "s3a://b/w/"},
                "cold": {"type": "hive", "uri": "thrift://h:1", "warehouse": "s3://b/w"},
            },
            "The catalog cold has the warehouse of the catalog warm",
        ),
        ({"archive": {"type": "hiv"}}, "catalogs: archive, type"),
        ({"archive": {"type": "rest"}}, "catalogs: archive, uri"),
        ({"arc-hive": {"type": "hive", "uri": "thrift://h:1"}}, "The catalog name 'arc-hive' is not valid"),
    ],
)
def test_a_wrong_definition_is_refused(others: dict[str, Any], told: str) -> None:
    with pytest.raises((DbtRuntimeError, ProfileError), match=f"(?s)AR-101.*{told}"):
        profile(catalogs=others)


def test_only_hive_stores_all_names_in_lower_case() -> None:
    hive = {"type": "hive", "uri": "thrift://h:1"}
    assert profile(catalogs={"warm": hive, "cold": None}, method="connect", host="h").lower_case_catalogs == [
        "warm"
    ]
    assert profile(catalog_properties=hive, catalogs={"warm": POSTGRES}).lower_case_catalogs == ["lake"]


def test_a_file_would_be_on_the_server() -> None:
    archive = {"type": "sqlite", "warehouse": "/w"}
    with pytest.raises(DbtRuntimeError, match=r"(?s)archive has the type 'sqlite'.*server's machine"):
        profile(method="connect", host="h", catalogs={"archive": archive})


def test_a_secret_of_another_catalog_is_not_shown() -> None:
    credentials = profile(catalogs={"warm": POSTGRES})
    shown = f"{credentials} {credentials.spark_settings()} {dict(credentials.connection_info())}"
    assert "s3cret" not in shown
    with pytest.raises(ConfigError) as raised:
        raise ConfigError("a driver says: s3cret")
    assert "s3cret" not in str(raised.value)


def test_only_the_own_catalog_is_created(tmp_path: Path) -> None:
    archive = {"type": "sqlite", "warehouse": str(tmp_path / "archive")}
    settings = profile(warehouse=str(tmp_path / "lake"), catalogs={"archive": archive}).spark_settings()
    with pytest.raises(CatalogUnavailable, match="There is no catalog archive"):
        prepare_warehouses(settings)
    assert catalog_file(settings) is not None
    assert (tmp_path / "lake" / "catalog.db").exists()
    assert not (tmp_path / "archive").exists()


def test_an_empty_folder_becomes_a_new_catalog(tmp_path: Path) -> None:
    archive = {"type": "sqlite", "warehouse": str(tmp_path / "archive")}
    settings = profile(warehouse=str(tmp_path / "lake"), catalogs={"archive": archive}).spark_settings()
    (tmp_path / "archive").mkdir()
    prepare_warehouses(settings)
    assert EmbeddedCatalog("archive", tmp_path / "archive").list_schemas() == []
    (tmp_path / "archive" / "catalog.db").unlink()
    (tmp_path / "archive" / "other.txt").touch()
    with pytest.raises(CatalogUnavailable, match="only an empty folder becomes a new catalog"):
        prepare_warehouses(settings)
