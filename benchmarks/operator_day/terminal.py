"""A command as a person sees it: run on a terminal of its own, and drawn as SVG."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 132
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_CONTROL = re.compile(r"\x1b\[(\?25[lh]|\d*A|2K)|\r|\n")


def type_in(*arguments: str, folder: Path, until: Callable[[str], bool] | None = None) -> str:
    """What stands on the terminal after ``dbt-arctic ARGUMENTS``; with ``until``, at the moment that it says,
    while the command goes on to its end.
    """
    command = [str(Path(sys.executable).with_name("dbt-arctic")), *arguments]
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=there, stdout=there, stderr=there, close_fds=True
    )
    os.close(there)
    seen, wanted = "", ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two pieces
    while True:
        try:
            piece = os.read(here, 65536)
        except OSError:  # the terminal closes with its last program
            break
        if not piece:
            break
        seen += decoder.decode(piece)
        if until is not None and not wanted and until(screen(seen)):
            wanted = screen(seen)
    os.close(here)
    if process.wait() not in (0, 1):
        raise RuntimeError(f"dbt-arctic {' '.join(arguments)} failed:\n{screen(seen)}")
    return wanted or screen(seen)


def screen(stream: str) -> str:
    """What a terminal shows after it was sent this: colours stay, what was written over is gone."""
    lines, row, at = [""], 0, 0
    for control in [*_CONTROL.finditer(stream), None]:
        end = len(stream) if control is None else control.start()
        if end > at:
            lines[row] += stream[at:end]
        if control is None:
            break
        at, sign = control.end(), control.group()
        if sign == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        elif sign.endswith("2K"):
            lines[row] = ""
        elif sign.endswith("A"):
            row = max(0, row - int(sign[2:-1] or 1))
    return "\n".join(lines).rstrip("\n")


def picture(file: Path, typed: str, shown: str) -> None:
    """The terminal with a command and what it printed, as an SVG that loads nothing."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), (typed, "bold")), soft_wrap=True)
    console.print(Text.from_ansi(shown), soft_wrap=True)
    console.print()  # or the foot of the last line is cut off
    template = _FONTS.sub("", CONSOLE_SVG_FORMAT)
    file.write_text(console.export_svg(title="", theme=MONOKAI, code_format=template), encoding="utf-8")
