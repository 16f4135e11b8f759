"""The address of a database: one text, from which its Python client and Spark's JDBC driver both connect.

An option that decides how to connect must have the same meaning for both, or is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dbt_arctic.errors import ConfigError
from dbt_arctic.secret import is_secret

Kind = Literal["postgresql", "mariadb"]

_SCHEMES: Mapping[str, Kind] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mariadb",
}
_PORTS: Mapping[Kind, int] = {"postgresql": 5432, "mariadb": 3306}
_OPTIONS: Mapping[Kind, tuple[str, ...]] = {
    "postgresql": ("sslmode", "sslrootcert"),
    "mariadb": ("sslMode", "serverSslCert"),
}


@dataclass(frozen=True)
class Address:
    """Where a database is, and how to log in.

    :param options: of the URL, with the names of the JDBC driver.
    """

    kind: Kind
    host: str
    port: int
    database: str
    options: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The server, for errors."""
        return f"{self.host}:{self.port}"

    def jdbc_url(self, scheme: str, **extra: str) -> str:
        """The URL of a JDBC driver, without the login."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        given = {**self.options, **extra}
        options = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
        return f"jdbc:{scheme}://{host}:{self.port}/{quote(self.database, safe='')}?{options}"


def kind_of_url(url: str) -> Kind | None:
    """The kind of database of a URL; ``None`` if it is none of those that can be read.

    >>> kind_of_url("jdbc:postgresql://host/crm")
    'postgresql'
    """
    return _SCHEMES.get(url.strip().removeprefix("jdbc:").partition(":")[0].lower())


def has_password(url: str) -> bool:
    """Whether a URL contains a password.

    >>> has_password("postgresql://me:hunter2@host/crm"), has_password("postgresql://me@host/crm")
    (True, False)
    """
    parts = urlsplit(url.strip().removeprefix("jdbc:"))
    return ("@" in parts.netloc and ":" in parts.netloc.rpartition("@")[0]) or any(
        is_secret(name) for name, _ in parse_qsl(parts.query)
    )


def parse_address(url: str, user: str, password: str, where: str) -> Address:
    """Read the URL of a database.

    :param user: takes precedence over the user of the URL.
    :param where: what declares it, for errors.
    :raises ConfigError: it is no such URL, or it has an option that is not known.
    """
    kind = kind_of_url(url)
    try:
        parts = urlsplit(url.strip().removeprefix("jdbc:"))
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if kind is None or host is None:
        raise ConfigError(
            "url is not the address of a database that can be read",
            where=where,
            why="it has no host" if kind is not None else "PostgreSQL and MariaDB (MySQL) can be read",
            fix="write postgresql://host:5432/database or mariadb://host:3306/database",
        )
    database = unquote(parts.path.lstrip("/"))
    if not database or "/" in database:
        raise ConfigError(
            "url names no database",
            where=where,
            fix=f"write {kind}://{host}:{port or _PORTS[kind]}/ and the name of the database",
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    user = user or unquote(options.pop("user", "") or parts.username or "")
    password = password or options.pop("password", "") or unquote(parts.password or "")
    for name in options:
        if name not in _OPTIONS[kind]:
            raise ConfigError(
                f"url has the option {name}",
                where=where,
                why="dbt-arctic connects with two clients, and passes options that have one meaning for both",
                fix=f"use one of {', '.join(_OPTIONS[kind])}, or remove it",
            )
    return Address(kind, host, port or _PORTS[kind], database, options, user, password)


__all__ = ["Address", "Kind", "has_password", "kind_of_url", "parse_address"]
