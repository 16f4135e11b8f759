"""The position in a statement at which Spark reports an error. Pure functions over texts."""

from __future__ import annotations

import re
from typing import NamedTuple

_POSITION = re.compile(r"; line (\d+) pos \d+|\(line (\d+), pos \d+\)|== SQL \(line (\d+), position \d+\) ==")
_STATEMENT = re.compile(r"\s*== SQL (?:\(line \d+, position \d+\) )?==.*\Z", re.DOTALL)
_HINTS_WITHOUT_USE = re.compile(
    r"\n\s*(?:If you did not qualify the name with a schema|To tolerate the error on drop use)[^\n]*?"
    r"(?=(?: SQLSTATE)|\n|\Z)"
)
"""What Spark adds to a missing name. Names of this adapter are complete, and nothing is dropped."""


class Position(NamedTuple):
    """A line of a statement, counted from 1."""

    line: int
    text: str
    """The line without surrounding whitespace."""


def position(message: str, statement: str) -> Position | None:
    """The position that a message names, if the statement has that line.

    >>> position("[X] no column. SQLSTATE: 42703; line 2 pos 7", "select a,\\n  b\\nfrom t")
    Position(line=2, text='b')
    """
    found = _POSITION.search(message)
    if found is None:
        return None
    line, lines = int(found[1] or found[2] or found[3]), statement.split("\n")
    if not 0 < line <= len(lines) or not lines[line - 1].strip():
        return None
    return Position(line, lines[line - 1].strip())


def without_position(message: str) -> str:
    """A message without the position and without a copy of the statement.

    >>> without_position("[X] no column. SQLSTATE: 42703; line 2 pos 7")
    '[X] no column. SQLSTATE: 42703'
    """
    return _POSITION.sub("", _STATEMENT.sub("", message)).strip()


def without_useless_hints(message: str) -> str:
    """A message without the advice that does not apply to complete names."""
    return _HINTS_WITHOUT_USE.sub("", message).replace("  SQLSTATE: ", " SQLSTATE: ")


__all__ = ["Position", "position", "without_position", "without_useless_hints"]
