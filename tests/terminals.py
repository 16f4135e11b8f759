"""Runs a command of ours on a pseudo-terminal of some width."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import termios
import threading
from collections.abc import Sequence

import pytest

from dbt_arctic.cli.main import main

_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(arguments: Sequence[str], columns: int) -> list[str]:
    """The lines that a command prints, without styles.

    :raises AssertionError: it ends with an error.
    """
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    read: list[bytes] = []

    def collect() -> None:
        while True:
            try:
                found = os.read(controller, 65536)
            except OSError:  # Linux: the terminal is closed
                return
            if not found:
                return
            read.append(found)

    collector = threading.Thread(target=collect)
    collector.start()
    with pytest.MonkeyPatch.context() as patch:
        with os.fdopen(terminal, "w", encoding="utf-8") as output:
            # The width is that of the process's own terminal, whatever sys.stdout is.
            patch.setattr(sys, "stdout", output)
            patch.setattr(sys, "__stdout__", output)
            for variable in ("COLUMNS", "LINES", "NO_COLOR"):
                patch.delenv(variable, raising=False)
            code = main.main(list(arguments), prog_name="dbt-arctic", standalone_mode=False)
            output.flush()
        collector.join()
    os.close(controller)
    assert code in (None, 0), (arguments, code)
    return [_STYLES.sub("", line) for line in b"".join(read).decode("utf-8").splitlines()]
