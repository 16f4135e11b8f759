"""Kills of a whole process group, Java included, and what a user does next.

A victim works on keyed tables and reports what it begins. It is killed at a random time, at one of its
statements, between a statement's commit and the report of its success, or when the catalog's file changes.
The tables are then compared with the oracle, which knows what each operation was meant to do: an operation
that reported success is there, any other is there completely or not at all. Then the same operation is run
again, and everything is compacted, pulled and verified.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dbt_arctic.engine.session import SessionEngine
from tests.faults.child import RUNS_EACH, encode
from tests.model.machine import KEYS
from tests.model.operations import Operation, perform
from tests.model.spark import embedded_world
from tests.model.story import PLAIN, Change, Different, Story

ROOT = Path(__file__).parents[2]
OPERATIONS = 12
WAYS = ("time", "before", "landed", "catalog")
COMPACTIONS = ("compact", "minor", "full", "rebucket", "trim_now", "let_go_now", "merge_files")
KINDS = (
    *("upsert",) * 4,
    *("compact",) * 3,
    *("pull",) * 2,
    *("build", "savepoint", "replace_day", "roll_back"),
    *COMPACTIONS[1:],
)
LOGGED = ("upsert", "replace_day", "roll_back")
_START_S = 180.0
_END_S = 180.0


class Victim:
    """A child in a process group of its own, and the lines that it has said."""

    def __init__(self, warehouse: Path, schema: str) -> None:
        self.schema = schema
        self.lines: list[str] = []
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by kill)
        self._said = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.child", str(warehouse), schema],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            with self._said:
                self.lines.append(line.strip())
                self._said.notify_all()
        with self._said:
            self.lines.append("closed")
            self._said.notify_all()

    def wait_for(self, beginning: str, seconds: float) -> bool:
        """Whether a line begins, or ends, like this, before the child has come to its end."""

        def came() -> bool:
            return any(
                line.startswith((beginning, "end", "closed")) or line.endswith(beginning)
                for line in self.lines
            )

        with self._said:
            if not self._said.wait_for(came, seconds):
                raise TimeoutError(f"the child never said {beginning!r}: {self.lines[-5:]}")
            return any(line.startswith(beginning) or line.endswith(beginning) for line in self.lines)

    def order(self, **order: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def kill(self) -> list[str]:
        """Kill the whole group, and return once nothing of it is left. What it had said by then."""
        if self._errors.closed:
            return self.lines  # killed already
        with_java = self._process.pid
        failed = self._process.poll() is not None and "end" not in self.lines
        with suppress(ProcessLookupError):
            os.killpg(with_java, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _END_S
        while _lives(with_java):
            if time.monotonic() > deadline:
                raise TimeoutError("the group outlives its kill")
            threading.Event().wait(0.01)
        self._reader.join(_END_S)
        self._errors.seek(0)
        told = self._errors.read()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()
        if failed:
            raise RuntimeError(f"the child failed by itself: {told[-3000:]}")
        return self.lines


def _lives(group: int) -> bool:
    """Whether any process of a group still runs. A zombie does not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            return True
    return False


