"""The names of a profile's settings: unknown ones are refused, and those of dbt-spark are answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dbt_common.dataclass_schema import ValidationError

from dbt_arctic.errors import ProfileError

_OF_DBT = ("type", "threads", "catalog")
"""Settings of a target that are not fields of the credentials."""

_OF_SPARK = {
    "server_side_parameters": "write them under spark_conf",
    "connection_string_suffix": "write the parameters at the end of host: sc://host:port/;parameter=value",
    "organization": "use the address of a Spark Connect server as host",
    "cluster": "use the address of a Spark Connect server as host",
    "endpoint": "use the address of a Spark Connect server as host",
    "http_path": "use the address of a Spark Connect server as host",
    "driver": "no ODBC driver is needed: use method: connect with host",
    "connect_retries": "use connect_timeout, in seconds",
    "retry_all": "statements are not repeated; run dbt retry",
    "poll_interval": "remove it",
    "query_timeout": "remove it",
    "query_retries": "statements are not repeated; run dbt retry",
}
"""Settings of a profile of dbt-spark or dbt-databricks, and what to write instead."""

_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of names to values",
    "null": "",
}
"""What YAML calls the types of JSON's schemas."""
_GIVEN = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "a mapping"),
)
_SCALARS = tuple(name for kind, name in _GIVEN if kind not in (list, dict))


def check_names(found: Iterable[str], known: Iterable[str]) -> None:
    """Refuse settings of a target that do not exist, because they would be ignored silently.

    :param found: the names in the profile.
    :param known: the names of the fields.
    :raises ProfileError: names what was probably meant.
    """
    names = [*(name for name in known if not name.startswith("_")), *_OF_DBT]
    for name in found:
        if name in names:
            continue
        meant = difflib.get_close_matches(name, names, n=1)
        if name in _OF_SPARK:
            why, fix = "it is a setting of dbt-spark", _OF_SPARK[name]
        else:
            why = "an unknown setting would be ignored silently"
            fix = f"did you mean {meant[0]}?" if meant else f"use one of: {', '.join(sorted({*names}))}"
        raise ProfileError(f"{name} is not a setting", where=f"profiles.yml, {name}", why=why, fix=fix)


def wrong_type(error: ValidationError) -> ProfileError | None:
    """The error for a setting with a value of another type. It does not show the value, which may be secret.

    :returns: ``None`` if the error is of another kind.
    """
    if error.validator not in ("type", "anyOf") or not error.absolute_path:
        return None
    for part in error.context or ():
        # an element of a list: the list itself has the right type
        if len(part.absolute_path) > len(error.absolute_path):
            return wrong_type(part)
    parts = [error.schema] if error.validator == "type" else error.validator_value
    wanted = " or ".join(filter(None, (_TYPES.get(str(part.get("type")), "") for part in parts)))
    setting = ".".join(map(str, error.absolute_path))
    setting = "catalog" if setting == "database" else setting
    given = next((name for kind, name in _GIVEN if isinstance(error.instance, kind)), "empty")
    fix = f"write {wanted}"
    if given == "a text":
        fix += ", without quotes"
    elif given in _SCALARS and "a text" in wanted:
        fix = "write the value in quotes"
    return ProfileError(
        f"{setting} must be {wanted}", where=f"profiles.yml, {setting}", why=f"its value is {given}", fix=fix
    )
