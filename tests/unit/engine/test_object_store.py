"""Spark's own client of S3 gets the settings of Iceberg's, and its errors say what is missing."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from dbt_arctic.engine.connectors import CONNECTORS, EXCLUDED
from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.jars import cached_jars
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.object_store import s3a_conf
from dbt_arctic.engine.settings import ICEBERG_RUNTIMES, SparkSettings, session_conf
from dbt_arctic.errors import CatalogUnavailable, DependencyError, StatementError
from tests.matrix.components import spark_jars

KEYS = {"s3.access-key-id": "k", "s3.secret-access-key": "x"}
S3A = "spark.hadoop.fs.s3a."


def mapped(properties: dict[str, str], environ: dict[str, str] | None = None) -> dict[str, str]:
    conf = s3a_conf(properties, environ or {})
    assert conf.pop("spark.hadoop.fs.s3.impl") == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert all(name.startswith(S3A) for name in conf)
    return {name.removeprefix(S3A): value for name, value in conf.items()}


def test_each_setting_of_the_store_has_its_name_in_hadoop() -> None:
    given = {"s3.endpoint": "http://store:9000", "s3.path-style-access": "true", "client.region": "eu-1"}
    assert mapped({**given, **KEYS, "uri": "other"}) == {
        "endpoint": "http://store:9000",
        "path.style.access": "true",
        "endpoint.region": "eu-1",
        "access.key": "k",
        "secret.key": "x",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    with_session = mapped({**KEYS, "s3.session-token": "s"})
    assert with_session["session.token"] == "s"
    assert with_session["aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")
    # Without keys: the chain that Iceberg and the listing use, with ~/.aws.
    default = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    assert mapped({}) == {"aws.credentials.provider": default}


def test_the_region_of_the_profile_comes_before_that_of_the_environment() -> None:
    environ = {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}
    assert mapped({"s3.region": "c", "client.region": "d"}, environ)["endpoint.region"] == "c"
    assert mapped({"client.region": "d"}, environ)["endpoint.region"] == "d"
    assert mapped({}, environ)["endpoint.region"] == "a"
    assert mapped({}, {"AWS_DEFAULT_REGION": "b"})["endpoint.region"] == "b"


def test_a_session_has_these_settings_only_for_files_in_s3_and_the_user_has_the_last_word() -> None:
    plain = SparkSettings("lake", "/w", catalog_properties=KEYS)
    assert "s3a" not in str(session_conf(plain))
    own = {f"{S3A}access.key": "mine"}
    conf = session_conf(SparkSettings("lake", "/w", KEYS, own, connectors=("s3",)))
    assert (conf[f"{S3A}access.key"], conf[f"{S3A}secret.key"]) == ("mine", "x")
    assert set(CONNECTORS["s3"]) <= set(conf["spark.jars.packages"].split(","))
    # Hadoop's client depends on it: 600 MB.
    assert "software.amazon.awssdk:bundle" in conf["spark.jars.excludes"].split(",")
    assert not {jar.rpartition(":")[0] for jar in CONNECTORS["s3"]} & set(EXCLUDED["s3"])
    chosen = session_conf(SparkSettings("lake", "/w", packages=("a:b:1",), connectors=("s3",)))
    assert (chosen["spark.jars.packages"], "spark.jars.excludes" in chosen) == ("a:b:1", False)


def test_the_jars_fit_together() -> None:
    versions = {jar.split(":")[1]: jar.split(":")[2] for jar in CONNECTORS["s3"]}
    assert (spark_jars() / f"hadoop-client-api-{versions['hadoop-aws']}.jar").exists()
    assert {versions["iceberg-aws-bundle"]} == {jar.split(":")[2] for jar in ICEBERG_RUNTIMES.values()}
    assert versions["s3-transfer-manager"] == versions["apache-client"]
    bundle = next(jar for jar in CONNECTORS["s3"] if "bundle" in jar)
    cached = cached_jars({"spark.jars.packages": bundle})
    if not cached:
        pytest.skip("Iceberg's AWS bundle has not been downloaded on this machine")
    assert versions["apache-client"] == sdk_version(cached[0])


def sdk_version(bundle: Path) -> str:
    """The version that the SDK in a jar reports: a constant of its class."""
    with zipfile.ZipFile(bundle) as jar:
        content = jar.read("software/amazon/awssdk/core/util/VersionInfo.class")
    found = re.search(rb"\x01\x00.(\d+\.\d+\.\d+)", content, re.DOTALL)
    assert found is not None
    return found[1].decode()


NO_CLIENT = [
    ("s3", "org.apache.hadoop.fs.UnsupportedFileSystemException", 'No FileSystem for scheme "s3"'),
    ("s3", "java.lang.RuntimeException", "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"),
    ("s3", "java.lang.NoClassDefFoundError", "software/amazon/awssdk/transfer/s3/model/ObjectTransfer"),
    ("gs", "org.apache.hadoop.fs.UnsupportedFileSystemException", 'No FileSystem for scheme "gs"'),
    (
        "abfss",
        "java.lang.RuntimeException",
        "Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found",
    ),
]


@pytest.mark.parametrize(("scheme", "java_class", "message"), NO_CLIENT)
def test_a_spark_without_the_client_of_a_store_is_an_error_with_its_jars(
    scheme: str, java_class: str, message: str
) -> None:
    error = classify([Cause(java_class, message)], "files of x").error
    assert isinstance(error, DependencyError)
    assert f"cannot read files of {scheme}://" in error.what
    expected = {"s3": CONNECTORS["s3"], "gs": ["gcs-connector"], "abfss": ["hadoop-azure:3.4.2"]}[scheme]
    assert all(jar in error.fix for jar in expected)


def test_credentials_that_s3_refuses_are_an_error_with_their_settings() -> None:
    denied = "s3://shop/a.json: getFileStatus on s3://shop/a.json: S3Exception: (Status Code: 403, Request)"
    for cause in (
        Cause("java.nio.file.AccessDeniedException", denied),
        Cause("org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException", "No AWS Credentials provided"),
    ):
        error = classify([cause], "files of s3://shop").error
        assert isinstance(error, CatalogUnavailable)
        assert all(name in error.fix for name in ("access_key_id", "AWS_ACCESS_KEY_ID", "fs.s3a.access.key"))
    other = Cause("java.nio.file.AccessDeniedException", "/landing/a.json")
    assert not isinstance(classify([other], "x").error, CatalogUnavailable)
    unrelated = Cause("java.lang.ClassNotFoundException", "org.example.Software")
    assert isinstance(classify([unrelated], "x").error, StatementError)
