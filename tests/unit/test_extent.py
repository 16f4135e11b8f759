"""The short form of the tests leaves out what is marked ``long``, and says how many; the long one has all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import extent


def collected(monkeypatch: pytest.MonkeyPatch, long: bool) -> tuple[list[str], list[str]]:
    """Which of three tests run, and which are reported as left out."""
    left_out: list[Any] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    config: Any = SimpleNamespace(hook=hook)
    cases = extent.first(1, ["a", ("b",), "c"])
    items: Any = [
        SimpleNamespace(
            name=case.values[0],
            get_closest_marker=lambda name, case=case: next((m for m in case.marks if m.name == name), None),
        )
        for case in cases
    ]
    monkeypatch.setattr(extent, "LONG", long)
    extent.leave_out_long(config, items)
    return [item.name for item in items], [item.name for item in left_out]


def test_the_short_form_reports_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collected(monkeypatch, long=False) == (["a"], ["b", "c"])


def test_the_long_form_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert collected(monkeypatch, long=True) == (["a", "b", "c"], [])


def test_a_number_is_that_of_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extent, "LONG", True)
    assert extent.extent(1, 2) == 2
    monkeypatch.setattr(extent, "LONG", False)
    assert extent.extent(1, 2) == 1


@pytest.mark.parametrize(("long", "sweeps"), [(False, [("a", "b")]), (True, [("a",), ("b",)])])
def test_a_sweep_has_its_ways_in_turn_or_one_by_one(
    monkeypatch: pytest.MonkeyPatch, long: bool, sweeps: list[tuple[str, ...]]
) -> None:
    monkeypatch.setattr(extent, "LONG", long)
    name, given = extent.in_turn("a", "b").mark.args
    assert name == "ways"
    assert [case.values[0] for case in given] == sweeps
