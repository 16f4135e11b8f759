"""Days as Iceberg stores them, including those outside the range of Python's dates."""

from __future__ import annotations

import datetime as dt

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
