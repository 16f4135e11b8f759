"""The checks of ``dbt debug``: each result is shown before the next check begins."""

from __future__ import annotations

from collections.abc import Callable

from dbt_arctic.engine.doctor import Check, _until_one_fails
from dbt_arctic.errors import DependencyError, ProfileError


def test_each_result_is_known_before_the_next_check_begins() -> None:
    ran: list[str] = []

    def step(name: str) -> Callable[[], list[Check]]:
        def run() -> list[Check]:
            ran.append(name)
            return [Check(name, True, "")]

        return run

    results = _until_one_fails([("java", step("java")), ("spark", step("spark"))])
    assert ran == []
    assert next(results).name == "java"
    assert ran == ["java"]
    assert [one.name for one in results] == ["spark"]


def test_the_first_failure_is_the_last_result() -> None:
    def fails(error: Exception) -> Callable[[], list[Check]]:
        def run() -> list[Check]:
            raise error

        return run

    never = fails(AssertionError("it depends on the one before"))
    broken = ProfileError("it is wrong", where="here", fix="do that")
    assert list(_until_one_fails([("spark", fails(broken)), ("catalog", never)])) == [
        Check("spark", False, "it is wrong here", "do that")
    ]
    (jars,) = _until_one_fails([("spark", fails(DependencyError("a jar is missing")))])
    assert (jars.name, jars.ok) == ("jars", False)
