"""Parses durations in a model's config: seconds, or a number with a unit."""

from __future__ import annotations

import re
from typing import Any

from dbt_arctic.errors import ConfigError

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DURATION = re.compile(r"\s*(\d+)\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


def parse_duration(model: str, setting: str, value: Any, default_s: int) -> int:
    """Parse a duration and return seconds.

    >>> parse_duration("orders", "tombstone_retention", "2 days", 0)
    172800

    :raises ConfigError: the value is neither a number of seconds nor a number with a unit.
    """
    if value is None:
        return default_s
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(
            f"{setting} is {value!r}, which is not a duration",
            where=model,
            fix=f"for example {setting}='7 days' (seconds, minutes, hours, days, weeks)",
        )
    return int(found.group(1)) * _SECONDS[found.group(2).lower()]
