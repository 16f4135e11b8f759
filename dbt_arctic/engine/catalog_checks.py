"""Checks that Spark and dbt-arctic see the same catalogs, and always their current tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt_arctic.errors import ProfileError


def catalog_prefix(name: str) -> str:
    """The key that defines a catalog in Spark; its properties follow below it."""
    return f"spark.sql.catalog.{name}"


def check_defined_once(conf: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise ``ProfileError`` if ``spark_conf`` changes a catalog that the profile defines.

    Only Spark would read it. dbt-arctic would look into the catalog of the profile, take every table for
    missing, and replace it.

    :param names: the catalogs of which the profile has the settings.
    """
    for name in names:
        prefix = catalog_prefix(name)
        found = next((key for key in conf if key == prefix or key.startswith(f"{prefix}.")), None)
        if found is not None:
            raise ProfileError(
                f"spark_conf sets {found}, and the profile defines the catalog {name}.",
                where="profile: spark_conf",
                why="Only Spark would read it. dbt-arctic reads the catalog as well, and both must see the "
                "same tables.",
                fix=f"set {found.removeprefix(prefix).lstrip('.') or 'its type'} where the profile defines "
                "the catalog: in catalog, catalogs or catalog_properties",
            )


def check_uncached(conf: Mapping[str, str]) -> None:
    """Raise ``ProfileError`` if Iceberg's cache of tables is on for any catalog.

    :param conf: settings of a Spark session, those of catalogs among them.
    """
    for key, value in conf.items():
        is_cache = key.startswith(catalog_prefix("")) and key.endswith(".cache-enabled")
        if is_cache and str(value).strip().lower() != "false":
            raise ProfileError(
                f"{key} is {value}.",
                where="profile: spark_conf, or the properties of the catalog",
                why="A session would not see what others have written, and could lose their rows.",
                fix="remove it",
            )


__all__ = ["catalog_prefix", "check_defined_once", "check_uncached"]
