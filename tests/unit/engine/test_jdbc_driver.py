"""Which catalogs get the driver that does not repeat writes, and that its jar is of the current source."""

from __future__ import annotations

import os
import zipfile
from types import SimpleNamespace

import pytest

from dbt_arctic.catalog.translate import pyiceberg_properties
from dbt_arctic.engine.jdbc_driver import CLASS_PATH, JAR, TIMEOUTS, with_catalog_driver
from dbt_arctic.engine.jvm import SparkProcess, _makes_no_difference
from dbt_arctic.engine.settings import OtherCatalog, SparkSettings, packages, session_conf
from tests.packaging.jdbc_driver import DRIVER, manifest

URI = "spark.sql.catalog.lake.uri"
POSTGRES = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": "jdbc:postgresql://db:5432/lake"}


def test_the_jar_was_compiled_from_the_current_source() -> None:
    with zipfile.ZipFile(JAR) as jar:
        assert jar.read("META-INF/MANIFEST.MF").decode() == manifest(), (
            "python -m tests.packaging.jdbc_driver"
        )
        assert jar.read("META-INF/services/java.sql.Driver").decode().strip() == DRIVER
        assert DRIVER.replace(".", "/") + ".class" in jar.namelist()


def test_a_catalog_in_a_database_has_the_driver_and_its_jar() -> None:
    other = OtherCatalog("archive", properties={**POSTGRES, "uri": "jdbc:mysql://db/archive"})
    conf = session_conf(SparkSettings("lake", "/w", POSTGRES, others=(other,)))
    assert conf[URI] == "jdbc:arctic:postgresql://db:5432/lake"
    assert conf["spark.sql.catalog.archive.uri"] == "jdbc:arctic:mysql://db/archive"
    assert conf[CLASS_PATH] == str(JAR)
    assert with_catalog_driver(conf)[URI] == conf[URI]


def test_a_catalog_in_postgres_waits_for_a_limited_time_as_the_user_wants() -> None:
    """The driver's own default waits for ever."""
    prefix = URI.removesuffix("uri")
    other = OtherCatalog("archive", properties={**POSTGRES, "uri": "jdbc:mysql://db/archive"})
    settings = SparkSettings("lake", "/w", {**POSTGRES, "jdbc.socketTimeout": "7"}, others=(other,))
    conf = session_conf(settings)
    limits = {name: conf.get(f"{prefix}{name}") for name in TIMEOUTS}
    assert limits == {**TIMEOUTS, "jdbc.socketTimeout": "7"}
    assert "spark.sql.catalog.archive.jdbc.socketTimeout" not in conf  # MySQL counts milliseconds


def test_a_class_path_of_the_user_stays() -> None:
    settings = SparkSettings("lake", "/w", POSTGRES, spark_conf={CLASS_PATH: "/mine.jar"})
    assert session_conf(settings)[CLASS_PATH] == f"/mine.jar{os.pathsep}{JAR}"


@pytest.mark.parametrize(
    "properties", [{}, {"type": "rest", "uri": "https://db"}, {"type": "hive", "uri": "thrift://db:9083"}]
)
def test_other_catalogs_start_as_without_it(properties: dict[str, str]) -> None:
    conf = session_conf(SparkSettings("lake", "/w", properties))
    assert CLASS_PATH not in conf
    assert "jdbc:arctic:" not in str(conf)


@pytest.mark.parametrize("prefix", ["jdbc:", "jdbc:arctic:"])
def test_a_spark_of_another_program_is_given_the_address_of_the_profile(prefix: str) -> None:
    address, found = f"{prefix}postgresql://db:5432/lake", dict[str, str]()
    session = SimpleNamespace(conf=SimpleNamespace(set=found.__setitem__))
    root = SimpleNamespace(newSession=lambda: session)
    process = SparkProcess(root, {}, folder=None)
    process.__dict__["_sql_conf"] = SimpleNamespace(isStaticConfigKey=lambda key: False)
    assert process.new_session(SparkSettings("lake", "/w", {**POSTGRES, "uri": address})) is session
    assert found[URI] == address


def test_a_running_spark_with_more_jars_can_be_used_and_one_with_fewer_cannot() -> None:
    both = f"/mine.jar{os.pathsep}{JAR}"
    assert _makes_no_difference(CLASS_PATH, both, "/mine.jar")
    assert _makes_no_difference(CLASS_PATH, str(JAR), None)
    assert not _makes_no_difference(CLASS_PATH, None, str(JAR))


def test_an_address_with_the_driver_is_that_of_the_same_catalog() -> None:
    named = {**POSTGRES, "uri": "jdbc:arctic:postgresql://db:5432/lake"}
    assert pyiceberg_properties(named) == pyiceberg_properties(POSTGRES)
    assert packages(SparkSettings("lake", "/w", named)) == packages(SparkSettings("lake", "/w", POSTGRES))
    assert session_conf(SparkSettings("lake", "/w", named)) == session_conf(
        SparkSettings("lake", "/w", POSTGRES)
    )
