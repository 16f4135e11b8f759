"""``jdbc`` in the profile: the address and the login of databases whose tables are sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic import secret
from dbt_arctic.databases.address import kind_of_url
from dbt_arctic.errors import ProfileError

_SETTINGS = ("url", "user", "password")


def read_databases(given: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The settings of each database by name. Errors omit the secrets among them.

    :raises ProfileError: an entry is no mapping, or has an unknown setting.
    """
    found: dict[str, dict[str, str]] = {}
    for name, entry in given.items():
        where = f"profiles.yml, jdbc, {name}"
        if not isinstance(entry, Mapping):
            raise ProfileError(
                f"jdbc has no mapping under {name!r}",
                where=where,
                why="each entry has the credentials of a database, under the name of a source",
                fix=f"write jdbc: {{{name}: {{user: name, password: ...}}}}",
            )
        for setting in entry:
            if setting not in _SETTINGS:
                raise ProfileError(
                    f"jdbc has the unknown setting {setting!r}",
                    where=where,
                    fix=f"use {', '.join(_SETTINGS)}",
                )
        found[str(name)] = {key: str(value) for key, value in entry.items() if value is not None}
        secret.remember(found[str(name)])
    return found


def kinds_of(databases: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """The kinds of databases whose address is in the profile."""
    kinds = {kind_of_url(one.get("url", "")) for one in databases.values()}
    return tuple(sorted(kind for kind in kinds if kind is not None))


__all__ = ["kinds_of", "read_databases"]
