"""The range of values of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ValueRange(NamedTuple):
    """The minimum and maximum of a column, as SQL literals."""

    minimum: str
    maximum: str

    def holds(self, column: str) -> str:
        """SQL condition that a column is in the range.

        >>> ValueRange("1", "9").holds("`id`")
        '`id` BETWEEN 1 AND 9'
        """
        return f"{column} BETWEEN {self.minimum} AND {self.maximum}"


Ranges = Mapping[str, ValueRange]
"""Ranges by column name."""

__all__ = ["Ranges", "ValueRange"]
