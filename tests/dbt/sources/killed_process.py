"""A ``dbt`` of its own that is ended by SIGKILL at one of its statements, Spark included.

Run as ``python -m tests.dbt.sources.killed_process AT before|after WORDS..``. It is the leader of a process
group, and kills the group: nothing of it can clean up.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from dbt.cli.main import dbtRunner

from dbt_arctic.engine.session import SessionCursor
from tests.dbt.keyed.conftest import Shop

ROOT = Path(__file__).parents[3]


class Ended(NamedTuple):
    """How the process ended.

    :param messages: by the name of a model, the error of its run, or an empty string if it succeeded. Empty
        if the process was killed.
    """

    is_killed: bool
    messages: dict[str, str]


def run_and_kill(shop: Shop, words: list[str], at: int, *, after: bool) -> Ended:
    """Run dbt in a process that is killed before or right after a statement, if it gets that far.

    :raises RuntimeError: it ended in another way without a result.
    """
    results = shop.folder / "target" / "run_results.json"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", __name__, str(at), "after" if after else "before", *words]
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    child = subprocess.run(
        [*command, *folders, "--quiet", "--no-use-colors"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    if child.returncode == -signal.SIGKILL:
        return Ended(True, {})
    if not results.exists():
        raise RuntimeError(f"the process ended with {child.returncode}: {child.stdout}{child.stderr}")
    found = json.loads(results.read_text(encoding="utf-8"))["results"]
    return Ended(
        False,
        {
            one["unique_id"].split(".")[2]: "" if one["status"] == "success" else str(one["message"])
            for one in found
        },
    )


def is_built_here(said: str) -> bool:
    """Whether an error of the other process names a build of this one, which was cut off but is not dead."""
    return f"is being built by process {os.getpid()} " in said


def main(words: list[str]) -> int:
    at, after = int(words[0]), words[1] == "after"
    execute = SessionCursor.execute
    count = 0

    def counted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
        nonlocal count
        is_last = count == at
        count += 1
        if is_last and not after:
            os.killpg(0, signal.SIGKILL)
        execute(cursor, sql, bindings)
        if is_last:
            os.killpg(0, signal.SIGKILL)

    with mock.patch.object(SessionCursor, "execute", counted):
        return 0 if dbtRunner().invoke(words[2:]).success else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
