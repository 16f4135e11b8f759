"""The names of a profile's settings: unknown ones are refused, and those of dbt-spark are answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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
