"""The event times of random microbatch models, and the interval that a command names.

With random numbers of its own, so that whatever else a seed draws stays the same.
"""

from __future__ import annotations

import datetime as dt
import functools
import random
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from tests.dbt.random.project import DAY_ZERO

SIZES = ("day", "day", "day", "hour", "month")
TYPES = ("date", "timestamp", "timestamp_ntz")


@dataclass
class EventTimes:
    """What the microbatch models of a case draw.

    :param middle: the instant in UTC around which times are, such as a change of the session's zone.
    :param by_hour: whether commands name some hours, as one of the models has a batch for each.
    """

    chance: random.Random
    middle: dt.datetime
    by_hour: bool = False

    def settings(self) -> dict[str, Any]:
        """Those of a model."""
        size = self.chance.choice(SIZES)
        self.by_hour = self.by_hour or size == "hour"
        return {"batch_size": size}

    def interval(self, first: int, count: int) -> tuple[str, str]:
        """An interval of some days, or of as many hours: ``first`` is 0 to 2, and the middle is at 1."""
        if self.by_hour:
            start = self.middle.replace(minute=0) + dt.timedelta(hours=first - 1)
            return str(start), str(start + dt.timedelta(hours=count))
        start = self.middle.replace(hour=0, minute=0) + dt.timedelta(days=first - 1)
        return str(start), str(start + dt.timedelta(days=count))

    def other_type(self, type_: str) -> str:
        """The type that the event time of a query is of next."""
        return self.chance.choice(TYPES) if self.chance.random() < 0.5 else type_

    def value(self, type_: str) -> Any:
        if self.chance.random() < 0.06:
            return None
        if self.by_hour and self.chance.random() < 0.7:
            at = self.middle.replace(minute=0) + dt.timedelta(hours=self.chance.randint(-3, 3))
            at += dt.timedelta(seconds=self.chance.choice((0, 1, 1800, 3599)))
        else:
            at = self.middle.replace(hour=0, minute=0) + dt.timedelta(days=self.chance.randint(-2, 3))
            at += dt.timedelta(seconds=self.chance.choice((0, 1, 43200, 86399)))
        return at.date() if type_ == "date" else at


def draw_times(seed: int, zone: str) -> EventTimes:
    """Some are around a day of 23 or 25 hours."""
    chance = random.Random(f"event times {seed}")
    changes = changes_of(zone)
    if changes and chance.random() < 0.6:
        return EventTimes(chance, chance.choice(changes))
    return EventTimes(chance, dt.datetime.fromisoformat(DAY_ZERO) + dt.timedelta(days=1))


@functools.cache
def changes_of(zone: str) -> list[dt.datetime]:
    """The instants of 2024, in UTC, at which summer time begins or ends."""
    half = dt.timedelta(minutes=30)
    found, at = [], dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    while at.year == 2024:
        if at.astimezone(ZoneInfo(zone)).utcoffset() != (at - half).astimezone(ZoneInfo(zone)).utcoffset():
            found.append(at.replace(tzinfo=None))
        at += half
    return found
