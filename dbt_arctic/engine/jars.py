"""Serializes downloads of jars between processes.

Ivy damages its cache if two processes fill it concurrently.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

if sys.platform != "win32":
    import pwd

_DEFAULT_CACHE = ".ivy2.5.2"


def cache_folder(conf: Mapping[str, str]) -> Path:
    """The folder in which Spark's launcher stores downloaded jars."""
    chosen = conf.get("spark.jars.ivy")
    return Path(chosen).expanduser() if chosen else _user_home() / _DEFAULT_CACHE


def _user_home() -> Path:
    """Java's ``user.home``: the home of the user's account, regardless of HOME."""
    if sys.platform == "win32":
        return Path.home()
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an account, as in some containers
        return Path.home()


def missing_jars(conf: Mapping[str, str]) -> list[str]:
    """The coordinates of ``spark.jars.packages`` that are not in the cache yet."""
    jars = cache_folder(conf) / "jars"
    return [
        coordinates for coordinates in _coordinates(conf) if not (jars / _file_name(coordinates)).exists()
    ]


def cached_jars(conf: Mapping[str, str]) -> list[Path] | None:
    """The jars of ``spark.jars.packages``; ``None`` if one is missing in the cache or damaged.

    Does not include their dependencies, which only Ivy knows.
    """
    jars = [cache_folder(conf) / "jars" / _file_name(coordinates) for coordinates in _coordinates(conf)]
    return jars if all(zipfile.is_zipfile(jar) for jar in jars) else None


@contextlib.contextmanager
def fetching(conf: Mapping[str, str]) -> Iterator[None]:
    """Lock the cache during the block if something has to be downloaded.

    Others wait and then find it in the cache.
    """
    if not missing_jars(conf) or sys.platform == "win32":
        # Windows has no flock. Two concurrent first runs are left to Ivy there.
        yield
        return
    import fcntl

    folder = cache_folder(conf)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "dbt-arctic.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _coordinates(conf: Mapping[str, str]) -> list[str]:
    return [part.strip() for part in conf.get("spark.jars.packages", "").split(",") if part.strip()]


def _file_name(coordinates: str) -> str:
    return coordinates.replace(":", "_", 1).replace(":", "-") + ".jar"
