"""Lengths of time in a config."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.store.duration import parse_duration


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 5),
        (0, 0),
        (90, 90),
        ("1 second", 1),
        ("2 Minutes", 120),
        ("3hours", 10800),
        (" 1 week ", 604_800),
    ],
)
def test_a_length_of_time_is_read_as_seconds(value: Any, seconds: int) -> None:
    assert parse_duration("orders", "tombstone_retention", value, 5) == seconds


@pytest.mark.parametrize("value", ["soon", "-1 day", -1, True, 1.5, "1 month", ""])
def test_what_is_none_is_an_error(value: Any) -> None:
    with pytest.raises(ConfigError, match="not a duration"):
        parse_duration("orders", "tombstone_retention", value, 5)
