"""Random stories of a model that follows a database's table by change events.

At each quiet point, when everything that was committed was delivered and read, the model has the rows of the
table, column by column. Events are repeated, held back if the order allows it, and runs are cut off anywhere.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from dbt_arctic.sources import capture_changes
from tests.dbt.keyed.conftest import Shop, opened_shop
from tests.dbt.keyed.kafka_topics import Topic
from tests.dbt.sources.killed_process import is_built_here, run_and_kill
from tests.dbt.sources.mariadb_followed import FollowedMariaDb
from tests.dbt.sources.mariadb_log import MariaDbLog
from tests.dbt.sources.postgres_log import Keyed, PostgresLog
from tests.dbt.sources.project import Parts
from tests.dbt.sources.story import Different
from tests.matrix.components import PASSWORD

STATEMENTS = 16
"""At most so many statements of the model run before it is cut off."""
_ENDED = re.compile(r"\w+ (had ended before|ended after): ")
_SHOWN = 1500
_MODEL = """\
{{ config(materialized='incremental', unique_key=['region', 'id'], sequence_by='_source_sequence') }}
select * from {{ incremental_pull(source('log', 'rows')) }}"""


@dataclass
class LogStory:
    """:param told: what has happened, one act a line.

    :param processes: the share of the runs that are cut off which are processes of their own, and killed.
    """

    shop: Shop
    topic: Topic | None
    log: PostgresLog | MariaDbLog | FollowedMariaDb
    chance: random.Random
    told: list[str] = field(default_factory=list)
    processes: float = 0.0
    steps: int = 0
    kills: int = 0
    sent: list[Keyed] = field(default_factory=list)
    pending: list[Keyed] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    _needs_full: bool = True

    @property
    def is_ordered(self) -> bool:
        """Whether each event has a position, so that the order of delivery does not matter."""
        return self.log.settings["format"] != "canal"

    def play(self, steps: int) -> None:
        """:raises Different: the model does not have the rows of the table."""
        assert not isinstance(self.log, FollowedMariaDb)
        self.pending += self.log.start()
        self.declare()
        for _ in range(steps):
            self.step()
        self.settle()

    def step(self) -> None:
        self.steps += 1
        what = self.chance.random()
        if what < 0.6:
            act = self.chance.choice(self.log.acts)
            before = self.log.ddl
            getattr(self.log, act)()
            self.told.append(act if before == self.log.ddl else f"{act}: {sorted(self.log.declared)}")
        elif what < 0.75:
            self.deliver(self.chance.randrange(1, 12))
        elif what < 0.8:
            self.deliver_again()
        elif what < 0.82:
            self.deliver(0)
            if not self.pending:
                self.snapshot_again()
        elif what < 0.95:
            self.run(is_cut=self.chance.random() < 0.5, is_full=self.chance.random() < 0.05)
        else:
            self.settle()

    def settle(self) -> None:
        """Commit, deliver and read everything: then the model has the rows of the table."""
        self.log.quiet()
        self.deliver(0)
        for _ in range(3):
            if self.run():
                break
        else:
            raise Different("the model cannot be run")
        columns = list(self.columns)
        listed = ", ".join(f"cast(`{name}` as string)" for name in columns)
        found = sorted(map(tuple, self.shop.sql(f"SELECT {listed} FROM {{s}}.rows")), key=repr)
        expected = self.log.rows(columns)
        self.told.append(f"quiet: {len(expected)} rows")
        if found != expected:
            missing, more = (
                [one for one in expected if one not in found],
                [one for one in found if one not in expected],
            )
            raise Different(f"missing: {_short(missing)}\nmore: {_short(more)}")

    # Delivery

    def deliver(self, count: int) -> None:
        """Send the oldest events that were not sent, or all.

        :param count: how many; 0 for all, also those of transactions that were just committed.
        """
        assert not isinstance(self.log, FollowedMariaDb)
        self.pending += self.log.read()
        taken = self.pending[: count or len(self.pending)]
        del self.pending[: len(taken)]
        if self.is_ordered and not self.log.has_unsent and count:
            held = [one for one in taken if self.chance.random() < 0.2]
            taken = [one for one in taken if one not in held]
            self.pending = [*self.pending, *held]
        self.send(taken)
        self.told.append(f"deliver {len(taken)}, {len(self.pending)} left")

    def deliver_again(self) -> None:
        """Events that were delivered come again; without positions, everything from some event on."""
        if not self.sent:
            return
        if self.is_ordered and self.chance.random() < 0.7:
            again = self.chance.choices(self.sent, k=min(len(self.sent), 5))
        else:  # a tool that begins again repeats everything from some event on
            again = self.sent[self.chance.randrange(len(self.sent)) :]
        self.told.append(f"deliver {len(again)} again")
        self.send(again, is_new=False)

    def send(self, events: list[Keyed], *, is_new: bool = True) -> None:
        assert self.topic is not None
        for key, event in events:
            partition = zlib.crc32(key.encode()) % self.topic.partitions
            value = None if event is None else json.dumps(event, ensure_ascii=False).encode()
            self.topic.producer.send(self.topic.name, key=key.encode(), value=value, partition=partition)
        self.topic.producer.flush()
        self.sent += events if is_new else []

    def snapshot_again(self) -> None:
        assert not isinstance(self.log, FollowedMariaDb)
        self.pending += self.log.snapshot_again()
        self.told.append("a snapshot")

    # Runs

    def declare(self) -> None:
        """Write the columns that the table has now. Those that some events lack are optional."""
        new = self.log.declared
        if self.columns:
            self.optional |= set(new) ^ set(self.columns)
        self.columns = dict(new)
        settings = {
            **self.place_settings(),
            **{"columns": new, "optional": sorted(self.optional & set(new))},
        }
        if self.log.settings["format"] == "debezium" and self.log.has_unsent:
            settings["unavailable"] = "keep"
        tables = [{"name": "rows", "config": {"meta": {"arctic": settings}}}]
        source = {"version": 2, "sources": [{"name": "log", "schema": "nowhere", "tables": tables}]}
        self.shop.file("models/log.yml", yaml.safe_dump(source, sort_keys=False))
        self.shop.model("rows", _MODEL)
        self._needs_full = True

    def place_settings(self) -> dict[str, Any]:
        """Where the events are, and what they look like."""
        assert self.topic is not None
        settings = {"from": "kafka", "servers": self.topic.servers, "topic": self.topic.name}
        settings |= self.log.settings
        return {**settings, "table": "shop.orders"} if "table" in settings else settings

    def ends(self) -> dict[str, tuple[int, bool]]:
        """Where a run is cut off."""
        return {"rows": (self.chance.randrange(STATEMENTS), self.chance.random() < 0.5)}

    def run(self, *, is_cut: bool = False, is_full: bool = False) -> bool:
        """Run the model, and do what its error says; whether it was successful."""
        if set(self.log.declared) != set(self.columns):
            self.declare()
        is_full = is_full or self._needs_full
        words = ["run", "--select", "rows", *(["--full-refresh"] if is_full else [])]
        if is_cut and self.processes and self.chance.random() < self.processes:
            return self._run_and_kill(words)
        ends = self.ends() if is_cut else {}
        self.told.append(" ".join(["dbt", *words, f"ends at {ends}" if ends else ""]))
        self.shop.end(ends)
        outcome = self.shop.try_dbt(*words)
        self.shop.end({})
        if outcome.success:
            self._needs_full = False
            return True
        said = self.shop.messages(outcome)
        if ends and _ENDED.search(said):
            self.kills += 1
        else:
            self._heed(said, is_full=is_full)
        return False

    def _run_and_kill(self, words: list[str]) -> bool:
        at, after = self.chance.randrange(STATEMENTS), self.chance.random() < 0.5
        self.told.append(" ".join(["dbt", *words, "killed", "after" if after else "before", str(at)]))
        ended = run_and_kill(self.shop, words, at, after=after)
        self.kills += ended.is_killed
        said = "" if ended.is_killed else ended.messages["rows"]
        if said and not is_built_here(said):
            self._heed(said, is_full="--full-refresh" in words)
        is_done = not said and not ended.is_killed
        self._needs_full = self._needs_full and not is_done
        return is_done

    def _heed(self, said: str, *, is_full: bool) -> None:
        """Do what an error says at the next run.

        :raises Different: it says nothing that is expected.
        """
        if "AR-312" in said and not is_full and getattr(self, "truncate", "fail") == "fail":
            self.told.append("the table was truncated")
            self._needs_full = True
        elif "was not sent with a new key" in said and not is_full and isinstance(self, CaptureStory):
            self.told.append("a large value is under another key")
            self._needs_full = True
        else:
            raise Different(f"the run failed: {said[:_SHOWN]}")


class CaptureStory(LogStory):
    """The table is captured from its log by the runs themselves: ``from: postgres`` or ``from: mariadb``."""

    truncate: str = "fail"

    def play(self, steps: int) -> None:
        assert not isinstance(self.log, MariaDbLog)
        self.truncate = self.chance.choice(("fail", "apply", "apply"))
        self.log.begin_to_follow()
        path = self.shop.folder / "profiles.yml"
        profile = yaml.safe_load(path.read_text(encoding="utf-8"))
        for output in profile["shop"]["outputs"].values():
            output["jdbc"] = {"log": {"password": PASSWORD}}
        path.write_text(yaml.safe_dump(profile), encoding="utf-8")
        self.declare()
        # In some stories, a run takes the changes in many small parts.
        with mock.patch.object(capture_changes, "_MESSAGES_OF_COMMIT", self.chance.choice((5, 100_000))):
            for _ in range(steps):
                self.step()
            self.settle()

    def declare(self) -> None:
        """All columns are read. A run follows what is changed in the database."""
        self._needs_full = not self.columns
        self.columns = dict(self.log.declared)
        settings = {**self.place_settings(), "truncate": self.truncate}
        if self.log.has_unsent:
            settings["unavailable"] = "keep"
        tables = [{"name": "rows", "config": {"meta": {"arctic": settings}}}]
        source = {"version": 2, "sources": [{"name": "log", "schema": "nowhere", "tables": tables}]}
        self.shop.file("models/log.yml", yaml.safe_dump(source, sort_keys=False))
        self.shop.model("rows", _MODEL.replace(") }}\n", ", on_schema_change='sync_all_columns') }}\n", 1))

    def deliver(self, count: int) -> None:
        """Nothing is delivered. The log has what was committed."""

    def deliver_again(self) -> None:
        """The log has each change once."""

    def snapshot_again(self) -> None:
        """The table is read by full refreshes."""

    def place_settings(self) -> dict[str, Any]:
        assert not isinstance(self.log, MariaDbLog)
        return self.log.followed

    def ends(self) -> dict[str, tuple[int, bool]]:
        """A run is cut off while it captures, or while the model is written."""
        if self.chance.random() < 0.5:
            return {"log__capture": (self.chance.randrange(STATEMENTS), self.chance.random() < 0.5)}
        return super().ends()


def _short(rows: list[Any]) -> str:
    texts = [str(tuple(one and one[:40] for one in row)) for row in rows]
    return "\n  ".join(["", *texts])


@contextlib.contextmanager
def opened_log_story(parts: Parts, mariadb: Any, seed: int, processes: float = 0.0) -> Iterator[LogStory]:
    """A story with a table, a topic and a project of its own.

    :param mariadb: a MariaDB; ``None`` for stories of PostgreSQL only.
    """
    chance = random.Random(seed)
    tools = [
        "postgres",
        "full",
        "captured",
        *(["debezium", "maxwell", "canal", "followed"] if mariadb else []),
    ]
    tool = tools[seed % len(tools)]
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="soak-cdc-")))
        shop = opened.enter_context(opened_shop(folder, parts.warehouse, parts.connection))
        if tool in ("postgres", "full", "captured"):
            sends_all = tool == "full" or (tool == "captured" and chance.random() < 0.5)
            captured = tool == "captured"
            log: Any = PostgresLog(chance, parts.server, sends_all, moves_all=captured, converts=captured)
        elif tool == "followed":
            log = FollowedMariaDb(chance, mariadb)
        else:
            log = MariaDbLog(chance, mariadb, tool)
        opened.callback(log.close)
        if tool in ("captured", "followed"):
            yield CaptureStory(shop, None, log, chance, [f"a story of {tool}"], processes)
            return
        topic = parts.broker.topic(1 if tool == "canal" else 2)
        yield LogStory(shop, topic, log, chance, [f"a story of {tool}"], processes)


__all__ = ["LogStory", "opened_log_story"]
