"""Between which values the keys of changes lie, from the bounds of change files: no Spark job.

As literals in a statement they let Spark skip the files and row groups of a sorted table that hold no
changed key. Recent keys, which most changes have, lie close together.
"""

from __future__ import annotations

import datetime as dt

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import TXN, KeyedTable

Ranges = dict[str, tuple[str, str]]
"""Least and greatest value of a column, as SQL literals."""

_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = ((end - _EPOCH).days for end in (dt.date.min, dt.date.max))


def key_ranges(catalog: CatalogReader, table: KeyedTable, log: LogRange) -> Ranges:
    """The ranges of those key columns of which every file of the range tells its bounds."""
    wanted = [name for name in table.key if table.types[name] in ("int", "bigint", "date")]
    found: dict[str, list[int]] = {name: [] for name in wanted}
    transactions = set(log.transactions)
    change = table.change
    for snapshot in log.readable_at if wanted else ():
        dated = catalog.data_files(change.schema, change.identifier, snapshot, TXN)
        paths = {
            file.path
            for file in dated
            if file.lower is None or file.lower != file.upper or file.lower in transactions
        }
        for name in list(found):
            for file in catalog.data_files(change.schema, change.identifier, snapshot, name):
                if file.path not in paths or name not in found:
                    continue
                if file.lower is None or file.upper is None:
                    del found[name]
                else:
                    found[name] += (file.lower, file.upper)
    return {
        name: (_literal(min(bounds), table.types[name]), _literal(max(bounds), table.types[name]))
        for name, bounds in found.items()
        if bounds and not _is_beyond_dates(bounds, table.types[name])
    }


def between(ranges: Ranges, alias: str) -> str:
    """A condition on the columns of ``alias``; empty where nothing is known."""
    parts = (f"{alias}.{quote(name)} BETWEEN {low} AND {high}" for name, (low, high) in ranges.items())
    return " AND ".join(parts)


def _is_beyond_dates(days: list[int], type_: str) -> bool:
    """Whether some are in a year that no literal of ours names."""
    return type_ == "date" and not (min(days) >= _FIRST_DAY and max(days) <= _LAST_DAY)


def _literal(value: int, type_: str) -> str:
    if type_ != "date":
        return str(value)
    return f"DATE '{_EPOCH + dt.timedelta(days=value)}'"
