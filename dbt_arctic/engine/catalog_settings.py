"""Converts the catalog section of a profile to the properties that Iceberg's clients use.

Both Spark and pyiceberg get these properties (``catalog/translate.py`` renames them for pyiceberg), so they
open the same catalog. Pure functions; only files that contain a secret are read.

Source of the names: https://iceberg.apache.org/docs/latest/configuration and the pages of each catalog.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dbt_arctic.engine.jdbc_driver import TIMEOUTS
from dbt_arctic.errors import ProfileError

DEFAULT_NAME = "lake"
S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
ACCESS_DELEGATION = "header.X-Iceberg-Access-Delegation"
"""The header with which a client requests credentials for the files of a table from a REST catalog."""
JDBC_CATALOG = "org.apache.iceberg.jdbc.JdbcCatalog"

_COMMON = ("name", "type", "warehouse", "s3")
_S3 = {
    "endpoint": "s3.endpoint",
    "region": "client.region",
    "path_style": "s3.path-style-access",
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
}
REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""The variables with AWS's region, in the order of Spark's clients."""
_AUTH = ("oauth2", "basic", "sigv4", "none")


@dataclass(frozen=True)
class CatalogDefinition:
    """The section ``catalog:`` of a profile.

    :param name: Spark's name of the catalog, which dbt calls the database.
    :param warehouse: the location of tables: a folder, a URI, or the server's name of a warehouse; ``None``
        for the default.
    :param properties: Iceberg's catalog properties, without the prefix. Empty for the embedded catalog.
    """

    name: str
    warehouse: str | None
    properties: Mapping[str, str] = field(repr=False)