@dataclass
class Kills:
    """Kills of victims that work on the tables of one schema, and the recovery after each.

    :param engine: of this process: the one that recovers.
    :param kinds: of operations, to draw from.
    """

    engine: SessionEngine
    warehouse: Path
    chance: random.Random
    sequence: bool
    kinds: Sequence[str] = KINDS
    done: int = 0
    landed: int = 0
    """How often the operation that was cut off had landed all the same."""
    ways: dict[str, int] = field(default_factory=dict)
    story: Story = field(init=False)
    _number: int = 1
    _appended: set[int] = field(init=False)
    """Runs that appended a row to the plain table."""

    def __post_init__(self) -> None:
        world = embedded_world(self.engine, self.warehouse)
        self.story = Story(world, sequence=self.sequence, thorough=10**6)
        self.story.faulty = True
        self._appended = {0}
        world.execute(f"CREATE TABLE {world.name(PLAIN).sql} USING iceberg AS SELECT 0L AS run")

    def victim(self) -> Victim:
        """One that starts now, to be given its work when another has been killed."""
        return Victim(self.warehouse, self.story.world.schema)

    def kill(self, victim: Victim, way: str) -> None:
        """Let a victim work, kill it in a way, and see what is left.

        :raises Different: something is lost or doubled.
        """
        operations = [self._draw() for _ in range(OPERATIONS)]
        # The oracle learns of commits from the log, so nothing may expire that it has not seen.
        operations.sort(key=lambda one: one.kind != "let_go_now")
        if self.story.orders.shown is None:
            operations[0] = Operation("build", batch=(Change(1, 1), Change(2, 2)))
        first = self._number
        self._number += OPERATIONS
        try:
            victim.wait_for("ready", _START_S)
            event = self.chance.randrange(40)
            waits = {"before": event & ~1, "landed": event | 1}.get(way)
            before = _changed(self.warehouse)
            victim.order(sequence=self.sequence, first=first, operations=encode(operations), wait_at=waits)
            if way == "time":
                victim.wait_for("begin", _START_S)
                threading.Event().wait(self.chance.random() * 6)
            elif way == "catalog":
                self._watch(before, 1 + self.chance.randrange(20), victim)
            else:
                victim.wait_for("waiting", _START_S)
        finally:
            lines = victim.kill()
        self.done += 1
        self.ways[way] = self.ways.get(way, 0) + 1
        self._recover(operations, first, lines)

    def _watch(self, before: int, changes: int, victim: Victim) -> None:
        """Until the catalog's file has changed some times: each commit changes it once."""
        deadline = time.monotonic() + _START_S
        while changes and not {"end", "closed"} & set(victim.lines) and time.monotonic() < deadline:
            now = _changed(self.warehouse)
            changes -= now != before
            before = now
            threading.Event().wait(0.0005)

    def _check_plain(
        self, operations: list[Operation], first: int, begun: list[int], said_done: set[int]
    ) -> None:
        """Files that were put together have each row that was there once."""
        world = self.story.world
        rows = [int(run) for (run,) in world.query(f"SELECT run FROM {world.name(PLAIN).sql}")]
        merges = {number for number in begun if operations[number - first].kind == "merge_files"}
        may_be = self._appended | {number * RUNS_EACH + 1 for number in merges}
        must_be = self._appended | {number * RUNS_EACH + 1 for number in merges & said_done}
        if len(rows) != len(set(rows)) or not must_be <= set(rows) <= may_be:
            raise Different(f"the plain table has {sorted(rows)}, and must have {sorted(must_be)}")
        self._appended = set(rows)

    def _draw(self) -> Operation:
        kind = self.chance.choice(self.kinds)
        keys = self.chance.sample(range(KEYS), self.chance.randrange(4))
        batch = tuple(
            Change(
                key,
                None if self.chance.random() < 0.3 else self.chance.randrange(1, 100),
                self.chance.randrange(3),
                self.chance.randrange(5),
            )
            for key in keys
        )
        of = self.chance.choice(["orders", "orders", "copy"])
        number = self.chance.randrange(12)
        has_rows = kind in ("upsert", "build", "replace_day")
        return Operation(kind, of, number, batch if has_rows else ())

    def _recover(self, operations: list[Operation], first: int, lines: list[str]) -> None:
        begun = [int(line.split()[1]) for line in lines if line.startswith("begin ")]
        said_done = {int(line.split()[1]) for line in lines if line.startswith("done ")}
        story = self.story
        story.trace.append(f"killed after {lines[-3:]}")
        story.part = "intend"
        for number in begun:
            story.runs = number * RUNS_EACH
            perform(story, operations[number - first])
        story.part = "all"
        story.check()
        self._check_plain(operations, first, begun, said_done)
        # A new generation replaces what was written before it, and the second one drops that.
        switching = {"build", "roll_back"} if story.sequence else {"build"}
        builds = [number for number in begun if operations[number - first].kind in switching]
        for number in begun:
            operation, run = operations[number - first], f"run {number * RUNS_EACH + 1}"
            if builds and number < builds[-1]:
                continue
            is_there = run in story.orders.done
            if operation.kind not in LOGGED or (story.sequence and operation.kind != "upsert"):
                continue
            if number in said_done and not is_there:
                raise Different(f"{operation} was said to be done, and is not there: {lines}")
            self.landed += is_there and number not in said_done
        # What a user does next: the same again, then everything else.
        again = [operations[begun[-1] - first]] if begun else []
        if story.orders.shown is None:
            again.append(Operation("build"))
        again += [
            Operation("compact", number=0),
            Operation("pull"),
            Operation("upsert", batch=(Change(0, 1, 0, 4),)),
        ]
        for operation in again:
            story.runs = self._number * RUNS_EACH
            self._number += 1
            perform(story, operation)
            if operation.kind == "merge_files":
                self._appended.add(story.runs)
        story._verify(with_rows=True)


def _changed(warehouse: Path) -> int:
    """A mark that changes with each commit to the catalog's file, or to its journal."""
    found = 0
    for name in ("catalog.db", "catalog.db-journal", "catalog.db-wal"):
        try:
            found += (warehouse / name).stat().st_mtime_ns
        except OSError:
            continue
    return found
