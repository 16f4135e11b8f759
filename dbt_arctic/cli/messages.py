"""Messages on a terminal: wrapped at its width, but never inside a command, which a reader copies.

In a pipe, a message is printed as it is. Pure functions over strings.
"""

from __future__ import annotations

import re

from rich.cells import cell_len

from dbt_arctic.errors import ArcticError

_DBT_COMMANDS = (
    *("build", "clone", "compile", "debug", "deps", "docs", "list", "ls", "parse", "retry", "run"),
    *("run-operation", "seed", "show", "snapshot", "source", "test"),
)
_PROGRAMS = (
    rf"dbt (?:{'|'.join(_DBT_COMMANDS)})(?![\w-])",
    r"dbt-arctic [a-z]",
    r"(?:pip|uv|python -m) [a-z]",
    r"(?:ALTER|CALL|DROP|SELECT) ",
)
_COMMAND = re.compile(
    r"`[^`\n]+`"
    rf"|(?<![^\s('\"])(?:{'|'.join(_PROGRAMS)})"
    r"(?:\"[^\"\n]*\"|'[^'\n]*'|[.,;)](?![\s]|$)|[^.,;)\"'\n])*"
)
"""Text in backticks, or from the name of a program to the end of the clause."""
_SPACE = "\0"


def wrap_message(first: str, text: str, width: int) -> list[str]:
    """A text in lines of at most ``width`` cells after the label of its first line. Others are indented.

    A command, a path and a name are in one piece, even if they are wider. Of a text of several lines, only
    the first one is wrapped: the others have their own layout, such as that of SQL.

    >>> wrap_message("fix: ", "rebuild it: dbt run --select orders", 24)
    ['fix: rebuild it:', '     dbt run --select orders']
    """
    text, *others = text.split("\n")
    marked = _COMMAND.sub(lambda found: found[0].rstrip().replace(" ", _SPACE) + _end(found[0]), text)
    found, current = [], ""
    for unit in (unit.replace(_SPACE, " ") for unit in marked.split(" ")):
        longer = f"{current} {unit}" if current else unit
        if current and cell_len(first) + cell_len(longer) > width:
            found.append(current)
            longer = unit
        current = longer
    lines = [*found, current]
    return [(" " * cell_len(first) if at else first) + line for at, line in enumerate(lines)] + others


def _end(command: str) -> str:
    """The spaces after a command."""
    return command[len(command.rstrip()) :]


def wrap_error(error: ArcticError, width: int) -> str:
    """The text of an error, as ``error.render``, at most ``width`` cells wide."""
    lines = wrap_message(f"{error.code} ", error.what, width)
    lines += [f"  where: {error.where}"] if error.where else []
    for label, text in (("  why:   ", error.why), ("  fix:   ", error.fix)):
        lines += wrap_message(label, text, width) if text else []
    return "\n".join(lines)


__all__ = ["wrap_error", "wrap_message"]
