"""What a Spark of this machine is launched with: jars that are here, and a class archive."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine import class_archive
from dbt_arctic.engine.java import Java
from dbt_arctic.engine.jdbc_driver import CLASS_PATH, JAR
from dbt_arctic.engine.launch import JAVA_OPTIONS, launch_conf, python_of_workers, spark_defaults
from dbt_arctic.engine.local_hadoop import needs_defaults
from dbt_arctic.engine.settings import COLLECTOR, SparkSettings, session_conf

JAVA = Java("/java", "17.0.1", "vendor")
PACKAGES = "spark.jars.packages"
JARS = ("org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "org.xerial_sqlite-jdbc-3.50.3.0.jar")


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_archive.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    """The jars of the default packages, in Ivy's cache."""
    (tmp_path / "jars").mkdir()
    found = [tmp_path / "jars" / name for name in JARS]
    for jar in found:
        with zipfile.ZipFile(jar, "w") as content:
            content.writestr("a.class", b"")
    return found


@pytest.fixture
def archive(jars: list[Path], tmp_path: Path) -> Path:
    """The archive of these jars."""
    (tmp_path / "cache").mkdir()
    found = class_archive.path(JAVA, jars)
    found.touch()
    return found


def launched(tmp_path: Path, master: str = "local[2]", **given: str) -> dict[str, str]:
    conf = {"spark.jars.ivy": str(tmp_path), **given}
    settings = SparkSettings("lake", "/w", spark_conf=conf, master=master)
    return launch_conf(session_conf(settings), settings, JAVA)


def test_jars_that_are_here_go_on_the_class_path_and_are_not_resolved(
    tmp_path: Path, jars: list[Path]
) -> None:
    conf = launched(tmp_path)
    assert conf[CLASS_PATH].split(os.pathsep) == [str(jar) for jar in jars]
    assert PACKAGES not in conf
    assert conf[JAVA_OPTIONS] == COLLECTOR


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_bytes(jar.read_bytes()[:20])])
def test_a_jar_that_is_missing_or_cut_off_is_left_to_ivy(tmp_path: Path, jars: list[Path], damage) -> None:  # type: ignore[no-untyped-def]
    damage(jars[1])
    conf = launched(tmp_path)
    assert PACKAGES in conf
    assert CLASS_PATH not in conf


@pytest.mark.parametrize("given", [{PACKAGES: "a.b:c:1"}, {CLASS_PATH: "/mine.jar"}])
def test_jars_that_the_user_chooses_are_used(tmp_path: Path, archive: Path, given: dict[str, str]) -> None:
    conf = launched(tmp_path, **given)
    assert {key: conf.get(key) for key in given} == given
    assert conf[JAVA_OPTIONS] == COLLECTOR


def test_packages_of_the_profile_are_resolved_with_what_they_depend_on(tmp_path: Path, archive: Path) -> None:
    settings = SparkSettings(
        "lake", "/w", packages=("a.b:c:1",), spark_conf={"spark.jars.ivy": str(tmp_path)}, master="local[2]"
    )
    assert launch_conf(session_conf(settings), settings, JAVA)[PACKAGES] == "a.b:c:1"


def test_a_cluster_is_sent_its_jars(tmp_path: Path, archive: Path) -> None:
    conf = launched(tmp_path, master="spark://host:7077")
    assert PACKAGES in conf
    assert CLASS_PATH not in conf


def test_a_cluster_gets_no_class_archive(tmp_path: Path, archive: Path) -> None:
    assert str(archive) in launched(tmp_path)[JAVA_OPTIONS]
    assert str(archive) not in str(launched(tmp_path, master="spark://host:7077"))


def test_python_models_run_on_the_python_of_this_environment_or_on_the_chosen_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert python_of_workers({}) == sys.executable
    assert python_of_workers({"spark.pyspark.python": "/opt/python"}) == "/opt/python"
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    assert python_of_workers({"spark.pyspark.python": "/opt/python"}) == "./environment/bin/python"


