"""Creates identifiers that are unique in a query."""

from __future__ import annotations

import re

_OURS = re.compile(
    r"_arctic_\w+|_(one|rows|sign|value)|_(count|distinct|max|min|sum)_\d+"
    r"|_(action|last_updated_sequence_number|offset|row_id|txn)",
    re.IGNORECASE,
)
"""Columns that our operators add to those of a query, and column names that no Iceberg table may have."""


class Identifiers:
    """Creates names that are unique regardless of case: as requested, or with a number.

    A name never equals a column that the planner adds itself.

    :param joint: the separator before the number.
    """

    def __init__(self, joint: str = "__") -> None:
        self._joint = joint
        self._used: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        if _OURS.fullmatch(name):
            name = f"{name}__"
        made, stem = name, name.lower()
        while made.lower() in self._used:
            self._used[stem] += 1
            made = f"{name}{self._joint}{self._used[stem]}"
        self._used[made.lower()] = 1
        return made
