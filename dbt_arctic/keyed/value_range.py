"""Between which values a column lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ValueRange(NamedTuple):
    """The least and the greatest value of a column, as SQL literals."""

    least: str
    greatest: str

    def holds(self, column: str) -> str:
        """The condition that a column lies in the range.

        >>> ValueRange("1", "9").holds("`id`")
        '`id` BETWEEN 1 AND 9'
        """
        return f"{column} BETWEEN {self.least} AND {self.greatest}"


Ranges = Mapping[str, ValueRange]
"""By the names of columns."""

__all__ = ["Ranges", "ValueRange"]
