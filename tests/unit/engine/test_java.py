"""Finding a Java, with homes made of shell scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dbt_arctic.engine import java
from dbt_arctic.engine.java import find_java, how_to_install, major_version, parse_version
from dbt_arctic.errors import JavaError, ProfileError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the homes are shell scripts")


def java_home(folder: Path, version: str, modules: str | None = None) -> Path:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\necho 'Temurin {version}' >&2\n")
    program.chmod(0o755)
    if modules is not None:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture(autouse=True)
def no_usual_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_usual_homes", lambda environment: [])


def test_the_profile_comes_first(tmp_path: Path) -> None:
    mine, theirs = java_home(tmp_path / "mine", "21.0.2"), java_home(tmp_path / "theirs", "17.0.9")
    found = find_java(str(mine), {"JAVA_HOME": str(theirs)})
    assert (found.home, found.version, found.major, found.vendor) == (
        str(mine),
        "21.0.2",
        21,
        "Temurin 21.0.2",
    )


def test_an_unfit_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    old, fit = java_home(tmp_path / "old", "1.8.0_402"), java_home(tmp_path / "fit", "17.0.9")
    found = find_java(environ={"JAVA_HOME": str(old), "PATH": str(fit / "bin")})
    assert found.home == str(fit)


def test_the_usual_folders_are_the_last_to_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = java_home(tmp_path / "usual", "17.0.9")
    monkeypatch.setattr(java, "_usual_homes", lambda environment: [usual])
    assert find_java(environ={"PATH": ""}).home == str(usual)


def test_nothing_fit_names_what_was_found_and_what_to_install(tmp_path: Path) -> None:
    old, new = java_home(tmp_path / "old", "11.0.1"), java_home(tmp_path / "new", "25")
    with pytest.raises(JavaError) as caught:
        find_java(environ={"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert f"{old} (JAVA_HOME): it is Java 11.0.1" in caught.value.where
    assert f"{new} (PATH): it is Java 25" in caught.value.where
    assert how_to_install(sys.platform) in caught.value.fix


def test_a_home_without_java_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        ProfileError, match=r"(?s)AR-101 java_home is not .* Java 17 or 21.*there is no bin/java"
    ):
        find_java(str(tmp_path))


def test_a_java_without_the_vector_module_is_not_taken(tmp_path: Path) -> None:
    small = java_home(tmp_path / "small", "17.0.9", modules="java.base java.sql")
    with pytest.raises(ProfileError, match=r"jdk\.incubator\.vector"):
        find_java(str(small))


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("21-ea", 21), ("9", 9), ("?", 0)]
)
def test_major_versions(version: str, major: int) -> None:
    assert major_version(version) == major


def test_what_is_not_java_has_no_version() -> None:
    assert parse_version("command not found") is None
