"""Explains why Iceberg refuses the commit of a machine with a slow clock. Pure functions over the causes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ClockBehind

_UNSORTED = re.compile(r"Expected sorted (snapshot|metadata) log entries")
_TOO_EARLY = re.compile(
    r"Invalid (?:update|snapshot) timestamp (\d+): "
    r"before last (?:(?:snapshot|metadata) log entry at|snapshot timestamp) (\d+)"
)


def clock_error(causes: Sequence[Cause], where: str) -> ClockBehind | None:
    """The error for a commit that would be more than a minute older than the last one."""
    for cause in causes:
        times = _TOO_EARLY.search(cause.message)
        if times is None and not _UNSORTED.search(cause.message):
            continue
        behind = f"by {(int(times[2]) - int(times[1])) / 1000:,.0f} s" if times else "by more than a minute"
        return ClockBehind(
            f"The clock of this machine is behind the table's last commit {behind}.",
            where=where,
            why="Iceberg refuses a commit that is more than a minute older than the last one. The clock of "
            "Spark's machine is slow, or that of the last writer was fast.",
            fix="synchronize the clocks of all machines that write (NTP), then run again. Nothing was "
            "committed. If the clock of the other machine was fast, wait until its time has passed",
        )
    return None
