"""The profile: its settings, validated when dbt reads it, and converted to Spark's settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic import secret
from dbt_arctic.adapter import other_schema
from dbt_arctic.adapter.other_catalogs import read_catalogs, require_own_places, resolved
from dbt_arctic.adapter.profile_databases import kinds_of, read_databases
from dbt_arctic.adapter.profile_methods import OF_CLUSTERS, SERVERS, check_method
from dbt_arctic.adapter.profile_settings import check_names, wrong_type
from dbt_arctic.brokers.api import REGISTRY_PREFIX
from dbt_arctic.catalog.translate import catalog_kind, names_a_kind
from dbt_arctic.engine.catalog_settings import read_definition, with_region
from dbt_arctic.engine.cluster import check_warehouse
from dbt_arctic.engine.connect_settings import (
    DEFAULT_PORT,
    DEFAULT_TIMEOUT_S,
    ConnectSettings,
    connect_conf,
    parsed_host,
)
from dbt_arctic.engine.connectors import S3
from dbt_arctic.engine.settings import OtherCatalog, SparkSettings, local_cores
from dbt_arctic.engine.thrift_settings import DEFAULT_THRIFT_PORT, MECHANISMS, ThriftSettings
from dbt_arctic.errors import ProfileError

ADAPTER = "arctic"
DEFAULT_WAREHOUSE = "./lake"

_type: ContextVar[str] = ContextVar("credentials_type", default=ADAPTER)


@contextmanager
def credentials_of_type(name: str) -> Iterator[None]:
    """Temporarily change the ``type`` of credentials, which a file sees as ``target.type``."""
    token = _type.set(name)
    try:
        yield
    finally:
        _type.reset(token)


@dataclass
class ArcticCredentials(Credentials):
    """A target of type ``arctic`` in ``profiles.yml``. ``catalog`` is dbt's ``database``."""

    database: str = "lake"
    schema: str = "default"
    method: str = "session"
    warehouse: str | None = None
    master: str = "local[*]"
    driver_memory: str = "2g"
    java_home: str | None = None
    packages: list[str] | None = None
    repositories: list[str] = field(default_factory=list)
    spark_conf: dict[str, Any] = field(default_factory=dict, repr=False)
    catalog_properties: dict[str, Any] = field(default_factory=dict, repr=False)
    use_server: bool = True
    small_data: bool = False
    executor_memory: str | None = None
    executor_cores: int | None = None
    max_executors: int | None = None
    consistent_reads: bool = False
    packages_see_spark: bool = True
    catalogs: dict[str, Any] = field(default_factory=dict, repr=False)
    kafka: dict[str, Any] = field(default_factory=dict, repr=False)
    jdbc: dict[str, Any] = field(default_factory=dict, repr=False)
    host: str | None = field(default=None, repr=False)
    port: int | None = None
    token: str | None = field(default=None, repr=False)
    user_id: str | None = None
    use_ssl: bool = False
    tls_ca: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    auth: str = MECHANISMS[0]
    kerberos_service_name: str = "hive"
    connect_timeout: int = DEFAULT_TIMEOUT_S

    _ALIASES: ClassVar[dict[str, str]] = {"catalog": "database"}

    @classmethod
    def __pre_deserialize__(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown settings. dbt calls ``translate_aliases`` for configs of models as well."""
        try:
            check_names(data, cls.__dataclass_fields__)
        except ProfileError as error:
            raise DbtRuntimeError(str(error)) from error
        prepared: dict[str, Any] = super().__pre_deserialize__(data)  # type: ignore[no-untyped-call]
        return prepared

    @classmethod
    def validate(cls, data: Any) -> None:
        """Refuse a value of a wrong type, with the name of its setting."""
        try:
            super().validate(data)
        except ValidationError as error:
            wrong = wrong_type(error)
            if wrong is None:
                raise
            raise DbtRuntimeError(str(wrong)) from error

    @classmethod
    def translate_aliases(cls, kwargs: dict[str, Any], recurse: bool = False) -> dict[str, Any]:
        """Map settings to the fields of this class; ``catalog`` may be a name or a definition."""
        settings: dict[str, Any] = super().translate_aliases(kwargs, recurse)
        try:
            return _with_definition(settings) if isinstance(settings.get("database"), dict) else settings
        except ProfileError as error:
            raise DbtRuntimeError(str(error)) from error

    def __post_init__(self) -> None:
        place = other_schema.current()
        if place is not None:
            self.schema = place.schema
        try:
            self._check()
        except ProfileError as error:
            raise DbtRuntimeError(str(error)) from error

    def _check(self) -> None:
        defaults = {name: spec.default for name, spec in type(self).__dataclass_fields__.items()}
        defaults["repositories"] = []  # created by a factory
        check_method(self.method, vars(self), defaults)
        if self.method == "session":
            self._check_settings_of_the_master()
        if self.warehouse is not None and not self.warehouse.strip():
            raise ProfileError(
                "warehouse is empty",
                where="profiles.yml, warehouse",
                fix="set a folder for the tables, for instance warehouse: ./lake",
            )
        read_databases(self.jdbc)
        self.other_catalogs()
        for setting in ("spark_conf", "catalog_properties", "kafka"):
            nested = [key for key, value in getattr(self, setting).items() if isinstance(value, (dict, list))]
            if nested:
                raise ProfileError(
                    f"{setting} has a nested value under {nested[0]!r}",
                    where=f"profiles.yml, {setting}",
                    why="each setting is a dotted name with a single value",
                    fix=f"write the full name, for instance {nested[0]}.something: value",
                )

    def _check_settings_of_the_master(self) -> None:
        master = self._master
        is_local = local_cores(master) is not None
        unsuitable = OF_CLUSTERS if is_local else ("small_data",)
        found = [name for name in unsuitable if getattr(self, name)]
        if found:
            raise ProfileError(
                f"{found[0]} has no effect with master: {master}",
                where=f"profiles.yml, {found[0]}",
                why="it belongs to a cluster" if is_local else "it belongs to a Spark on this machine",
                fix="remove it, or write master: " + ("spark://host:7077" if is_local else "local[*]"),
            )
        if not is_local:
            check_warehouse(master, self._stored_in)

    @property
    def _stored_in(self) -> str:
        """The location of tables; empty if only a server knows it."""
        properties = self.iceberg_properties
        if names_a_kind(properties) and catalog_kind(properties) == "rest":
            return ""
        return properties.get("warehouse") or self.resolved_warehouse()

    @property
    def _master(self) -> str:
        return str(self.spark_conf.get("spark.master", self.master))

    @property
    def type(self) -> str:
        """The adapter type."""
        return _type.get()

    @property
    def unique_field(self) -> str:
        """A value that identifies the profile in dbt's anonymous statistics."""
        # Without the parameters of the host, which may contain a token.
        return self.warehouse or (self.host or "").partition(";")[0] or DEFAULT_WAREHOUSE

    def _connection_keys(self) -> tuple[str, ...]:
        # The keys shown by `dbt debug`: never the token, which may also be in the parameters of the host.
        keys: tuple[str, ...]
        if self.method == "connect":
            keys = ("method", "database", "schema", "user_id", "use_ssl", "tls_ca", "warehouse")
        elif self.method == "thrift":
            keys = ("method", "database", "schema", "user", "auth", "use_ssl", "tls_ca", "warehouse")
        else:
            keys = ("method", "database", "schema", "warehouse", "master", "driver_memory", "java_home")
        # dbt parses the project again if one of these has changed, which is required for this one.
        return (*keys, "packages_see_spark")

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """The settings shown by `dbt debug`."""
        yield from super().connection_info(with_aliases=with_aliases)
        if self.method in SERVERS:
            yield "endpoint", self.endpoint

    @property
    def endpoint(self) -> str:
        """The address of the server without its parameters."""
        settings = self.thrift_settings() if self.method == "thrift" else self.connect_settings()
        return settings.endpoint

    def spark_settings(self, project_root: str | None = None) -> SparkSettings:
        """Settings of the embedded Spark. A relative warehouse is resolved in the folder of the project.

        :raises ProfileError: the name of the catalog is invalid.
        """
        return SparkSettings(
            catalog=self.database,
            warehouse=self.resolved_warehouse(project_root),
            catalog_properties=self.iceberg_properties,
            spark_conf=_texts(self.spark_conf),
            master=self.master,
            driver_memory=self.driver_memory,
            packages=None if self.packages is None else tuple(self.packages),
            repositories=tuple(self.repositories),
            java_home=self.java_home,
            small_data=self.small_data,
            executor_memory=self.executor_memory,
            executor_cores=self.executor_cores,
            max_executors=self.max_executors,
            connectors=(*self._readers_of_topics(), *self._stores_of_files(), *kinds_of(self.databases)),
            others=self.other_catalogs(project_root),
        )

    def connect_settings(self) -> ConnectSettings:
        """Settings of sessions on the Spark Connect server of the profile.

        :raises ProfileError: the host is not an address, or the name of the catalog is invalid.
        """
        name, port, parameters = parsed_host(self.host or "")
        use_ssl = self.use_ssl or parameters.pop("use_ssl", "false").lower() == "true"
        spark_conf = _texts(self.spark_conf)
        return ConnectSettings(
            host=name,
            port=self.port or port or DEFAULT_PORT,
            use_ssl=use_ssl,
            token=self.token or parameters.pop("token", None),
            user_id=self.user_id or parameters.pop("user_id", None),
            parameters=parameters,
            tls_ca=Path(self.tls_ca).expanduser() if self.tls_ca else None,
            catalog=self.database,
            conf=connect_conf(
                self.database, self.warehouse, self.iceberg_properties, spark_conf, self.other_catalogs()
            ),
            timeout_s=self.connect_timeout,
        )

    def thrift_settings(self) -> ThriftSettings:
        """Settings of sessions on the Spark Thrift server of the profile.

        :raises ProfileError: the name of the catalog is invalid.
        """
        spark_conf = _texts(self.spark_conf)
        return ThriftSettings(
            host=self.host or "",
            port=self.port or DEFAULT_THRIFT_PORT,
            auth=self.auth.lower(),
            user=self.user,
            password=self.password,
            service=self.kerberos_service_name,
            use_ssl=self.use_ssl,
            tls_ca=Path(self.tls_ca).expanduser() if self.tls_ca else None,
            catalog=self.database,
            # The server logs its statements, so it gets no properties of catalogs, such as passwords.
            conf=connect_conf(
                self.database,
                None,
                {},
                spark_conf,
                [replace(one, properties={}) for one in self.other_catalogs()],
            ),
            timeout_s=self.connect_timeout,
        )

    def other_catalogs(self, project_root: str | None = None) -> tuple[OtherCatalog, ...]:
        """The catalogs of the section ``catalogs:``.

        :raises ProfileError: a name or a definition is invalid.
        """
        own = self.resolved_warehouse(project_root)
        found = read_catalogs(self.catalogs, self.database, self.method, self.spark_conf)
        catalogs = tuple(resolved(one, own, project_root) for one in found)
        require_own_places(catalogs)
        return catalogs

    @property
    def lower_case_catalogs(self) -> list[str]:
        """The names of the catalogs that store all names in lower case: those of Hive."""
        own = self.iceberg_properties
        found = [self.database] if names_a_kind(own) and catalog_kind(own) == "hive" else []
        others = ((name, given) for name, given in self.catalogs.items() if isinstance(given, dict))
        return [*found, *(name for name, given in others if given.get("type") == "hive")]

    @property
    def catalog_names(self) -> list[str]:
        """The names of all catalogs of the profile, its own first."""
        return [self.database, *self.catalogs]

    @property
    def iceberg_properties(self) -> dict[str, str]:
        """``catalog_properties`` in Iceberg's format."""
        return with_region(_texts(self.catalog_properties), os.environ)

    def _readers_of_topics(self) -> tuple[str, ...]:
        """Spark's readers that topics need. Avro is one of them if the profile has a schema registry."""
        has_schemas = any(str(name).startswith(REGISTRY_PREFIX) for name in self.kafka or ())
        return (*(("kafka",) if self.kafka else ()), *(("avro",) if has_schemas else ()))

    def _stores_of_files(self) -> tuple[str, ...]:
        """The object store of which the profile has settings: the project's own server knows no sources."""
        is_set = any(name.startswith("s3.") or name == "client.region" for name in self.iceberg_properties)
        return (S3,) if is_set else ()

    @property
    def kafka_properties(self) -> dict[str, str]:
        """``kafka`` as properties of Kafka's client. Errors omit the secrets among them."""
        properties = _texts(self.kafka)
        secret.remember(properties)
        return properties

    @property
    def databases(self) -> dict[str, dict[str, str]]:
        """``jdbc``: the address and the login of databases by name. Errors omit the secrets among them.

        :raises ProfileError: an entry is no mapping, or has an unknown setting.
        """
        return read_databases(self.jdbc)

    def resolved_warehouse(self, project_root: str | None = None) -> str:
        """The warehouse, with the default and absolute paths resolved."""
        properties = self.iceberg_properties
        if names_a_kind(properties) and catalog_kind(properties) == "rest":
            # A server's name of a warehouse, or empty: the server may have only one.
            return self.warehouse or ""
        warehouse = self.warehouse or DEFAULT_WAREHOUSE
        if "://" in warehouse or warehouse.startswith("file:"):
            return warehouse
        return str(Path(project_root or os.getcwd(), os.path.expanduser(warehouse)).resolve())


def _with_definition(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with the name, warehouse and properties of the definition ``catalog: {..}``."""
    given = settings["database"]
    definition = read_definition(given)
    if settings.get("method") in SERVERS and given["type"] == "sqlite":
        raise ProfileError(
            f"catalog has the type 'sqlite' with method: {settings['method']}.",
            where="profiles.yml, catalog: type",
            why="Its file would be on the server's machine.",
            fix="use the catalog that the server is set up with: write its name, catalog: lake",
        )
    if definition.warehouse is not None and settings.get("warehouse") is not None:
        raise ProfileError(
            "warehouse is given twice.",
            where="profiles.yml, warehouse and catalog: warehouse",
            fix="remove one of them",
        )
    properties = {**definition.properties, **(settings.get("catalog_properties") or {})}
    found = {**settings, "database": definition.name, "catalog_properties": properties}
    return found if definition.warehouse is None else {**found, "warehouse": definition.warehouse}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Convert booleans and numbers of YAML to Spark's strings."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()
    }
