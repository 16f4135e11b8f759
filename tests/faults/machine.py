"""A machine of its own: a process with a host name and a clock, which runs commands in its project.

Run as ``python -m tests.faults.machine HOST AHEAD_S`` in the project's folder. Each line of its input is a
command as a list of words in JSON, of ``dbt`` or ``dbt-arctic``. Each line of its output is the answer:
``{"ok": .., "said": ..}``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner
from dbt.cli.main import dbtRunner

from dbt_arctic.cli.main import main


def set_clock(seconds: float) -> None:
    """Put the clock of Python ahead. That of Java stays."""
    right: Callable[[], float] = time.time
    time.time = lambda: right() + seconds


def run(words: list[str]) -> dict[str, Any]:
    if words[0] == "dbt":
        outcome = dbtRunner().invoke([*words[1:], "--quiet", "--no-use-colors"])
        results = getattr(outcome.result, "results", None) or ()
        failed = [str(one.message) for one in results if str(one.status) not in ("success", "no-op")]
        said = failed or [str(outcome.exception or "")]
        return {"ok": outcome.success, "said": "\n".join(said)}
    ended = CliRunner().invoke(main, words[1:])
    said_by_cli = ended.output + (repr(ended.exception) if ended.exception else "")
    return {"ok": ended.exit_code == 0, "said": ended.stdout if ended.exit_code == 0 else said_by_cli}


def serve(host: str, ahead_s: float) -> None:
    socket.gethostname = lambda: host
    set_clock(ahead_s)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what commands print is no answer
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))
