"""Translates Spark's properties of an Iceberg catalog to those of pyiceberg, if it supports the catalog.

Most names are the same (``uri``, ``warehouse``, ``credential``, ``token``, ``s3.*``, ``glue.*``), so this
module lists only the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlencode

_CLASSES = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
}
_RENAMED = {
    "adls.auth.shared-key.account.name": "adls.account-name",
    "adls.auth.shared-key.account.key": "adls.account-key",
    "clients": "hive.client-pool-size",
}
_OF_SPARK_ONLY = frozenset({"type", "catalog-impl", "io-impl", "cache-enabled", "default-namespace"})
# JDBC's name of a database to SQLAlchemy's name of it and the Python module that it needs.
_DRIVERS = {
    "postgresql": (("postgresql+psycopg", "psycopg"), ("postgresql+psycopg2", "psycopg2")),
    "mysql": (("mysql+pymysql", "pymysql"),),
    "mariadb": (("mysql+pymysql", "pymysql"),),
}
# Parameters with the same name in the JDBC driver and libpq.
_OF_POSTGRES = ("sslmode", "sslrootcert")
_KEEPALIVE = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
"""libpq's parameters of a connection without traffic, in seconds. The system's own begin after two hours."""
# Properties of the JDBC catalog that a client of another language reads, or that do not change what it reads.
_OF_JDBC = frozenset(
    {
        *(
            "jdbc.user",
            "jdbc.password",
            "jdbc.schema-version",
            "jdbc.strict-mode",
            "jdbc.init-catalog-tables",
        ),
        *("jdbc.connectTimeout", "jdbc.socketTimeout", "jdbc.tcpKeepAlive", "jdbc.loginTimeout"),
        *("jdbc.ApplicationName", "jdbc.cancelSignalTimeout"),
    }
)


def names_a_kind(properties: Mapping[str, str]) -> bool:
    """Whether the properties define the kind of a catalog."""
    return bool({"type", "catalog-impl"} & set(properties))


def catalog_kind(properties: Mapping[str, str]) -> str:
    """The kind of a catalog.

    One of ``rest``, ``hive``, ``glue`` and ``jdbc``, or the value of the property (``hadoop``, a class).
    """
    named = properties.get("catalog-impl") or properties.get("type") or "hive"  # Iceberg's default
    return _CLASSES.get(named, named)


def pyiceberg_properties(properties: Mapping[str, str]) -> dict[str, Any] | None:
    """pyiceberg's properties of the same catalog.

    ``None`` if it does not support it or a module is missing.
    """
    make = _KINDS.get(catalog_kind(properties))
    return make(properties) if make else None


def missing_extra(properties: Mapping[str, str]) -> str:
    """The extra of dbt-arctic with which this catalog can be read without Spark; empty if none is missing."""
    kind = catalog_kind(properties)
    if kind == "jdbc":
        uri = properties.get("uri", "").removeprefix("jdbc:").removeprefix("arctic:")
        return "postgres" if uri.startswith("postgresql:") and not _any_of("psycopg", "psycopg2") else ""
    module = {"hive": "thrift", "glue": "boto3"}.get(kind)
    return kind if module is not None and not _any_of(module) else ""


def _any_of(*modules: str) -> bool:
    return any(find_spec(module) is not None for module in modules)


def sqlite_file(uri: str) -> str | None:
    """The file of ``jdbc:sqlite:<file>``; ``None`` for another database or one in memory.

    >>> sqlite_file("jdbc:sqlite:/data/catalog.db?busy_timeout=10000")
    '/data/catalog.db'
    """
    if not uri.startswith("jdbc:sqlite:"):
        return None
    file = uri.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]
    return None if file in ("", ":memory:") else file


def _common(properties: Mapping[str, str]) -> dict[str, Any]:
    kept = {k: v for k, v in properties.items() if k not in _OF_SPARK_ONLY}
    found = {_RENAMED.get(key, key): value for key, value in kept.items()}
    if "s3.endpoint" in found and str(found.get("s3.path-style-access", "")).lower() == "false":
        # With an endpoint, pyarrow would otherwise put the bucket into the path.
        found.setdefault("s3.force-virtual-addressing", "true")
    return found


def _rest(properties: Mapping[str, str]) -> dict[str, Any] | None:
    if "uri" not in properties:
        return None
    # Otherwise pyiceberg would miss snapshots that a server sends later.
    found = {"type": "rest", **_common(properties), "snapshot-loading-mode": "all"}
    method = properties.get("rest.auth.type", "oauth2").lower()
    if method in ("oauth2", "none"):
        return found
    if method == "sigv4":
        return {**found, "rest.sigv4-enabled": "true"}
    if method == "basic":
        login = {
            "username": properties.get("rest.auth.basic.username", ""),
            "password": properties.get("rest.auth.basic.password", ""),
        }
        return {**found, "auth": {"type": "basic", "basic": login}}
    return None  # a Java class


def _hive(properties: Mapping[str, str]) -> dict[str, Any] | None:
    # Without a uri, Spark takes it from hive-site.xml, which pyiceberg does not read.
    if "uri" not in properties or find_spec("thrift") is None:
        return None
    return {"type": "hive", **_common(properties)}


def _glue(properties: Mapping[str, str]) -> dict[str, Any] | None:
    return {"type": "glue", **_common(properties)} if find_spec("boto3") else None


def _jdbc(properties: Mapping[str, str]) -> dict[str, Any] | None:
    """Convert ``jdbc:postgresql://host/db``, ``jdbc.user`` and ``jdbc.password`` to SQLAlchemy's URL.

    Parameters are specific to the driver, and one may change the schema (``currentSchema``): the tables of
    the catalog would be looked for in another one, and all be missing. So a catalog with other parameters, in
    its URL or as properties, is read by SQL.
    """
    database, _, rest = properties.get("uri", "").removeprefix("jdbc:").removeprefix("arctic:").partition(":")
    dialects = [dialect for dialect, module in _DRIVERS.get(database, ()) if find_spec(module)]
    known = _OF_JDBC | {f"jdbc.{name}" for name in _OF_POSTGRES}
    others = {name for name in properties if name.startswith("jdbc.")} - known
    if not dialects or "?" in rest or others or find_spec("sqlalchemy") is None:
        return None
    user, password = properties.get("jdbc.user"), properties.get("jdbc.password", "")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    named = {name: properties.get(f"jdbc.{name}") for name in _OF_POSTGRES}
    if database == "postgresql":
        named |= _limits(properties)
    parameters = urlencode({name: value for name, value in named.items() if value})
    uri = f"{dialects[0]}://{login}{rest.removeprefix('//')}" + (f"?{parameters}" if parameters else "")
    return {**_common(properties), "type": "sql", "uri": uri}


def _limits(properties: Mapping[str, str]) -> dict[str, str | None]:
    """libpq's parameters for the limits on time of the JDBC driver. Zero means no limit in both."""
    seconds = properties.get("jdbc.socketTimeout", "")
    keeps_alive = properties.get("jdbc.tcpKeepAlive", "").lower() == "true"
    return {
        "connect_timeout": properties.get("jdbc.connectTimeout"),
        # libpq has no limit for an answer, but one for data that the other side does not confirm.
        "tcp_user_timeout": f"{seconds}000" if seconds.isdigit() and int(seconds) else None,
        **(_KEEPALIVE if keeps_alive else {}),
    }


_KINDS: dict[str, Callable[[Mapping[str, str]], dict[str, Any] | None]] = {
    "rest": _rest,
    "hive": _hive,
    "glue": _glue,
    "jdbc": _jdbc,
}
