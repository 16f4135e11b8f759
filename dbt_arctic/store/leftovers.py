"""Decides which leftovers may be removed, for runs and for ``dbt-arctic clean``.

Pure. Whatever may still belong to a run at work stays, so everything here has an age: a branch and a
staging table tell theirs by the transaction in their name, a side table by a property.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbt_arctic.keyed.adopt import PROPERTY_MOVING
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_CREATED

ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000
"""What is younger may belong to a run that is still at work."""

_BRANCH = re.compile(r"arctic_(\d{1,19})")
# A transaction of this program has 19 digits; a table of somebody else's with such a name is unlikely.
_STAGING = re.compile(r"(?P<of>.+)__pull_(?P<txn>\d{19})")
_ASIDE = re.compile(r"(?P<of>.+)__arctic_(?:old|new)_(?P<txn>\d{19})")


def branch_name(txn: int) -> str:
    """A name that tells when the branch was made, so that a later run knows whether it was left behind."""
    return f"arctic_{txn}"


def txn_age_ms(txn: int, now_ms: int) -> int:
    """How long ago a transaction id was made."""
    return now_ms - txn_ms(txn)


def txn_ms(txn: int) -> int:
    """When a transaction id was made, in milliseconds since the epoch."""
    return txn >> 20


def branch_age_ms(branch: str, now_ms: int) -> int | None:
    """``None`` for a branch that is not ours."""
    match = _BRANCH.fullmatch(branch)
    return txn_age_ms(int(match.group(1)), now_ms) if match else None


def is_abandoned_branch(branch: str, now_ms: int, older_than_ms: int = ABANDONED_AFTER_MS) -> bool:
    age = branch_age_ms(branch, now_ms)
    return age is not None and age > older_than_ms


def staging_age_ms(identifier: str, now_ms: int) -> int | None:
    """The age of a pull's staging table; ``None`` for any other name."""
    match = _STAGING.fullmatch(identifier)
    return txn_age_ms(int(match.group("txn")), now_ms) if match else None


def staging_of(identifier: str) -> str | None:
    """The model whose pull staged rows in a table of that name; ``None`` for any other name."""
    match = _STAGING.fullmatch(identifier)
    return match.group("of") if match else None


def aside_of(identifier: str) -> tuple[str, int] | None:
    """What a relation was set aside for while a table and a view changed places, and its transaction."""
    match = _ASIDE.fullmatch(identifier)
    return (match.group("of"), int(match.group("txn"))) if match else None


def is_abandoned_generation(
    number: int,
    superseded: int,
    properties: Mapping[str, str],
    tags: Mapping[str, int],
    now_ms: int,
    older_than_ms: int = ABANDONED_AFTER_MS,
) -> bool:
    """Whether a side table that no view names may go: superseded, or a build that nobody finished.

    :param superseded: generations before this one were replaced by a build that went through.
    :param tags: of the side table: one with a savepoint was asked to stay. An adopted one that was cut off
        between its two names may hold the only copy of its rows.
    """
    if savepoints(tags) or PROPERTY_MOVING in properties:
        return False
    return number < superseded or side_age_ms(properties, now_ms) > older_than_ms


def side_age_ms(properties: Mapping[str, str], now_ms: int) -> int:
    return now_ms - int(properties.get(PROPERTY_CREATED, "0"))
