"""Checks the keys that a project declares for tables which do not enforce them.

A plan may depend on a declared key, so each refresh checks it: a build and a full refresh in all rows, an
incremental one for the keys of changed rows. If it does not hold, the refresh is a full one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.version import FINGERPRINT, Consumed
from dbt_arctic.planner.reasons import Reason

NOT_UNIQUE = "not-unique"
"""Recorded with the fingerprint of a refresh whose check of a declared key has failed."""


def checks_of(upstreams: Mapping[str, Upstream], *, all_rows: bool) -> Iterator[tuple[Upstream, str]]:
    """The check of each declared key: SQL that returns the number of its values that are not unique, or NULL.

    :param all_rows: whether to check all rows, and not only the keys of rows that were added or changed.
    """
    for _, upstream in sorted(upstreams.items()):
        if upstream.is_declared and (all_rows or upstream.changed):
            yield upstream, _check_sql(upstream, all_rows=all_rows)


def _check_sql(upstream: Upstream, *, all_rows: bool) -> str:
    keys = quote_all(upstream.key)
    rows = f"SELECT {keys}\nFROM (\n{upstream.states['new']}\n)"
    if not all_rows:
        matches = " AND ".join(f"n.{quote(one)} <=> c.{quote(one)}" for one in upstream.key)
        own = ", ".join(f"n.{quote(one)}" for one in upstream.key)
        rows = (
            f"SELECT {own}\nFROM (\n{upstream.states['new']}\n) AS n\nLEFT SEMI JOIN (\n"
            f"SELECT {keys}\nFROM (\n{upstream.states['plus']}\n)\n) AS c\n  ON {matches}"
        )
    is_null = " OR ".join(f"{quote(one)} IS NULL" for one in upstream.key)
    return (
        f"SELECT count(*)\nFROM (\nSELECT {keys}\nFROM (\n{rows}\n)\nGROUP BY {keys}\n"
        f"HAVING count(*) > 1 OR {is_null}\n)"
    )


def not_unique(upstream: Upstream) -> Reason:
    """The reason for a full refresh if a declared key does not hold."""
    columns = ", ".join(upstream.key)
    return Reason(
        "not-unique",
        f"{upstream.name} has several rows of one key, or NULL in it: ({columns}) is declared as its key",
        f"remove the rows, or declare another key; find them with: select {columns}, count(*) from "
        f"{upstream.name} group by {columns} having count(*) > 1",
    )


def still_not_unique(upstreams: Mapping[str, Upstream]) -> Reason:
    """The reason for a full refresh after one whose check has failed. It checks all rows."""
    named = ", ".join(str(one.name) for _, one in sorted(upstreams.items()) if one.is_declared)
    return Reason(
        "not-unique",
        f"at the last refresh, a key that the project declares did not hold in {named}",
        "remove the rows that share a key, or declare another key",
    )


def unproved(consumed: Mapping[str, Consumed]) -> dict[str, Consumed]:
    """The consumed versions of a refresh after which declared keys have to be checked in all rows again."""
    return {**consumed, FINGERPRINT: replace(consumed[FINGERPRINT], version=NOT_UNIQUE)}


def is_unproved(last_consumed: Mapping[str, Consumed]) -> bool:
    """Whether the check of a declared key has failed at the last refresh."""
    return FINGERPRINT in last_consumed and last_consumed[FINGERPRINT].version == NOT_UNIQUE


__all__ = ["checks_of", "is_unproved", "not_unique", "still_not_unique", "unproved"]
