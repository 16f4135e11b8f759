"""Each ``sslMode`` of a URL means the same to the Python client as to the JDBC driver."""

from __future__ import annotations

import ssl

import pytest

from dbt_arctic.databases.address import parse_address
from dbt_arctic.databases.mariadb import tls_settings


@pytest.mark.parametrize(
    ("mode", "checks_certificate", "checks_host"),
    [("trust", False, False), ("verify-ca", True, False), ("verify-full", True, True)],
)
def test_a_connection_is_encrypted_and_checked(
    mode: str, checks_certificate: bool, checks_host: bool
) -> None:
    context = _settings(f"mariadb://db:3306/shop?sslMode={mode}")["ssl"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode == ssl.CERT_REQUIRED) == checks_certificate
    assert context.check_hostname == checks_host


def test_without_a_mode_nothing_is_encrypted() -> None:
    assert _settings("mariadb://db:3306/shop") == {"ssl_disabled": True}


def _settings(url: str) -> dict[str, object]:
    return tls_settings(parse_address(url, "", "", "sources.yml"), "sources.yml")
