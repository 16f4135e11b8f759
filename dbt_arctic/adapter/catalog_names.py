"""Checks of dbt's ``database``, which is a catalog.

The profile knows one or several, to which dbt writes. Spark may know more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import side_root
from dbt_arctic.keyed.without_views import record_of, recorded
from dbt_arctic.store.leftovers import aside_of, staging_of


def is_of(database: str | None, ours: str) -> bool:
    """Whether a relation of that database is in the catalog of the profile."""
    return not database or database.lower() == ours.lower()


def is_known(database: str | None, names: Collection[str]) -> bool:
    """Whether a relation of that database is in a catalog of the profile, so that its metadata is read.

    :param names: the names of its catalogs.
    """
    return not database or database.lower() in {name.lower() for name in names}


def catalog_of(database: str | None, names: Sequence[str]) -> str:
    """The catalog of a node of the last dbt command.

    That command may have used another target. If the profile of this one has no such catalog, it is its own.

    :param names: the names of the profile's catalogs, its own first.
    """
    return next((name for name in names if database and name.lower() == database.lower()), names[0])


def is_schema_of(schema: str, own: str) -> bool:
    """Whether dbt derives this name from the schema of a target by default.

    It is the schema itself, or the schema with a custom one appended.
    """
    return schema == own or schema.startswith(f"{own}_")


def refuse_model(model: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse a node that is to be written to a catalog that is not in the profile.

    :param names: the names of the profile's catalogs, its own first.
    :raises ConfigError: the profile has no catalog of this name, or spells it differently.
    """
    database = model.get("database")
    if not database or database in names:
        return
    where = str(model.get("original_file_path") or model["name"])
    spelled = next((name for name in names if name.lower() == database.lower()), None)
    if spelled is not None:
        raise ConfigError(
            f"{model['name']} has the catalog {database}, and the profile has {spelled}",
            where=where,
            why="Spark distinguishes upper and lower case in the name of a catalog",
            fix=f"write database: {spelled}",
        )
    raise ConfigError(
        f"{model['name']} has the catalog {database}",
        where=where,
        why=f"the profile has no catalog of this name: {', '.join(names)}",
        fix="add it in profiles.yml under catalogs, or remove the config database",
    )


def refuse_upper_case(model: Mapping[str, Any], lower_case: Sequence[str]) -> None:
    """Refuse a name that the catalog would store in another way.

    :param lower_case: the catalogs of the profile that store all names in lower case.
    :raises ConfigError: the relation would never be found under its name, and each run would build it again.
    """
    name, schema = str(model.get("alias") or model["name"]), str(model.get("schema") or "")
    changed = [one for one in (schema, name) if one != one.lower()]
    if str(model.get("database")) not in lower_case or not changed:
        return
    raise ConfigError(
        f"{changed[0]} has upper-case letters, and its catalog is Hive's",
        where=str(model.get("original_file_path") or model["name"]),
        why="Hive stores all names in lower case, so the relation would not be found under this name",
        fix=f"write {changed[0].lower()}: {'in schema' if changed[0] == schema else 'as alias'}",
    )


def refuse_reserved_name(model: Mapping[str, Any]) -> None:
    """Refuse a relation with the name of a base or change table, of a record, or of a temporary relation.

    Records are in catalogs without views only. Their names are reserved in all, so that every model can be
    built in each.

    :raises ConfigError: the relation would have the name of such a table. A run or ``dbt-arctic clean`` would
        overwrite or drop it.
    """
    name = str(model.get("alias") or model["name"])
    root, described = side_root(name), recorded(name)
    if root is not None:
        what = f"a side table of the keyed table {root}"
        why = "names that end in __base_ or __change_ and a number belong to base and change tables"
    elif described is not None:
        what = f"the record of the keyed table {described}"
        why = f"names that end in {record_of('')} belong to the records of keyed tables without a view"
    elif (aside := aside_of(name)) is not None:
        what = f"what a run of {aside.of} builds or renames"
        why = "names that end in __arctic_old_ or __arctic_new_ and 19 digits belong to unfinished swaps"
    elif (staged_for := staging_of(name)) is not None:
        what = f"the rows that a run of {staged_for} pulls"
        why = "names that end in __pull_ and 19 digits belong to unfinished pulls"
    else:
        return
    raise ConfigError(
        f"{name} is reserved for {what}",
        where=str(model.get("original_file_path") or model["name"]),
        why=f"{why}, and one could replace the other",
        fix="give the model another name or alias",
    )


def refuse_reading(name: Name, names: Sequence[str]) -> None:
    """Refuse to read versions of a relation in a catalog that is not in the profile.

    :param names: the names of the profile's catalogs, its own first.
    :raises ConfigError: the relation is in another catalog.
    """
    if not is_known(name.catalog, names):
        several = f"those of the profile, {', '.join(names)}"
        known = f"the profile's, {names[0]}" if len(names) == 1 else several
        raise ConfigError(
            f"{name} is in another catalog than {known}",
            where=name.dotted,
            why="its versions cannot be read; a table of the same name in this catalog would be used instead",
            fix="add the catalog in profiles.yml under catalogs; or read it with source() in plain SQL",
        )
