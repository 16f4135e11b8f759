"""The conf that a profile becomes."""

from __future__ import annotations

import importlib.metadata
import os
import re
from dataclasses import replace

import pytest

from dbt_arctic.engine.connect_settings import connect_conf
from dbt_arctic.engine.settings import (
    COLLECTOR,
    CONNECTORS,
    FAST_COMPILER,
    OtherCatalog,
    SparkSettings,
    local_cores,
    session_conf,
)
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import DependencyError, ProfileError

LAKE = "spark.sql.catalog.lake"


def test_a_profile_that_names_no_catalog_gets_the_embedded_one() -> None:
    conf = session_conf(SparkSettings("lake", "/data/shop"))
    assert conf[LAKE] == "org.apache.iceberg.spark.SparkCatalog"
    assert conf[f"{LAKE}.catalog-impl"] == "org.apache.iceberg.jdbc.JdbcCatalog"
    assert conf[f"{LAKE}.uri"] == "jdbc:sqlite:/data/shop/catalog.db"
    assert conf[f"{LAKE}.warehouse"] == "/data/shop"
    assert conf[f"{LAKE}.jdbc.schema-version"] == "V1"
    assert "org.xerial:sqlite-jdbc" in conf["spark.jars.packages"]
    assert conf["spark.sql.defaultCatalog"] == "lake"


def test_a_relative_warehouse_is_made_absolute() -> None:
    conf = session_conf(SparkSettings("lake", "shop"))
    assert conf[f"{LAKE}.warehouse"] == f"{os.getcwd()}/shop"


def test_a_file_uri_is_a_folder() -> None:
    conf = session_conf(SparkSettings("lake", "file:///data/shop"))
    assert conf[f"{LAKE}.uri"] == "jdbc:sqlite:/data/shop/catalog.db"


def test_a_named_catalog_gets_its_properties_as_they_are_and_no_sqlite() -> None:
    given = {"type": "rest", "uri": "https://catalog.example", "token": "secret"}
    conf = session_conf(SparkSettings("lake", "s3://bucket/shop", catalog_properties=given))
    ours = {key.removeprefix(f"{LAKE}."): value for key, value in conf.items() if key.startswith(f"{LAKE}.")}
    assert ours == given | {"warehouse": "s3://bucket/shop", "cache-enabled": "false"}
    assert "sqlite" not in conf["spark.jars.packages"]


def test_an_address_without_a_kind_is_not_taken_for_the_embedded_catalog() -> None:
    with pytest.raises(ProfileError, match="add type: rest, hive, glue or jdbc"):
        SparkSettings("lake", "/w", {"uri": "jdbc:postgresql://host/db"})
    assert SparkSettings("lake", "/w", {"uri": "jdbc:sqlite:/elsewhere.db"})


def test_a_jdbc_catalog_on_a_sqlite_file_gets_the_driver() -> None:
    given = {"type": "jdbc", "uri": "jdbc:sqlite:/elsewhere.db"}
    assert "sqlite" in session_conf(SparkSettings("lake", "/w", given))["spark.jars.packages"]


def test_the_users_conf_wins_over_everything() -> None:
    mine = {"spark.sql.ansi.enabled": "false", "spark.ui.enabled": "true"}
    conf = session_conf(SparkSettings("lake", "/w", spark_conf=mine))
    assert conf.items() >= mine.items()


@pytest.mark.parametrize("key", [LAKE, f"{LAKE}.uri", f"{LAKE}.catalog-impl", "spark.sql.catalog.warm.uri"])
def test_a_catalog_of_the_profile_is_not_defined_in_spark_conf_too(key: str) -> None:
    others = (OtherCatalog("warm", "/warm", {"type": "hive"}), OtherCatalog("cold"))
    with pytest.raises(ProfileError, match=re.escape(f"spark_conf sets {key}")):
        SparkSettings("lake", "/w", spark_conf={key: "x"}, others=others)
    with pytest.raises(ProfileError, match=re.escape("spark_conf sets spark.sql.catalog.lake.uri")):
        connect_conf("lake", None, {"type": "hive"}, {f"{LAKE}.uri": "x"})
    elsewhere = {"spark.sql.catalog.cold.uri": "x", f"{LAKE}house.uri": "x"}
    assert SparkSettings("lake", "/w", spark_conf=elsewhere, others=others)
    assert connect_conf("lake", None, {}, {f"{LAKE}.uri": "x"})


def test_the_cache_of_tables_stays_off() -> None:
    for name, settings in (
        ("lake", {"catalog_properties": {"cache-enabled": "true"}}),
        ("warm", {"others": (OtherCatalog("warm", "", {"type": "hive", "cache-enabled": "TRUE"}),)}),
    ):
        with pytest.raises(ProfileError, match=f"(?i)catalog.{name}.cache-enabled is true"):
            SparkSettings("lake", "/w", **settings)  # type: ignore[arg-type]
    with pytest.raises(ProfileError, match="cache-enabled"):
        connect_conf("lake", None, {"type": "hive", "cache-enabled": "true"}, {})
    elsewhere = {"spark.sql.catalog.cold.cache-enabled": "true"}
    for defined_by_the_server in (
        lambda: SparkSettings("lake", "/w", spark_conf=elsewhere),
        lambda: connect_conf("cold", None, {}, elsewhere),
        lambda: ThriftSettings("h", "cold", conf=elsewhere),
    ):
        with pytest.raises(ProfileError, match=r"cold\.cache-enabled is true"):
            defined_by_the_server()
    assert SparkSettings("lake", "/w", {"cache-enabled": "false"})


