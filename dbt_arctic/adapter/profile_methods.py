"""The connection methods of a profile, and which of its settings belong to which of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from dbt_arctic.engine.connect_settings import parsed_host
from dbt_arctic.engine.thrift_settings import MECHANISMS
from dbt_arctic.errors import ProfileError

METHODS = ("session", "connect", "thrift")
SERVERS = ("connect", "thrift")
"""The methods with a server that others run."""

OF_CLUSTERS = ("executor_memory", "executor_cores", "max_executors")
_OF_SERVERS = ("host", "port", "use_ssl", "tls_ca", "connect_timeout")
_OF_CONNECT = ("token", "user_id")
_OF_THRIFT = ("user", "password", "auth", "kerberos_service_name")
_OF_SESSION = (
    *("master", "driver_memory", "java_home", "packages", "repositories", "use_server", "small_data"),
    *OF_CLUSTERS,
)
_METHODS_OF = {
    **dict.fromkeys(_OF_SERVERS, SERVERS),
    **dict.fromkeys(_OF_CONNECT, ("connect",)),
    **dict.fromkeys(_OF_THRIFT, ("thrift",)),
    **dict.fromkeys(_OF_SESSION, ("session",)),
}
"""The methods for which a setting has an effect."""
_ADDRESSES = {
    "connect": ("Spark Connect server", "sc://spark.example.com:15002"),
    "thrift": ("Spark Thrift server", "spark.example.com"),
}
_OTHERS_OF_SPARK = ("http", "odbc")
"""Other values of ``method`` that connect dbt-spark to a cluster."""
_MACHINE = re.compile(r"[\w.:-]+")


def check_method(method: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Check the method of a profile, and the settings that depend on it.

    :raises ProfileError: the method is unknown, or a setting is missing, invalid or of another method.
    """
    if method not in METHODS:
        meant = difflib.get_close_matches(str(method).lower(), METHODS, 1) or METHODS
        raise ProfileError(
            f"method is {method!r}",
            where="profiles.yml, method",
            why=f"this dbt-arctic knows: {', '.join(METHODS)}",
            fix="use method: connect or thrift with the host of a server"
            if method in _OTHERS_OF_SPARK
            else f"write method: {meant[0]}",
        )
    unsuitable = [name for name, methods in _METHODS_OF.items() if method not in methods]
    found = [name for name in unsuitable if settings[name] != defaults[name]]
    if found:
        other = _METHODS_OF[found[0]][0]
        raise ProfileError(
            f"{found[0]} has no effect with method: {method}",
            where=f"profiles.yml, {found[0]}",
            why=f"it belongs to method: {other}",
            fix=f"remove it, or write method: {other}",
        )
    host = settings["host"] or ""
    if method in SERVERS and not host.strip():
        kind, example = _ADDRESSES[method]
        raise ProfileError(
            "host is missing",
            where="profiles.yml, host",
            why=f"method: {method} needs the address of a {kind}",
            fix=f"for example host: {example}",
        )
    if method == "connect":
        parsed_host(host)
    if method == "thrift":
        _check_thrift(host, settings["auth"])


def _check_thrift(host: str, auth: str) -> None:
    if auth.lower() not in MECHANISMS:
        raise ProfileError(
            f"auth is {auth!r}",
            where="profiles.yml, auth",
            why=f"a Spark Thrift server is reached with: {', '.join(MECHANISMS)}",
            fix=f"write auth: {MECHANISMS[0]}, for a server without a login",
        )
    if not _MACHINE.fullmatch(host):
        raise ProfileError(
            "host is not the name of a machine",
            where="profiles.yml, host",
            why="method: thrift takes a name; the port is a setting of its own",
            fix="for example host: spark.example.com and port: 10000",
        )
