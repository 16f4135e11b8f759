"""Days as Iceberg stores them, including those outside the range of Python's dates."""

from __future__ import annotations

import datetime as dt
from typing import Any

_EPOCH = dt.date(1970, 1, 1)
_DAYS_OF_400_YEARS = 146_097


def shown_day(days: int) -> str:
    """A number of days since 1970 as Spark prints and parses it.

    >>> shown_day(0), shown_day(-1), shown_day(2_932_897), shown_day(-800_000)
    ('1970-01-01', '1969-12-31', '+10000-01-01', '-0221-09-04')
    """
    cycles, rest = divmod(days, _DAYS_OF_400_YEARS)
    day = _EPOCH + dt.timedelta(days=rest)
    year = day.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{day:%m-%d}"


def stored_bound(bound: Any) -> Any:
    """A bound that Spark reports, as manifests store it: a date becomes the days since the epoch.

    That of a timestamp depends on the time zone of the session, so it is left out.

    >>> [stored_bound(bound) for bound in (7, dt.date(1970, 1, 3), dt.datetime(1970, 1, 3))]
    [7, 2, None]
    """
    if type(bound) is dt.date:
        return (bound - _EPOCH).days
    return bound if isinstance(bound, int) else None
