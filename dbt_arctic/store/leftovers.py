"""Decides which leftovers may be removed, for runs and for ``dbt-arctic clean``.

Pure functions. Objects that may still belong to a run in progress are kept, so every object has an age: the
name of a branch or staging table contains its transaction, and a side table has a property.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dbt_arctic.keyed.adoption import PROPERTY_MOVING
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_CREATED

ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000
"""Younger objects may belong to a run that is still in progress."""

_BRANCH = re.compile(r"arctic_(\d{1,19})")
# A transaction of this program has 19 digits. Other tables are unlikely to have such a name.
_STAGING = re.compile(r"(?P<of>.+)__pull_(?P<txn>\d{19})")
_ASIDE = re.compile(r"(?P<of>.+)__arctic_(?:old|new)_(?P<txn>\d{19})")


def branch_name(txn: int) -> str:
    """A branch name that contains its creation time, so that a later run can detect an abandoned branch."""
    return f"arctic_{txn}"


def txn_age_ms(txn: int, now_ms: int) -> int:
    """Milliseconds since a transaction id was created."""
    return now_ms - txn_ms(txn)


def txn_ms(txn: int) -> int:
    """The creation time of a transaction id, in milliseconds since the epoch."""
    return txn >> 20


def branch_age_ms(branch: str, now_ms: int) -> int | None:
    """The age of a branch; ``None`` for a branch that this program did not create."""
    match = _BRANCH.fullmatch(branch)
    return txn_age_ms(int(match.group(1)), now_ms) if match else None


def is_abandoned_branch(branch: str, now_ms: int, older_than_ms: int = ABANDONED_AFTER_MS) -> bool:
    """Whether a branch of this program is old enough to be dropped."""
    age = branch_age_ms(branch, now_ms)
    return age is not None and age > older_than_ms


def staging_age_ms(identifier: str, now_ms: int) -> int | None:
    """The age of the staging table of a pull; ``None`` for any other name."""
    match = _STAGING.fullmatch(identifier)
    return txn_age_ms(int(match.group("txn")), now_ms) if match else None


def staging_of(identifier: str) -> str | None:
    """The model whose pull staged rows in a table of that name; ``None`` for any other name."""
    match = _STAGING.fullmatch(identifier)
    return match.group("of") if match else None


class SetAside(NamedTuple):
    """A relation that was renamed during a swap of a table and a view.

    :param of: its name before.
    :param txn: the transaction of the swap.
    """

    of: str
    txn: int


def aside_of(identifier: str) -> SetAside | None:
    """What a relation of that name was set aside from; ``None`` for any other name."""
    match = _ASIDE.fullmatch(identifier)
    return SetAside(match.group("of"), int(match.group("txn"))) if match else None


def is_abandoned_generation(
    number: int,
    superseded: int,
    properties: Mapping[str, str],
    tags: Mapping[str, int],
    now_ms: int,
    older_than_ms: int = ABANDONED_AFTER_MS,
) -> bool:
    """Whether a side table that no view names may be dropped: it is superseded, or its build was abandoned.

    :param superseded: a completed build replaced all generations before this one.
    :param tags: the tags of the side table. A table with a savepoint is kept. An adopted table whose swap was
        interrupted between its two renames may hold the only copy of its rows.
    """
    if savepoints(tags) or PROPERTY_MOVING in properties:
        return False
    return number < superseded or side_age_ms(properties, now_ms) > older_than_ms


def side_age_ms(properties: Mapping[str, str], now_ms: int) -> int:
    """The age of a side table in milliseconds."""
    return now_ms - int(properties.get(PROPERTY_CREATED, "0"))
