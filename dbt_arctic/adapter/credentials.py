"""The profile: what it may say, checked when dbt reads it, and turned into Spark's settings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dbt.adapters.contracts.connection import Credentials
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ProfileError

METHODS = ("session",)


@dataclass
class ArcticCredentials(Credentials):
    """A target of type ``arctic`` in ``profiles.yml``. ``catalog`` is dbt's ``database``."""

    database: str = "lake"
    schema: str = "default"
    method: str = "session"
    warehouse: str = "./lake"
    master: str = "local[*]"
    driver_memory: str = "2g"
    java_home: str | None = None
    packages: list[str] | None = None
    repositories: list[str] = field(default_factory=list)
    spark_conf: dict[str, Any] = field(default_factory=dict)
    catalog_properties: dict[str, Any] = field(default_factory=dict)

    _ALIASES: ClassVar[dict[str, str]] = {"catalog": "database"}

    def __post_init__(self) -> None:
        try:
            self._check()
        except ProfileError as error:
            raise DbtRuntimeError(str(error)) from error

    def _check(self) -> None:
        if self.method not in METHODS:
            raise ProfileError(
                f"method is {self.method!r}",
                where="profiles.yml, method",
                why=f"this dbt-arctic knows: {', '.join(METHODS)}",
                fix=f"write method: {METHODS[0]}",
            )
        if not self.warehouse.strip():
            raise ProfileError(
                "warehouse is empty",
                where="profiles.yml, warehouse",
                fix="name a folder for the tables, for instance warehouse: ./lake",
            )
        for setting in ("spark_conf", "catalog_properties"):
            nested = [key for key, value in getattr(self, setting).items() if isinstance(value, (dict, list))]
            if nested:
                raise ProfileError(
                    f"{setting} holds a nested value under {nested[0]!r}",
                    where=f"profiles.yml, {setting}",
                    why="settings are flat: one dotted name, one value",
                    fix=f"write the whole name, for instance {nested[0]}.something: value",
                )

    @property
    def type(self) -> str:
        return "arctic"

    @property
    def unique_field(self) -> str:
        return self.warehouse

    def _connection_keys(self) -> tuple[str, ...]:
        return ("method", "database", "schema", "warehouse", "master", "driver_memory", "java_home")

    def spark_settings(self, project_root: str | None = None) -> SparkSettings:
        """Settings of the embedded Spark. A relative warehouse belongs to the project's folder.

        :raises ProfileError: the catalog's name cannot be used.
        """
        return SparkSettings(
            catalog=self.database,
            warehouse=self.resolved_warehouse(project_root),
            catalog_properties={key: _text(value) for key, value in self.catalog_properties.items()},
            spark_conf={key: _text(value) for key, value in self.spark_conf.items()},
            master=self.master,
            driver_memory=self.driver_memory,
            packages=None if self.packages is None else tuple(self.packages),
            repositories=tuple(self.repositories),
            java_home=self.java_home,
        )

    def resolved_warehouse(self, project_root: str | None = None) -> str:
        if "://" in self.warehouse or self.warehouse.startswith("file:"):
            return self.warehouse
        return str(Path(project_root or os.getcwd(), os.path.expanduser(self.warehouse)).resolve())


def _text(value: Any) -> str:
    """YAML's booleans and numbers as Spark writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)
