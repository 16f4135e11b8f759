"""The section ``catalogs:`` of a profile: catalogs in addition to the one in which the models are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.profile_methods import SERVERS
from dbt_arctic.catalog.translate import catalog_kind, names_a_kind
from dbt_arctic.engine.catalog_checks import catalog_prefix
from dbt_arctic.engine.catalog_settings import read_definition
from dbt_arctic.engine.settings import OtherCatalog, check_catalog_name
from dbt_arctic.errors import ProfileError
from dbt_arctic.locations import canonical_location

_NEED_WAREHOUSE = ("sqlite", "postgres")
"""The types whose default warehouse would be that of the profile's own catalog."""


def read_catalogs(
    given: Mapping[str, Any], own: str, method: str, spark_conf: Mapping[str, Any]
) -> tuple[OtherCatalog, ...]:
    """Parse the section ``catalogs:``.

    A catalog without settings is defined by the server, or in ``spark_conf``.

    :param own: the name of the profile's own catalog.
    :raises ProfileError: an invalid name or definition.
    """
    names = {own.lower(): own}
    found = []
    for name, definition in given.items():
        where = f"profiles.yml, catalogs: {name}"
        check_catalog_name(name)
        same = names.setdefault(name.lower(), name) if name.lower() in names else None
        if same is not None:
            raise ProfileError(
                f"The catalog {name} is in the profile twice.",
                where=where,
                why=f"The other one is {same}, and dbt compares names without case."
                if same != name
                else "It is the catalog in which the models are.",
                fix="remove one of them, or give it another name",
            )
        names[name.lower()] = name
        if definition is None:
            _check_defined(name, where, method, spark_conf)
            found.append(OtherCatalog(name))
        else:
            found.append(_defined(name, definition, where, method))
    return tuple(found)


def _check_defined(name: str, where: str, method: str, spark_conf: Mapping[str, Any]) -> None:
    if method not in SERVERS and catalog_prefix(name) not in spark_conf:
        raise ProfileError(
            f"The catalog {name} has no settings.",
            where=where,
            why="Only the server of method: connect or thrift, or spark_conf, could define it elsewhere.",
            fix="write its settings, for instance type: postgres and uri: postgresql://host:5432/name",
        )


def _defined(name: str, definition: Any, where: str, method: str) -> OtherCatalog:
    if not isinstance(definition, dict) or "name" in definition:
        raise ProfileError(
            f"The catalog {name} is not defined by settings of its own.",
            where=where,
            why="Its name is the key, and below it are its type and where it is.",
            fix="write for instance type: rest and uri: https://catalog.example.org, one a line",
        )
    try:
        read = read_definition(definition)
    except ProfileError as error:
        # The messages are those of the section `catalog:`.
        place = error.where.replace("catalog:", f"catalogs: {name},", 1)
        raise ProfileError(error.what, where=place, why=error.why, fix=error.fix) from error
    kind = definition["type"]
    if kind == "sqlite" and method in SERVERS:
        raise ProfileError(
            f"The catalog {name} has the type 'sqlite' with method: {method}.",
            where=f"{where}, type",
            why="Its file would be on the server's machine.",
            fix="leave its settings out, if the server defines it",
        )
    if kind in _NEED_WAREHOUSE and read.warehouse is None:
        raise ProfileError(
            f"The catalog {name} has no warehouse.",
            where=f"{where}, warehouse",
            why="Two catalogs with one warehouse would put tables of one name into one folder.",
            fix="write the folder or location of its tables, for instance warehouse: ../archive/lake",
        )
    return OtherCatalog(name, read.warehouse or "", read.properties)


def resolved(catalog: OtherCatalog, own_warehouse: str, project_root: str | None = None) -> OtherCatalog:
    """The catalog with an absolute warehouse. A relative one is resolved in the folder of the project.

    :raises ProfileError: it is the warehouse of the profile's own catalog.
    """
    warehouse, properties = catalog.warehouse, catalog.properties or {}
    is_name = names_a_kind(properties) and catalog_kind(properties) == "rest"
    if warehouse and not is_name and "://" not in warehouse and not warehouse.startswith("file:"):
        warehouse = str(Path(project_root or os.getcwd(), os.path.expanduser(warehouse)).resolve())
    if warehouse and not is_name and canonical_location(warehouse) == canonical_location(own_warehouse):
        raise _shared(catalog.name, "the profile's own catalog")
    return replace(catalog, warehouse=warehouse)


def require_own_places(catalogs: Sequence[OtherCatalog]) -> None:
    """Refuse two catalogs with one warehouse.

    :param catalogs: with absolute warehouses.
    :raises ProfileError: ``dbt-arctic clean --files`` of one would remove the files of the other.
    """
    found: dict[str, str] = {}
    for catalog in catalogs:
        properties = catalog.properties or {}
        if not catalog.warehouse or (names_a_kind(properties) and catalog_kind(properties) == "rest"):
            continue
        other = found.setdefault(canonical_location(catalog.warehouse), catalog.name)
        if other != catalog.name:
            raise _shared(catalog.name, f"the catalog {other}")


def _shared(name: str, other: str) -> ProfileError:
    return ProfileError(
        f"The catalog {name} has the warehouse of {other}.",
        where=f"profiles.yml, catalogs: {name}, warehouse",
        why="Two catalogs with one warehouse would put tables of one name into one folder.",
        fix="write the warehouse that its tables are in",
    )
