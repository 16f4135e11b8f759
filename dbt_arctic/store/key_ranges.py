"""Derives the range of keys in changed rows from the column bounds of change files, without a Spark job.

As literals in a statement, these ranges let Spark skip the files and row groups of a sorted table that
contain no changed key. Most changes concern recent keys, which are close together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import TXN, KeyedTable
from dbt_arctic.keyed.value_range import Ranges, ValueRange

_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((end - _EPOCH).days for end in (dt.date.min, dt.date.max))


def key_ranges(catalog: CatalogReader, table: KeyedTable, log: LogRange) -> dict[str, ValueRange]:
    """The ranges of those key columns for which every file in the log range has bounds."""
    wanted = [name for name in table.key if table.types[name] in ("int", "bigint", "date")]
    found: dict[str, list[int]] = {name: [] for name in wanted}
    transactions = set(log.transactions)
    change = table.change
    for snapshot in log.readable_at if wanted else ():
        dated = catalog.of(change).data_files(change.schema, change.identifier, snapshot, TXN)
        paths = {
            file.path
            for file in dated
            if file.lower is None or file.lower != file.upper or file.lower in transactions
        }
        for name in list(found):
            for file in catalog.of(change).data_files(change.schema, change.identifier, snapshot, name):
                if file.path not in paths or name not in found:
                    continue
                if file.lower is None or file.upper is None:
                    del found[name]
                else:
                    found[name] += (file.lower, file.upper)
    return {
        name: ValueRange(_literal(min(bounds), table.types[name]), _literal(max(bounds), table.types[name]))
        for name, bounds in found.items()
        if bounds and not _is_beyond_dates(bounds, table.types[name])
    }


def between(ranges: Ranges, alias: str) -> str:
    """A SQL condition on the columns of ``alias``; empty if no range is known."""
    parts = (values.holds(f"{alias}.{quote(name)}") for name, values in ranges.items())
    return " AND ".join(parts)


def enclosing_range(ranges: Sequence[ValueRange | None]) -> ValueRange | None:
    """The smallest range that contains all the given ones; ``None`` if one of them is unknown.

    >>> enclosing_range([ValueRange("5", "9"), ValueRange("10", "12")])
    ValueRange(minimum='5', maximum='12')
    >>> days = ValueRange("DATE '2024-01-31'", "DATE '2024-02-01'")
    >>> enclosing_range([days, ValueRange("DATE '2023-12-31'", "DATE '2024-01-02'")]).minimum
    "DATE '2023-12-31'"
    >>> enclosing_range([ValueRange("5", "9"), None]) is None
    True
    """
    known = [one for one in ranges if one is not None]
    dated = [low.startswith("DATE") for low, _ in known]
    if not known or len(known) < len(ranges) or any(dated) != all(dated):
        return None
    # Date literals have four-digit years, so they sort like their text.
    order = str if dated[0] else int
    minimum = min((one.minimum for one in known), key=order)
    return ValueRange(minimum, max((one.maximum for one in known), key=order))


def _is_beyond_dates(days: list[int], type_: str) -> bool:
    """Whether a day is in a year that a date literal with four digits cannot express."""
    return type_ == "date" and not (min(days) >= _FIRST_DAY and max(days) <= _LAST_DAY)


def _literal(value: int, type_: str) -> str:
    if type_ != "date":
        return str(value)
    return f"DATE '{_EPOCH + dt.timedelta(days=value)}'"
