"""Reports that Spark starts, because this takes seconds, and minutes if jars have to be downloaded first.

The engine does not know their reader: dbt writes them to its log, ``dbt-arctic`` to stderr.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dbt_arctic.engine.jars import cache_folder, missing_jars

Report = Callable[[str], None]

_EVERY_S = 10.0
_WORTH_REPORTING_S = 5.0

_report: Report | None = None


def report_to(report: Report) -> None:
    """Send the reports of this process to a function."""
    global _report
    _report = report


def is_reported() -> bool:
    """Whether the reports are sent anywhere."""
    return _report is not None


@contextmanager
def starting(conf: Mapping[str, str], java: str) -> Iterator[None]:
    """Report the start of a Spark, which takes place inside the ``with`` block, and its progress.

    :param conf: the complete conf of the Spark, with ``spark.jars.packages``.
    :param java: a description of the Java.
    """
    report = _report or (lambda text: None)
    missing = missing_jars(conf)
    before = _cached_bytes(conf, missing)
    what = f"starting Spark with {java}"
    if missing:
        names = ", ".join(coordinates.split(":")[1] for coordinates in missing)
        report(f"downloading {names} (once, to {cache_folder(conf)}), then {what}")
    else:
        report(what)
    ended = threading.Event()
    begun = time.monotonic()

    def repeat() -> None:
        while not ended.wait(_EVERY_S):
            seconds = f"{time.monotonic() - begun:.0f} s"
            left = missing_jars(conf) if missing else []
            if left:
                loaded = (_cached_bytes(conf, missing) - before) / 1_000_000
                report(f"still downloading: {loaded:.0f} MB in {seconds}")
            else:
                report(f"still starting Spark: {seconds}")

    thread = threading.Thread(target=repeat, name="dbt-arctic-start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    taken = time.monotonic() - begun
    if taken >= _WORTH_REPORTING_S:
        report(f"Spark has started in {taken:.0f} s")


def _cached_bytes(conf: Mapping[str, str], jars: list[str]) -> int:
    """The size of the files that Ivy has of some jars, also while it downloads them."""
    cache = cache_folder(conf) / "cache"
    total = 0
    for coordinates in jars:
        group, name, *_ = coordinates.split(":")
        total += sum(_size(file) for file in (cache / group / name).glob("jars/*"))
    return total


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # Ivy has renamed it in the meantime
        return 0
