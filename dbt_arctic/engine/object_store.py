"""Files in object stores: Hadoop's settings for S3, and the errors of a Spark that cannot read from a store.

Spark reads files with Hadoop's client S3A, and tables with Iceberg's. Both get the same settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dbt_arctic.engine.catalog_settings import REGION_VARIABLES
from dbt_arctic.engine.connectors import CONNECTORS, S3
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ArcticError, CatalogUnavailable, DependencyError

_S3A = "org.apache.hadoop.fs.s3a"
_SETTINGS = {
    "s3.endpoint": "endpoint",
    "s3.path-style-access": "path.style.access",
    "s3.access-key-id": "access.key",
    "s3.secret-access-key": "secret.key",
    "s3.session-token": "session.token",
}
_REGIONS = ("s3.region", "client.region")

_NO_SCHEME = re.compile(r'No FileSystem for scheme "?(\w+)')
_NO_CLASS = re.compile(r"Class org\.apache\.hadoop\.fs\.(s3a|azurebfs)\.\w+ not found")
_NO_SDK = re.compile(r"\bsoftware/amazon/awssdk/")
_REFUSED = re.compile(
    r"NoAuthWithAWSException|Unable to load credentials from any of the providers|"
    r"\bs3[an]?://[^\n]*(Status Code: 40[13]|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch)"
)
_SCHEMES = {"s3a": S3, "s3n": S3, "azurebfs": "abfss"}
_OTHER_JARS = {
    "abfs": "org.apache.hadoop:hadoop-azure:3.4.2",
    "abfss": "org.apache.hadoop:hadoop-azure:3.4.2",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}


def s3a_conf(properties: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Spark's conf with which Hadoop reads files in S3 like Iceberg reads tables.

    :param properties: Iceberg's properties of the catalog (``s3.endpoint``, ..).
    :param environ: the environment, which may have the region.
    """
    given = {name: properties[key] for key, name in _SETTINGS.items() if properties.get(key)}
    regions = (
        *(properties.get(key) for key in _REGIONS),
        *(environ.get(name) for name in REGION_VARIABLES),
    )
    region = next((found for found in regions if found), None)
    if region is not None:
        given["endpoint.region"] = region
    if "session.token" in given:
        provider = f"{_S3A}.TemporaryAWSCredentialsProvider"
    elif "access.key" in given:
        provider = f"{_S3A}.SimpleAWSCredentialsProvider"
    else:
        # Hadoop's own default lacks ~/.aws, which Iceberg's client and the listing of files read.
        provider = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    given["aws.credentials.provider"] = provider
    return {
        # Hadoop calls it s3a only. Paths keep the scheme that the user writes.
        "spark.hadoop.fs.s3.impl": f"{_S3A}.S3AFileSystem",
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in given.items()},
    }


def store_error(causes: Sequence[Cause], where: str) -> ArcticError | None:
    """The error for a Spark that lacks the client of an object store, or credentials for it."""
    for cause in causes:
        scheme = _missing(cause)
        if scheme is not None:
            return _no_client(scheme, where, cause.message)
        if _REFUSED.search(f"{cause.name} {cause.message}"):
            return CatalogUnavailable(
                "S3 refused to let Spark read a file.",
                where=where,
                why=cause.message.partition("\n")[0],
                fix="check `s3` in the catalog of the profile (access_key_id, secret_access_key), or AWS's "
                "default credentials (AWS_ACCESS_KEY_ID, ..). A server of method: connect or thrift needs "
                "credentials of its own, for example spark.hadoop.fs.s3a.access.key",
            )
    return None


def _missing(cause: Cause) -> str | None:
    """The scheme whose client Spark lacks."""
    found = _NO_SCHEME.search(cause.message) or _NO_CLASS.search(cause.message)
    if found is not None:
        return _SCHEMES.get(found[1], found[1])
    no_class = "NoClassDefFoundError"
    is_missing = no_class in cause.java_class or no_class in cause.message
    return S3 if is_missing and _NO_SDK.search(cause.message) else None


def _no_client(scheme: str, where: str, why: str) -> DependencyError:
    if scheme == S3:
        jars, more = ", ".join(CONNECTORS[S3]), "; and set spark.hadoop.fs.s3a.* there"
    else:
        jars, more = _OTHER_JARS.get(scheme, "the jar of Hadoop's client for it"), ""
    return DependencyError(
        f"this Spark cannot read files of {scheme}://",
        where=where,
        why=f"it was started without Hadoop's client for this store: {why.partition(chr(10))[0]}",
        fix=f"add to `packages` in the profile, or to the class path of the server{more}: {jars}",
    )


__all__ = ["s3a_conf", "store_error"]