def test_the_settings_of_sparks_own_defaults_are_known(tmp_path: Path) -> None:
    assert spark_defaults() == {}
    lines = (
        "# a comment\n\nspark.sql.caseSensitive   true \n spark.sql.x=a b\nspark.sql.y: c=d\nspark.sql.z \n"
    )
    (tmp_path / "spark-defaults.conf").write_text(lines)
    assert spark_defaults() == {
        "spark.sql.caseSensitive": "true",
        "spark.sql.x": "a b",
        "spark.sql.y": "c=d",
        "spark.sql.z": "",
    }


def test_a_class_path_of_sparks_own_defaults_stays(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraClassPath /mine.jar\n")
    assert CLASS_PATH not in launched(tmp_path)


@pytest.mark.parametrize("separator", [" ", "=", " : "])
def test_the_driver_of_a_catalog_in_a_database_is_added_to_a_class_path(
    tmp_path: Path, jars: list[Path], separator: str
) -> None:
    catalog = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": "jdbc:postgresql://db/lake"}
    conf = {"spark.jars.ivy": str(tmp_path)}
    settings = SparkSettings("lake", "/w", catalog, conf, master="local[2]")
    (tmp_path / "spark-defaults.conf").write_text(f"spark.driver.extraClassPath{separator}/mine.jar \n")
    assert launch_conf(session_conf(settings), settings, JAVA)[CLASS_PATH] == f"/mine.jar{os.pathsep}{JAR}"
    (tmp_path / "spark-defaults.conf").unlink()
    assert launch_conf(session_conf(settings), settings, JAVA)[CLASS_PATH] == str(JAR)
    postgres = shutil.copy(jars[0], jars[0].with_name("org.postgresql_postgresql-42.7.14.jar"))
    expected = [str(jars[0]), str(postgres), str(JAR)]
    assert launch_conf(session_conf(settings), settings, JAVA)[CLASS_PATH].split(os.pathsep) == expected


def test_an_archive_is_used_in_addition_to_other_options(tmp_path: Path, archive: Path) -> None:
    assert launched(tmp_path)[JAVA_OPTIONS] == f'{COLLECTOR} "-XX:SharedArchiveFile={archive}"'
    assert launched(tmp_path, **{JAVA_OPTIONS: "-Xss4m"})[JAVA_OPTIONS].split(" ", 1)[0] == "-Xss4m"


def test_an_archive_that_the_user_chooses_is_used(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert launched(tmp_path, **{JAVA_OPTIONS: "-Xshare:off"})[JAVA_OPTIONS] == "-Xshare:off"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:SharedArchiveFile=/mine.jsa")
    assert launched(tmp_path)[JAVA_OPTIONS] == COLLECTOR


def test_another_java_or_another_jar_has_another_archive(tmp_path: Path, jars: list[Path]) -> None:
    first = class_archive.path(JAVA, jars)
    assert class_archive.path(Java("/java", "17.0.2", "vendor"), jars) != first
    with zipfile.ZipFile(jars[0], "a") as content:
        content.writestr("b.class", b"")
    assert class_archive.path(JAVA, jars) != first


def test_archives_are_kept_in_the_cache_folder_of_the_user(tmp_path: Path) -> None:
    assert class_archive.folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/dbt-arctic")
    assert class_archive.folder({}) == Path.home() / ".cache" / "dbt-arctic"
    assert class_archive.folder({class_archive.CACHE_VARIABLE: "/y", "XDG_CACHE_HOME": "/x"}) == Path("/y")


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        ({}, {}, False),
        ({"packages": ("a.b:c:1",)}, {}, True),
        ({"warehouse": "s3://bucket/lake", "catalog_properties": {"type": "rest"}}, {}, True),
        ({"connectors": ("s3",)}, {}, True),
        ({"spark_conf": {"spark.hadoop.fs.file.impl": "a.B"}}, {}, True),
        ({"spark_conf": {"spark.jars": "/mine.jar"}}, {}, True),
        ({}, {"HADOOP_CONF_DIR": "/etc/hadoop"}, True),
    ],
)
def test_hadoop_keeps_its_defaults_where_it_has_more_to_do_than_local_files(
    settings: dict[str, Any], environ: dict[str, str], expected: bool
) -> None:
    assert (
        needs_defaults(SparkSettings(**{"catalog": "lake", "warehouse": "/w", **settings}), environ)
        == expected
    )