def test_statements_are_kept_for_the_ui_where_there_is_one() -> None:
    kept = "spark.sql.ui.retainedExecutions"
    assert session_conf(SparkSettings("lake", "/w"))[kept] == "300"
    assert session_conf(SparkSettings("lake", "/w", spark_conf={kept: "7"}))[kept] == "7"
    assert kept not in session_conf(SparkSettings("lake", "/w", spark_conf={"spark.ui.enabled": "true"}))


def test_plans_are_written_down_in_short_where_there_is_no_ui() -> None:
    mode = "spark.sql.ui.explainMode"
    assert session_conf(SparkSettings("lake", "/w"))[mode] == "simple"
    assert session_conf(SparkSettings("lake", "/w", spark_conf={mode: "formatted"}))[mode] == "formatted"
    assert mode not in session_conf(SparkSettings("lake", "/w", spark_conf={"spark.ui.enabled": "true"}))


def test_an_embedded_catalog_needs_a_local_folder() -> None:
    with pytest.raises(ProfileError, match="local folder"):
        session_conf(SparkSettings("lake", "s3://bucket/shop"))


@pytest.mark.parametrize("name", ["", "my lake", "lake.db", "1st", "a-b"])
def test_a_catalog_name_that_no_conf_key_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ProfileError):
        SparkSettings(name, "/w")


def test_an_unknown_pyspark_is_an_error_unless_packages_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9.0")
    with pytest.raises(DependencyError, match=r"pyspark 9\.9\.0"):
        session_conf(SparkSettings("lake", "/w"))
    conf = session_conf(SparkSettings("lake", "/w", packages=("a:b:1", "c:d:2")))
    assert conf["spark.jars.packages"] == "a:b:1,c:d:2"


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local[*]", os.cpu_count()), ("yarn", None)],
)
def test_the_cores_of_a_master(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


@pytest.mark.parametrize(
    ("master", "spark_conf", "cores"),
    [
        ("local[3]", {}, 3),
        ("local[3]", {"spark.master": "local[2]"}, 2),
        ("local", {"spark.master": "yarn"}, None),
    ],
)
def test_the_master_that_a_spark_conf_names_counts(
    master: str, spark_conf: dict[str, str], cores: int | None
) -> None:
    settings = SparkSettings("lake", "/w", master=master, spark_conf=spark_conf)
    assert settings.cores == cores
    assert ("spark.driver.host" in session_conf(settings)) == (cores is not None)


def test_a_cluster_keeps_its_own_number_of_shuffle_partitions_and_its_driver_address() -> None:
    conf = session_conf(SparkSettings("lake", "/w", master="spark://head:7077"))
    local = {"spark.sql.shuffle.partitions", "spark.broadcast.blockSize", "spark.driver.host"}
    assert not local & conf.keys()
    assert local <= session_conf(SparkSettings("lake", "/w")).keys()


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("", True),
        ("-Dhttps.proxyHost=proxy -Xss4m", True),
        ("-XX:+UseG1GC", False),
        ("-XX:+UseZGC -Xss1m", False),
    ],
)
def test_java_gets_one_collector(monkeypatch: pytest.MonkeyPatch, options: str, wanted: bool) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    conf = session_conf(SparkSettings("lake", "/data/shop"))
    assert ("spark.driver.extraJavaOptions" in conf) == wanted
    own = {"spark.driver.extraJavaOptions": "-Xss2m"}
    assert session_conf(SparkSettings("lake", "/data/shop", spark_conf=own)).items() >= own.items()


def test_a_cluster_chooses_its_own_collector() -> None:
    conf = session_conf(SparkSettings("lake", "/data/shop", master="spark://cluster:7077"))
    assert "spark.driver.extraJavaOptions" not in conf


def test_for_small_data_nothing_is_compiled_that_takes_longer_than_it_saves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "")
    few = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    local = few | {
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.extraJavaOptions": f"{COLLECTOR} {FAST_COMPILER}",
    }
    settings = SparkSettings("lake", "/data/shop", master="local[3]", small_data=True)
    assert session_conf(settings).items() >= local.items()
    assert not session_conf(replace(settings, small_data=False)).items() & local.items()
    assert not session_conf(replace(settings, master="spark://cluster:7077")).keys() & local.keys()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    assert session_conf(settings)["spark.driver.extraJavaOptions"] == FAST_COMPILER
    own = {"spark.sql.codegen.wholeStage": "true"}
    assert session_conf(replace(settings, spark_conf=own)).items() >= own.items()


def test_the_jars_of_a_connector_are_loaded_only_where_it_is_needed() -> None:
    plain = SparkSettings("lake", "/data/shop")
    assert "kafka" not in session_conf(plain)["spark.jars.packages"]
    jars = session_conf(replace(plain, connectors=("kafka",)))["spark.jars.packages"].split(",")
    assert jars == [*session_conf(plain)["spark.jars.packages"].split(","), *CONNECTORS["kafka"]]
    own = replace(plain, connectors=("kafka",), packages=("a:b:1",))
    assert session_conf(own)["spark.jars.packages"] == "a:b:1"


def test_a_setting_that_would_change_what_our_sql_means_is_refused() -> None:
    kind = "spark.sql.timestampType"
    with pytest.raises(ProfileError, match="store local times"):
        SparkSettings("lake", "/w", spark_conf={kind: "timestamp_ntz"})
    with pytest.raises(ProfileError, match="escape quotes"):
        SparkSettings("lake", "/w", spark_conf={"spark.sql.parser.escapedStringLiterals": "true"})
    assert (
        session_conf(SparkSettings("lake", "/w", spark_conf={kind: "timestamp_ltz"}))[kind] == "timestamp_ltz"
    )
