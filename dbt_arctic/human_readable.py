"""Numbers, sizes and durations as text, the same in logs, commands and reports."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number with its noun, in the plural if needed.

    >>> counted(1, "file"), counted(2000, "file"), counted(0, "query"), counted(2, "refresh")
    ('1 file', '2,000 files', '0 queries', '2 refreshes')
    """
    if number == 1:
        return f"1 {what}"
    if what.endswith(("s", "x", "sh", "ch")):
        return f"{number:,} {what}es"
    if what.endswith("y") and what[-2] not in "aeiou":
        return f"{number:,} {what[:-1]}ies"
    return f"{number:,} {what}s"


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


_DURATIONS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def shown_seconds(seconds: float) -> str:
    """A duration with one unit, or with two if the first is less than ten of its units.

    >>> shown_seconds(7), shown_seconds(59.9), shown_seconds(90), shown_seconds(3599.6), shown_seconds(5400)
    ('7 s', '1 min', '1 min 30 s', '1 h', '1 h 30 min')
    >>> shown_seconds(754), shown_seconds(7200), shown_seconds(200_000), shown_seconds(1_000_000)
    ('13 min', '2 h', '2 d 8 h', '12 d')
    """
    for place, (size, unit) in enumerate(_DURATIONS[:-1]):
        smaller, name = _DURATIONS[place + 1]
        # The number of smaller units decides: 59.9 s are a minute, and 59 min 59 s an hour.
        rounded = round(seconds / smaller)
        if rounded * smaller < size:
            continue
        if rounded * smaller >= 10 * size:
            return f"{round(seconds / size)} {unit}"
        whole, rest = divmod(rounded, size // smaller)
        return f"{whole} {unit} {rest} {name}" if rest else f"{whole} {unit}"
    return f"{seconds:.0f} s"


def shown_gain(seconds: float) -> str:
    """The seconds that something saves, with two digits if they are few.

    >>> shown_gain(0), shown_gain(0.00005), shown_gain(0.653), shown_gain(2.04), shown_gain(125)
    ('0 s', '< 0.01 s', '0.65 s', '2.0 s', '2 min 5 s')
    """
    if 0 < seconds < 0.005:
        return "< 0.01 s"
    if not seconds or seconds >= 10:
        return shown_seconds(seconds)
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"


__all__ = ["counted", "shown_bytes", "shown_gain", "shown_seconds"]
