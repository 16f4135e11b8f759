"""Sizes and durations as text, the same in logs, commands and reports."""

from __future__ import annotations


def shown_bytes(size: float) -> str:
    """A size with its unit, of which each is 1,024 times the one before, as in settings such as ``64MB``.

    >>> shown_bytes(900), shown_bytes(52_345), shown_bytes(15_000_000), shown_bytes(512 * 1024**2)
    ('900 B', '51.1 kB', '14.3 MB', '512.0 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024:
            return _with_unit(size, unit)
        size /= 1024
    return _with_unit(size, "TB")


def _with_unit(size: float, unit: str) -> str:
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def shown_seconds(seconds: float) -> str:
    """A duration with one unit.

    >>> shown_seconds(7), shown_seconds(125), shown_seconds(7200), shown_seconds(200000)
    ('7 s', '2 min', '2 h', '2 d')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


__all__ = ["shown_bytes", "shown_seconds"]
