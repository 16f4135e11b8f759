"""One process at a time fetches jars: Ivy damages its cache when two fill it at once. Knows only files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_DEFAULT_CACHE = "~/.ivy2.5.2"


def cache_folder(conf: Mapping[str, str]) -> Path:
    """Where Spark's launcher keeps what it fetches."""
    return Path(conf.get("spark.jars.ivy", _DEFAULT_CACHE)).expanduser()


def missing_jars(conf: Mapping[str, str]) -> list[str]:
    """The coordinates of ``spark.jars.packages`` that the cache does not hold yet."""
    jars = cache_folder(conf) / "jars"
    wanted = [part.strip() for part in conf.get("spark.jars.packages", "").split(",") if part.strip()]
    return [coordinates for coordinates in wanted if not (jars / _file_name(coordinates)).exists()]


@contextlib.contextmanager
def fetching(conf: Mapping[str, str]) -> Iterator[None]:
    """Hold the cache for the block, if something has to be fetched; others wait, and find it fetched."""
    if not missing_jars(conf) or sys.platform == "win32":
        # Windows has no flock; two first runs at once are left to Ivy there.
        yield
        return
    import fcntl

    folder = cache_folder(conf)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "dbt-arctic.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _file_name(coordinates: str) -> str:
    return coordinates.replace(":", "_", 1).replace(":", "-") + ".jar"
