"""Which jars are missing, and how they are downloaded."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from dbt_arctic.engine.jars import cache_folder, fetching, missing_jars


def test_a_jar_in_the_cache_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "org.xerial_sqlite-jdbc-3.50.3.0.jar").touch()
    conf = {"spark.jars.ivy": str(tmp_path), "spark.jars.packages": "org.xerial:sqlite-jdbc:3.50.3.0,a.b:c:1"}
    assert missing_jars(conf) == ["a.b:c:1"]


@pytest.mark.skipif(sys.platform == "win32", reason="Java asks Windows for the folder")
def test_the_cache_is_where_java_looks_for_it_whatever_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java takes ``user.home`` from the account, and not from HOME, which containers often set."""
    before = cache_folder({})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder({}) == before
    assert cache_folder({"spark.jars.ivy": "~/jars"}) == tmp_path / "jars"


def test_no_packages_need_no_lock(tmp_path: Path) -> None:
    with fetching({"spark.jars.ivy": str(tmp_path)}):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")
def test_two_that_fetch_do_so_one_after_the_other(tmp_path: Path) -> None:
    conf = {"spark.jars.ivy": str(tmp_path), "spark.jars.packages": "a.b:c:1"}
    entered = threading.Event()

    def second() -> None:
        with fetching(conf):
            entered.set()

    other = threading.Thread(target=second)
    with fetching(conf):
        other.start()
        assert not entered.wait(0.2)
    other.join()
    assert entered.is_set()
