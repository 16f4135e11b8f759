"""Explains errors of a catalog's server (REST, Hive, a database) and their remedies. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import CatalogUnavailable

_JDBC = "org.apache.iceberg.jdbc."
_OF_JDBC = "Cannot initialize JDBC catalog"


class _Trouble(NamedTuple):
    """A kind of failure.

    :param classes: the exceptions, by class and message (``Class: message``), that have this cause.
    """

    classes: re.Pattern[str]
    what: str
    fix: str


_TROUBLES = (
    _Trouble(
        re.compile(
            r"\bNotAuthorizedException: |\bBadRequestException: .*\b(invalid_(client|request|grant|scope)"
            r"|unauthorized_client|unsupported_grant_type)\b|\bMetaException: .*GSS initiate failed"
            r"|^JDBC catalog: .*(FATAL: (password|no pg_hba|role )|no password was provided)",
            re.DOTALL,
        ),
        "The catalog does not accept the credentials.",
        "check the catalog in the profile: `credential`, `token`, `oauth2_server_uri` and `scope` of "
        "type: rest, `user` and `password` of type: postgres, the Kerberos ticket of type: hive. If a token "
        "has expired, get a new one, then run again",
    ),
    _Trouble(
        re.compile(r"\bForbiddenException: "),
        "The catalog does not permit this.",
        "grant the user or role of the profile's catalog the permission for this schema and table, or use "
        "other credentials",
    ),
    _Trouble(
        re.compile(
            r"\bServiceFailureException: |\bServiceUnavailableException: |Unable to process \(code: 5\d\d"
        ),
        "The catalog's server failed.",
        "run again; if it fails again, `why` and the log of the server have the reason",
    ),
    _Trouble(
        re.compile(
            r"\bRESTException: |\bTTransportException\b|Failed to (re)?connect|Could not connect to meta "
            r"?store"
            r"|Cannot initialize JDBC catalog|Database Connection timeout"
            r"|^JDBC catalog: .*(I/O error|Connection to|connection (attempt|has been closed)|FATAL: "
            r"(terminating|sorry|the database system|remaining))",
            re.DOTALL,
        ),
        "The catalog cannot be reached.",
        "check the catalog in the profile (uri, credentials), that its server runs, and the network in "
        "between; then run again",
    ),
    _Trouble(
        re.compile(r"\b(Runtime)?MetaException\b"),
        "The Hive metastore failed.",
        "run again; if it fails again, `why` and the log of the metastore have the reason. The metastore "
        "needs access of its own to `warehouse`",
    ),
)


def catalog_error(causes: Sequence[Cause], where: str, why: str) -> CatalogUnavailable | None:
    """The error if a catalog's server refused or failed; otherwise ``None``.

    The first trouble that any cause has: a metastore that cannot be reached is also one that failed.
    """
    texts = [f"{cause.name}: {cause.message}" for cause in causes]
    # A source in a database has the same messages.
    if any(cause.java_class.startswith(_JDBC) or _OF_JDBC in cause.message for cause in causes):
        texts += [f"JDBC catalog: {cause.message}" for cause in causes]
    for trouble in _TROUBLES:
        if any(trouble.classes.search(text) for text in texts):
            return CatalogUnavailable(trouble.what, where=where, why=why, fix=trouble.fix)
    return None


__all__ = ["catalog_error"]