def read_definition(given: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> CatalogDefinition:
    """Parse the section ``catalog:`` of a profile.

    :param environ: the environment with PostgreSQL's variables (``PGUSER``, ``PGPASSWORD``).
    :raises ProfileError: an unknown type or key, a missing key, or a secret file that cannot be read.
    """
    kind = given.get("type")
    read = _TYPES.get(str(kind))
    if read is None:
        meant = difflib.get_close_matches(str(kind).lower(), _TYPES, 1)
        misspelled = difflib.get_close_matches("type", map(str, given), 1) if kind is None else []
        choose = "choose one of them, or describe any other Iceberg catalog with catalog_properties"
        raise ProfileError(
            "catalog has no type." if kind is None else f"catalog has the type {kind!r}.",
            where="profiles.yml, catalog: type",
            why=f"dbt-arctic knows: {', '.join(_TYPES)}.",
            fix=f"write type instead of {misspelled[0]}"
            if misspelled
            else f"did you mean {meant[0]}?"
            if meant
            else choose,
        )
    options = _Options({key: value for key, value in given.items() if value is not None}, str(kind), environ)
    properties = read(options)
    warehouse = options.text("warehouse")
    properties |= _store(options, warehouse)
    return CatalogDefinition(
        options.text("name") or DEFAULT_NAME, warehouse, with_region(properties, environ)
    )


def with_region(properties: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The properties of a catalog, with the region of Glue from the environment if they lack it.

    Spark's client reads AWS_REGION, and pyiceberg's only AWS_DEFAULT_REGION. With different regions,
    dbt-arctic would miss the tables that Spark has written.
    """
    kind = f"{properties.get('type', '')} {properties.get('catalog-impl', '')}".lower()
    region = next(filter(None, map(environ.get, REGION_VARIABLES)), None)
    if "glue" not in kind or "client.region" in properties or region is None:
        return dict(properties)
    return {**properties, "client.region": region}


@dataclass(frozen=True)
class _Options:
    """The keys of a definition."""

    given: Mapping[str, Any]
    kind: str
    environ: Mapping[str, str]

    def only(self, *known: str) -> None:
        """Refuse keys that are not supported for this type."""
        for key in self.given:
            if key not in (*_COMMON, *known):
                raise self.wrong(key, f"type: {self.kind} has no setting of this name.", (*_COMMON, *known))

    def text(self, key: str) -> str | None:
        value = self.given.get(key)
        if isinstance(value, (dict, list)):
            raise self.wrong(key, "It takes one value.")
        if isinstance(value, bool):
            return str(value).lower()
        return None if value is None else str(value)

    def required(self, key: str, example: str) -> str:
        value = self.text(key)
        if not value:
            raise ProfileError(
                f"catalog has no {key}.",
                where=f"profiles.yml, catalog: {key}",
                why=f"type: {self.kind} needs it.",
                fix=f"write for instance {key}: {example}",
            )
        return value

    def secret(self, key: str) -> str | None:
        """The value of a key, or the content of the file in ``<key>_file``."""
        named = self.text(f"{key}_file")
        if named is None:
            return self.text(key)
        if key in self.given:
            raise self.wrong(f"{key}_file", f"{key} is given as well.")
        try:
            return Path(named).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(
                f"The file of the catalog's {key} cannot be read.",
                where=f"profiles.yml, catalog: {key}_file: {named}",
                why=str(error),
                fix="correct the path, or the file's permissions",
            ) from error

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self.given.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "It takes settings of its own, one a line.")
        return value

    def wrong(self, key: str, why: str, known: Sequence[str] = ()) -> ProfileError:
        similar = difflib.get_close_matches(key, known, 1)
        listed = f"the settings are: {', '.join(sorted(known))}" if known else "remove it"
        return ProfileError(
            f"catalog has the setting {key!r}.",
            where=f"profiles.yml, catalog: {key}",
            why=why,
            fix=f"write {similar[0]}; {listed}" if similar else listed,
        )


def _sqlite(options: _Options) -> dict[str, str]:
    options.only("uri")
    uri = options.text("uri")
    if uri is None:
        return {}
    file = uri.removeprefix("jdbc:").removeprefix("sqlite:")
    if file == uri:
        raise options.wrong("uri", "type: sqlite takes the file as sqlite:////folder/catalog.db.")
    file = file.removeprefix("///")
    # Without a type: the embedded catalog, with its file at a different path.
    return {"uri": f"jdbc:sqlite:{file}"}


def _postgres(options: _Options) -> dict[str, str]:
    options.only("uri", "user", "password", "password_file", "sslmode", "sslrootcert")
    uri = options.required("uri", "postgresql://db.example.org:5432/lake")
    driver = "arctic:" if uri.startswith("jdbc:arctic:") else ""  # see ``jdbc_driver``
    parts = urlsplit(uri.removeprefix("jdbc:").removeprefix(driver))
    if parts.scheme not in ("postgresql", "postgres") or not parts.hostname or not parts.path.strip("/"):
        raise options.wrong("uri", "It has to be the address of a database: postgresql://host:port/name.")
    if parts.query:
        raise options.wrong("uri", "Its parameters are settings of their own: user, password, sslmode.")
    user = options.text("user") or unquote(parts.username or "") or options.environ.get("PGUSER")
    password = (
        options.secret("password") or unquote(parts.password or "") or options.environ.get("PGPASSWORD")
    )
    address = parts.netloc.rpartition("@")[2]
    # Without a password, both drivers read ~/.pgpass.
    given = {
        "jdbc.user": user,
        "jdbc.password": password,
        "jdbc.sslmode": options.text("sslmode"),
        "jdbc.sslrootcert": options.text("sslrootcert"),
    }
    return {
        "catalog-impl": JDBC_CATALOG,
        "uri": f"jdbc:{driver}postgresql://{address}{parts.path}",
        "jdbc.schema-version": "V1",  # V0 does not support views
        **TIMEOUTS,
        **{key: value for key, value in given.items() if value},
    }


def _rest(options: _Options) -> dict[str, str]:
    options.only(
        *(
            "uri",
            "auth",
            "credential",
            "credential_file",
            "token",
            "token_file",
            "scope",
            "oauth2_server_uri",
        ),
        *("user", "password", "password_file", "region", "signing_name", "headers", "vended_credentials"),
    )
    properties = {"type": "rest", "uri": options.required("uri", "https://catalog.example.org")}
    auth = options.text("auth")
    if auth is not None and auth not in _AUTH:
        raise options.wrong("auth", f"auth is one of: {', '.join(_AUTH)}.")
    vended = options.text("vended_credentials")
    if vended not in (None, "true", "false"):
        raise options.wrong("vended_credentials", "It is true or false.")
    given = {
        ACCESS_DELEGATION: "vended-credentials" if vended == "true" else None,
        "rest.auth.type": auth,
        "credential": options.secret("credential"),
        "token": options.secret("token"),
        "scope": options.text("scope"),
        "oauth2-server-uri": options.text("oauth2_server_uri"),
        "rest.auth.basic.username": options.text("user"),
        "rest.auth.basic.password": options.secret("password"),
        "rest.signing-region": options.text("region"),
        "rest.signing-name": options.text("signing_name"),
        **{f"header.{name}": str(value) for name, value in options.mapping("headers").items()},
    }
    return properties | {key: value for key, value in given.items() if value}


def _hive(options: _Options) -> dict[str, str]:
    options.only("uri")
    return {"type": "hive", "uri": options.required("uri", "thrift://metastore.example.org:9083")}


def _glue(options: _Options) -> dict[str, str]:
    options.only("region", "catalog_id", "endpoint")
    given = {
        "client.region": options.text("region"),
        "glue.id": options.text("catalog_id"),
        "glue.endpoint": options.text("endpoint"),
    }
    options.required("warehouse", "s3://bucket/warehouse")
    of_store = options.mapping("s3").get("region")
    if None not in (options.text("region"), of_store) and options.text("region") != str(of_store):
        raise ProfileError(
            f"catalog has the region {options.text('region')}, and s3 has {of_store}.",
            where="profiles.yml, catalog: region",
            why="Iceberg has one region for Glue and S3.",
            fix="remove the region of s3, and set s3.cross-region-access-enabled: true in catalog_properties",
        )
    return {"type": "glue"} | {key: value for key, value in given.items() if value}


def _store(options: _Options, warehouse: str | None) -> dict[str, str]:
    """The properties of the object store. Missing credentials come from AWS's default chain."""
    given = options.mapping("s3")
    store = _Options(given, f"{options.kind}, s3", options.environ)
    known = (*_S3, "secret_access_key_file")
    for key in given:
        if key not in known:
            raise store.wrong(key, "s3 has no setting of this name.", known)
    read = {
        name: store.secret(key) if key == "secret_access_key" else store.text(key)
        for key, name in _S3.items()
    }
    on_s3 = bool(given) or options.kind == "glue" or (warehouse or "").startswith(("s3://", "s3a://"))
    # The default of a REST catalog chooses the client by the scheme of each file. Tables of the embedded
    # catalog are in a local folder, and only files of sources are in the store.
    io = {"io-impl": S3_FILE_IO} if on_s3 and options.kind not in ("rest", "sqlite") else {}
    return io | {name: value for name, value in read.items() if value}


_TYPES: Mapping[str, Callable[[_Options], dict[str, str]]] = {
    "sqlite": _sqlite,
    "postgres": _postgres,
    "rest": _rest,
    "hive": _hive,
    "glue": _glue,
}
