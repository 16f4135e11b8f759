"""Values in the log of MariaDB as texts, which are those that the SQL of ``MariaDialect`` gives. Pure."""

from __future__ import annotations

import ipaddress
import itertools
import struct
import uuid
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

_EPOCH, _SECOND = datetime(1970, 1, 1), 1_000_000
_YEAR_ZERO = 1900
"""What the client returns for the year 0000. The type has no other year before 1901."""
_MAPPED = 0xFFFF
"""Before an address of IPv4."""
NOT_A_DATE = "not a date"
"""The text of a value such as ``2026-00-00``, which no type of Spark has."""


class LoggedColumn(NamedTuple):
    """A column of a table in the log.

    :param length: in bytes, of a binary column with values of one length; 0 for others.
    :param digits: of the fraction of a time.
    :param is_instant: whether its values are points in time.
    :param is_year: whether its type is ``YEAR``.
    :param is_bits: whether its type is ``BIT``.
    :param labels: of a ``SET``, in their order.
    :param declared: the type, where the log has the same bytes for several: ``uuid``, ``inet6`` or ``inet4``.
    """

    name: str
    length: int = 0
    digits: int = 0
    is_instant: bool = False
    is_year: bool = False
    is_bits: bool = False
    labels: tuple[str, ...] = ()
    declared: str = ""


def text_of(value: Any, column: LoggedColumn) -> str:
    """The text of a value that is not NULL.

    >>> text_of(timedelta(hours=-1, milliseconds=-500), LoggedColumn("t", digits=1))
    '-01:00:00.5'
    >>> text_of({"c", "a"}, LoggedColumn("s", labels=("a", "b", "c")))
    'a,c'
    >>> text_of(b"y", LoggedColumn("b", length=2))
    '7900'
    """
    if column.length and value == "":  # what the client returns for no bytes
        value = b""
    match value:
        case bytes():
            return _of_bytes(value.ljust(column.length, b"\0"), column)
        case Decimal():
            return format(value, "f")
        case datetime():
            # The log has the number 0 for an instant without a date.
            if column.is_instant and value - _EPOCH < timedelta(seconds=1):
                return NOT_A_DATE
            return value.isoformat(sep=" ") + ("+00:00" if column.is_instant else "")
        case date():
            return value.isoformat()
        case timedelta():
            return _time(value, column.digits)
        case set():
            return ",".join(label for label in column.labels if label in value)
        case str() if column.is_bits:
            return str(int(value, 2))
        case int() if column.is_year and value == _YEAR_ZERO:
            return "0"
    return str(value)


def _of_bytes(value: bytes, column: LoggedColumn) -> str:
    if column.declared == "uuid":
        return str(uuid.UUID(bytes=value))
    if column.declared == "inet6":
        return _inet6(value)
    if column.declared == "inet4":
        return str(ipaddress.IPv4Address(value))
    return value.hex()


def _inet6(value: bytes) -> str:
    """An address as MariaDB writes it, which is not always as Python does."""
    groups = struct.unpack(">8H", value)
    runs = [len(list(itertools.takewhile(lambda one: one == 0, groups[at:]))) for at in range(8)]
    longest = max(runs)
    at = runs.index(longest)
    has_ipv4 = at == 0 and (longest == 6 or (longest == 5 and groups[5] == _MAPPED))
    written = [format(one, "x") for one in groups]
    if has_ipv4:
        written[6:] = [str(ipaddress.IPv4Address(value[12:]))]
    if not longest:
        return ":".join(written)
    return "::".join(":".join(part) for part in (written[:at], written[at + longest :]))


def _time(value: timedelta, digits: int) -> str:
    """``-838:59:59.000000``, with the digits of the column."""
    micros = abs(value) // timedelta(microseconds=1)
    seconds, fraction = divmod(micros, _SECOND)
    sign = "-" if value < timedelta(0) else ""
    clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}.{fraction:06}"[: len(clock) + 1 + digits] if digits else clock


__all__ = ["NOT_A_DATE", "LoggedColumn", "text_of"]
