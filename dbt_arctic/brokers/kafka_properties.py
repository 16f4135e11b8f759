"""Translates properties of Kafka's Java client, which Spark uses, to settings of the client in Python.

A property that decides how to log in must have the same meaning for both clients, or is refused. The others
tune how messages are fetched, which only Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbt_arctic.errors import ConfigError

ISOLATION = "isolation.level"

_SAME = {
    "client.dns.lookup": "client_dns_lookup",
    "client.id": "client_id",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.mechanism": "sasl_mechanism",
    "security.protocol": "security_protocol",
    "ssl.key.password": "ssl_password",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.truststore.location": "ssl_cafile",
}
_NUMBERS = {"request.timeout.ms": "request_timeout_ms"}
_STORES = ("ssl.keystore", "ssl.truststore")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_OF_LOGIN = ("sasl.", "ssl.")
_LOGIN = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')")


def client_settings(properties: Mapping[str, str], where: str) -> dict[str, Any]:
    """The settings of the client in Python.

    :param properties: of the Java client.
    :param where: what declares them, for errors.
    :raises ConfigError: a property has no equivalent.
    """
    found: dict[str, Any] = {}
    for name, value in properties.items():
        if name in _SAME:
            found[_SAME[name]] = value
        elif name in _NUMBERS:
            found[_NUMBERS[name]] = _number(name, value, where)
        elif name == "sasl.jaas.config":
            found |= _login(value, where)
        elif name == "ssl.endpoint.identification.algorithm":
            found["ssl_check_hostname"] = bool(value)
        elif name.startswith(_OF_LOGIN) and name not in {f"{store}.type" for store in _STORES}:
            raise _unfit(name, where, f"use one of {', '.join(sorted({*_SAME, 'sasl.jaas.config'}))}")
    for store in _STORES:
        if f"{store}.location" in properties and properties.get(f"{store}.type", "").upper() != "PEM":
            raise _unfit(f"{store}.type", where, f"give a file in the format PEM, and set {store}.type: PEM")
    mechanism = properties.get("sasl.mechanism")
    if mechanism is not None and mechanism not in _MECHANISMS:
        raise _unfit(f"sasl.mechanism: {mechanism}", where, f"use one of {', '.join(_MECHANISMS)}")
    return found


def _number(name: str, value: str, where: str) -> int:
    if not value.isdecimal():
        raise ConfigError(f"{name} is {value!r}", where=where, fix=f"write {name}: a number of milliseconds")
    return int(value)


def _login(text: str, where: str) -> dict[str, str]:
    """The name and the password of a login module."""
    given = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2] if found[2] is not None else found[3])
        for found in _LOGIN.finditer(text)
    }
    if "username" not in given and "password" not in given:
        return {}  # Kerberos takes its ticket from the environment
    if "username" not in given or "password" not in given:
        raise ConfigError(
            "sasl.jaas.config has no username or no password",
            where=where,
            fix='write: <class of the login module> required username="..." password="...";',
        )
    return {"sasl_plain_username": given["username"], "sasl_plain_password": given["password"]}


def _unfit(what: str, where: str, fix: str) -> ConfigError:
    return ConfigError(
        f"the property {what} of Kafka's client is not supported",
        where=where,
        why="offsets are looked up with a client in Python, which must log in as Spark does",
        fix=fix,
    )


__all__ = ["ISOLATION", "client_settings"]
