"""The checks of ``dbt debug``: each result is shown before the next check begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from dbt_arctic.engine import doctor
from dbt_arctic.engine.capabilities import SCHEMA_PREFIX, Capabilities
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


def test_the_check_of_a_write_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried, other = tmp_path / f"{SCHEMA_PREFIX}1" / "probed" / "metadata", tmp_path / "dev" / "orders"
    for folder in (tried, other):
        folder.mkdir(parents=True)
    (tried / "00005.metadata.json").touch()
    for schema in (f"{SCHEMA_PREFIX}1", "dev"):
        found = Capabilities("lake", "1.12.0", (), schema)
        monkeypatch.setattr(doctor, "probe", lambda *_, found=found: found)
        steps = dict(doctor._of_the_catalog(Mock(), "lake", "sqlite", str(tmp_path)))
        assert steps["write"]()[0].ok
    assert [path.name for path in tmp_path.iterdir()] == ["dev"]
    assert other.is_dir()


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
