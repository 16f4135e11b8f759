"""How far tests go: the short form of ``make test``, or the long one of ``make test-long``.

Both have each promise. The short form has fewer repetitions: fewer seeds of what is drawn, and of a sweep
over places and ways each place once. What only repeats with more of the real parts what a quicker test proves
is marked ``long``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

LONG = os.environ.get("ARCTIC_TESTS") == "long"


def extent(short: T, long: T) -> T:
    """What the form has that runs."""
    return long if LONG else short


def first(number: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a parameter, of which the short form has the first ones."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.long] * (place >= number)
        )
        for place, case in enumerate(cases)
    ]


def in_turn(*ways: str) -> pytest.MarkDecorator:
    """Parameter ``ways`` of a sweep over places, of which the short form has one, with the ways in turn."""
    together = pytest.param(ways, id="in turn")
    return pytest.mark.parametrize("ways", extent([together], [pytest.param((way,), id=way) for way in ways]))


def leave_out_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the short form, what is marked ``long`` is not collected, and counted as deselected."""
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out and not LONG:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
