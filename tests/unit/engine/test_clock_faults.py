"""A commit that Iceberg refuses because a clock is slow is explained as that."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.faults import Reaction, classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ClockBehind, StatementError

REFUSED = "java.lang.IllegalArgumentException"


@pytest.mark.parametrize(
    ("message", "behind"),
    [
        ("[BUG] Expected sorted snapshot log entries.", "more than a minute"),
        ("Invalid update timestamp 1795986531446: before last snapshot log entry at 1795987127554", "596 s"),
        ("Invalid snapshot timestamp 1000: before last snapshot timestamp 3601000", "3,600 s"),
    ],
)
def test_a_slow_clock_is_the_reason(message: str, behind: str) -> None:
    fault = classify([Cause("SparkException", "failed"), Cause(REFUSED, message)], "INSERT INTO t VALUES (1)")
    assert type(fault.error) is ClockBehind
    assert fault.reaction is Reaction.RAISE, "no attempt within seconds can succeed"
    assert behind in str(fault.error)
    assert fault.error.where == "INSERT INTO t VALUES (1)"


def test_another_refused_argument_is_not() -> None:
    fault = classify([Cause(REFUSED, "Invalid update")], "INSERT INTO t VALUES (1)")
    assert type(fault.error) is StatementError
