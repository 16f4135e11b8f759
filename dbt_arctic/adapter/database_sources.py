"""dbt sources that are tables of databases.

Turns a source's declaration and the profile into settings and a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from dbt_arctic import secret
from dbt_arctic.databases import mariadb, postgres
from dbt_arctic.databases.address import Address, has_password, parse_address
from dbt_arctic.databases.api import Database, SchemaReader
from dbt_arctic.databases.mariadb import MariaTable
from dbt_arctic.databases.postgres import PostgresTable
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import choose_strategy, writes_keyed
from dbt_arctic.refresh.materializations import is_incremental
from dbt_arctic.sources.database_plan import Writes
from dbt_arctic.sources.database_settings import DatabaseSource, parse_database


def database_source(declared: Mapping[str, Any]) -> DatabaseSource:
    """The settings of a declared source.

    :raises ConfigError: a setting is unknown or wrong, or a secret.
    """
    refuse_password(declared)
    return parse_database(declared["name"], declared["settings"], declared["where"])


def refuse_password(declared: Mapping[str, Any]) -> None:
    """Refuse a password in the settings of a source.

    :raises ConfigError: the URL contains one.
    """
    url = str(declared["settings"].get("url") or "")
    secret.remember({"url": url})
    if has_password(url):
        raise ConfigError(
            f"url of the source {declared['name']} contains a password",
            where=declared["where"],
            why="dbt writes the settings of a source to target/manifest.json",
            fix=f"remove it there, and set it in profiles.yml: jdbc: {{{_connection(declared)}: "
            "{user: name, password: \"{{ env_var('DBT_ENV_SECRET_CRM') }}\"}}",
        )


def database_of(declared: Mapping[str, Any], logins: Mapping[str, Mapping[str, str]]) -> Database:
    """The table of a declared source.

    :param logins: by name of a connection: ``url``, ``user`` and ``password`` of the profile.
    :raises ConfigError: it is not known where the database is.
    """
    source = database_source(declared)
    address = address_of(declared, logins)
    table = PostgresTable if address.kind == "postgresql" else MariaTable
    return table(address, source.table, declared["where"])


def read_schema(
    declared: Mapping[str, Any], logins: Mapping[str, Mapping[str, str]]
) -> AbstractContextManager[SchemaReader]:
    """Read the tables of the database of a source, in one transaction.

    :param declared: as for ``database_of``; the table is not used.
    :raises ConfigError: it is not known where the database is.
    """
    database_source(declared)
    address = address_of(declared, logins)
    read = postgres.read_schema if address.kind == "postgresql" else mariadb.read_schema
    return read(address, declared["where"])


def address_of(declared: Mapping[str, Any], logins: Mapping[str, Mapping[str, str]]) -> Address:
    """Where the database of a source is, and how to log in.

    :param logins: by name of a connection: ``url``, ``user`` and ``password`` of the profile.
    :raises ConfigError: it is not known where the database is.
    """
    name = _connection(declared)
    login = logins.get(name, {})
    url = str(declared["settings"].get("url") or login.get("url") or "")
    if not url.strip():
        raise ConfigError(
            f"the source {declared['name']} has no url",
            where=declared["where"],
            why=f"profiles.yml has none for jdbc: {name} either",
            fix="add url: postgresql://host:5432/database to the source's meta.arctic",
        )
    return parse_address(url, login.get("user", ""), login.get("password", ""), declared["where"])


def writes_of(model: Mapping[str, Any]) -> Writes:
    """How a model writes the rows that it reads."""
    config = model["config"]
    key = config.get("unique_key") or ()
    key = (key,) if isinstance(key, str) else tuple(key)
    if not is_incremental(config):
        return Writes(key)
    strategy = choose_strategy(model["name"], config)
    replaces = bool(key) and strategy not in ("append", "insert_overwrite")
    has_row_of_key = strategy != "history" and writes_keyed(model["name"], config)
    return Writes(key, not replaces, has_row_of_key, strategy in ("append", "history"))


def _connection(declared: Mapping[str, Any]) -> str:
    """The name of a source's login in the profile: by default, the source's."""
    return str(declared["settings"].get("connection") or str(declared["name"]).partition(".")[0])


__all__ = ["address_of", "database_of", "database_source", "read_schema", "refuse_password", "writes_of"]
