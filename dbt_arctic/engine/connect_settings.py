"""Converts the values of a profile to settings of a Spark Connect client. Pure functions; nothing is opened.

This module must not import pyspark or grpc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from dbt_arctic import secret
from dbt_arctic.engine.catalog_checks import catalog_prefix, check_defined_once, check_uncached
from dbt_arctic.engine.settings import (
    ICEBERG_CATALOG,
    SESSION_DEFAULTS,
    OtherCatalog,
    check_catalog_name,
    check_spark_conf,
)
from dbt_arctic.errors import ProfileError

DEFAULT_PORT = 15002
DEFAULT_TIMEOUT_S = 60


@dataclass(frozen=True)
class ConnectSettings:
    """The address of a Spark Connect server, the credentials, and the conf of its sessions.

    :param parameters: the parameters of the connection string other than ``use_ssl``, ``token`` and
        ``user_id``. Spark's client sends them as gRPC metadata.
    :param tls_ca: a PEM file of certificate authorities to trust instead of those of the machine.
    :param conf: Spark SQL conf of each session.
    :param server_id: the required value of ``SERVER_ID_KEY``; empty for any server.
    :param timeout_s: seconds during which requests to an unresponsive server are repeated.
    """

    host: str
    catalog: str
    port: int = DEFAULT_PORT
    use_ssl: bool = False
    token: str | None = field(default=None, repr=False)
    user_id: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls_ca: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    server_id: str = ""
    timeout_s: int = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        secret.remember({"token": self.token or ""})
        secret.remember(self.parameters)
        secret.remember(self.conf)
        check_catalog_name(self.catalog)
        check_spark_conf(self.conf)

    @property
    def endpoint(self) -> str:
        """Host and port for messages, without secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"sc://{host}:{self.port}"

    @property
    def url(self) -> str:
        """The connection string of Spark's client, including secrets. It must not be printed."""
        given = {
            **self.parameters,
            "use_ssl": "true" if self.use_ssl or self.tls_ca else None,
            "token": self.token,
            "user_id": self.user_id,
        }
        parameters = "".join(f";{key}={quote(value, safe='')}" for key, value in given.items() if value)
        return f"{self.endpoint}/{parameters}"


SERVER_ID_KEY = "spark.dbt_arctic.server"


def parsed_host(host: str) -> tuple[str, int | None, dict[str, str]]:
    """Host, port and parameters of the ``host`` in a profile: a connection string or a plain name.

    >>> parsed_host("sc://spark.example.com:443/;use_ssl=true;token=a%3D")
    ('spark.example.com', 443, {'use_ssl': 'true', 'token': 'a='})
    """
    text = host if "://" in host else f"sc://{host}"
    address, _, tail = text.partition(";")
    try:
        split = urlsplit(address)
        name, port = split.hostname, split.port
    except ValueError as error:
        raise _wrong_host(host, str(error)) from error
    if split.scheme != "sc" or not name or split.path not in ("", "/") or split.username:
        raise _wrong_host(host, "it has to be sc://name:port, parameters after a slash and a semicolon")
    parameters = {}
    for part in filter(None, tail.split(";")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise _wrong_host(host, f"the parameter {key!r} has no value")
        parameters[key] = unquote(value)
    return name, port, parameters


def connect_conf(
    catalog: str,
    warehouse: str | None,
    catalog_properties: Mapping[str, str],
    spark_conf: Mapping[str, str],
    others: Sequence[OtherCatalog] = (),
) -> dict[str, str]:
    """The conf of a session on an external server: defaults, then the catalog, then the user's conf.

    Without properties in the profile, the server defines the catalog, and only its cache is disabled, because
    a cached table may be out of date.
    """
    conf = {**SESSION_DEFAULTS, "spark.sql.defaultCatalog": catalog}
    catalogs = (OtherCatalog(catalog, warehouse or "", catalog_properties), *others)
    check_defined_once(spark_conf, (one.name for one in catalogs if one.properties))
    for one in catalogs:
        prefix = catalog_prefix(one.name)
        conf[f"{prefix}.cache-enabled"] = "false"
        if one.properties:
            conf[prefix] = ICEBERG_CATALOG
            if one.warehouse:
                conf[f"{prefix}.warehouse"] = one.warehouse
            conf |= {f"{prefix}.{key}": value for key, value in one.properties.items()}
    check_uncached(conf | dict(spark_conf))
    return conf | dict(spark_conf)


def _wrong_host(host: str, why: str) -> ProfileError:
    # The text after the first semicolon may contain a token.
    return ProfileError(
        "host is not the address of a Spark Connect server",
        where=f"profiles.yml, host: {host.partition(';')[0]}",
        why=why,
        fix="for example host: sc://spark.example.com:15002",
    )
