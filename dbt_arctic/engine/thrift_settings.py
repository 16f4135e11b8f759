"""The settings of a client of a Spark Thrift server. Nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dbt_arctic import secret
from dbt_arctic.engine.catalog_checks import check_uncached
from dbt_arctic.engine.connect_settings import DEFAULT_TIMEOUT_S
from dbt_arctic.engine.settings import check_catalog_name, check_spark_conf

DEFAULT_THRIFT_PORT = 10000
MECHANISMS = ("plain", "ldap", "nosasl", "kerberos")
"""How a client identifies itself. ``plain`` is that of a server without a login."""


@dataclass(frozen=True)
class ThriftSettings:
    """The address of a Spark Thrift server, the credentials, and the conf of its sessions.

    :param auth: one of ``MECHANISMS``.
    :param service: of Kerberos: the name of the server's principal.
    :param tls_ca: a PEM file of certificate authorities to trust instead of those of the machine.
    :param conf: Spark SQL conf of each session.
    :param timeout_s: seconds to wait for the server when a session is opened.
    """

    host: str
    catalog: str
    port: int = DEFAULT_THRIFT_PORT
    auth: str = MECHANISMS[0]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    service: str = "hive"
    use_ssl: bool = False
    tls_ca: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: int = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        secret.remember({"password": self.password or ""})
        secret.remember(self.conf)
        check_catalog_name(self.catalog)
        check_spark_conf(self.conf)
        check_uncached(self.conf)

    @property
    def endpoint(self) -> str:
        """Host and port, for messages."""
        return f"thrift://{self.host}:{self.port}"
