"""How often ``dbt_arctic.read`` loads the profile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter import read
from dbt_arctic.keyed.names import Name


class Session:
    """A target without a catalog: ``catalog`` is the number of loads before it."""

    def __init__(self, target: int, _: str) -> None:
        self.catalog = target

    def name(self, text: str) -> Name:
        return Name("lake", "dev", text)


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders whose profiles were loaded."""
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "dbt_project.yml").write_text("name: shop")
        (folder / "profiles.yml").write_text("shop: {}")
        for name in ("dbt_project.yml", "profiles.yml"):
            os.utime(folder / name, ns=(1, 1))
    loads: list[Path] = []
    busy: list[bool] = []

    def load(project: Path, profiles: Path, _: str | None) -> int:
        assert not busy, "two threads change dbt's global settings"
        busy.append(True)
        time.sleep(0.05)
        busy.clear()
        loads.append(profiles)
        return len(loads)

    monkeypatch.setattr(read, "load_target", load)
    monkeypatch.setattr(read, "TargetSession", Session)
    monkeypatch.setattr(read, "read_table", lambda catalog, *_: catalog)
    monkeypatch.chdir(tmp_path)
    read._session.cache_clear()
    return loads


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, None),
        ("release", "release"),
        (42, "42"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 12), "2026-01-31T12:00:00"),
    ],
)
def test_a_version_of_any_type_is_text(
    loaded: list[Path], monkeypatch: pytest.MonkeyPatch, at: Any, text: str | None
) -> None:
    monkeypatch.setattr(read, "read_table", lambda *arguments: arguments[4])
    assert read.read_rows("orders", at=at) == text


def test_threads_load_the_profile_one_after_the_other(loaded: list[Path]) -> None:
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(read.read_rows, "orders", target=target) for target in ("a", "b") * 4]
        assert {call.result() for call in calls} == {1, 2}
    assert len(loaded) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda folder, patch: os.utime(folder / "profiles.yml", ns=(2, 2)),
        lambda folder, patch: os.utime(folder / "dbt_project.yml", ns=(2, 2)),
        lambda folder, patch: patch.setenv("SHOP_PASSWORD", "other"),
        lambda folder, patch: patch.chdir(folder / "other"),
    ],
    ids=["profile", "project", "environment", "folder"],
)
def test_a_profile_is_loaded_again_after_a_change(
    loaded: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], Any],
) -> None:
    def call() -> Any:
        return read.read_rows("orders", project_dir=".", profiles_dir=".")

    assert (call(), call()) == (1, 1)
    change(tmp_path, monkeypatch)
    assert (call(), call()) == (2, 2)
    assert loaded[1] == Path.cwd()
