"""Two machines that share only a catalog and a store, of which each can fail for one of them at any time.

``python -m tests.faults.two_machines --steps 30 --seed 1``. Each machine has a Spark, a host name and a clock
of its own (one is ten minutes ahead), and reaches PostgreSQL and S3 through proxies of its own. In each step
both do something at once, while something fails. Then everything works again, one of them runs all models,
and each table is compared with what the events say. Each error that a user sees must have a code.
With ``--copies 4 --threads 8 --healthy``, nothing fails, and each runs four copies of each model at once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.dbt.keyed.kafka_topics import tools
from tests.faults.proxy import OF_HTTP, Proxy, Trouble
from tests.matrix.components import PASSWORD, moto, postgres

ROOT = Path(__file__).parents[2]
SCHEMA = "shop"
AHEAD_S = {"oslo": 0, "lima": 600}
"""How many seconds the clock of each machine is ahead."""
ATTEMPTS = 3
"""In so many runs on a healthy machine, everything must be in order."""
TROUBLE_S = 6.0
_CONFIGS = {
    "latest": "unique_key='id', sequence_by='seq', buckets=2",
    "log": "incremental_strategy='append'",
    "totals": "incremental_strategy='auto', unique_key='region', buckets=1",
}
_EVENTS = "{{ incremental_pull(source('raw', 'events')) }}"
MODELS = {
    "latest": f"select id, seq, amount from {_EVENTS}",
    "log": f"select seq, id from {_EVENTS}",
    "totals": "select id % 3 as region, count(*) as n, sum(amount) as amount\n"
    "from {{ ref('latest') }} group by 1",
}
_EXECUTE = "{% macro run_statement(sql) %}{% do run_query(sql) %}{% endmacro %}"
COLUMNS = {"latest": "id, seq, amount", "log": "seq, id", "totals": "region, n, amount"}
ACTS = (*("add",) * 3, *("run",) * 4, "full", "full", "compact", "idle")
TROUBLES_OF_A_STORE = tuple(one for one in Trouble if one is not Trouble.NONE)
TROUBLES_OF_A_CATALOG = tuple(one for one in TROUBLES_OF_A_STORE if one not in OF_HTTP)

Row = tuple[int, ...]


class Different(AssertionError):
    """A table is not as the events say, or a user gets an error without a code or a fix."""


class Machine:
    """A process, and the proxies through which it reaches what is shared."""

    def __init__(self, host: str, folder: Path, catalog: Proxy, store: Proxy) -> None:
        self.host, self.catalog, self.store = host, catalog, store
        self._errors = (folder / "errors.log").open("w", encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.machine", host, str(AHEAD_S[host])],
            cwd=folder,
            env={**_environ(), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def run(self, *words: str) -> tuple[bool, str]:
        """Whether a command succeeded, and what it said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.host} has ended: {' '.join(words)}")
        answer = json.loads(line)
        return bool(answer["ok"]), str(answer["said"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._errors.close()


def _environ() -> dict[str, str]:
    return {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_LOG_LEVEL_FILE": "none"}


@dataclass(frozen=True)
class Load:
    """:param copies: how many copies of each model there are.
    :param is_healthy: whether nothing fails.
    """

    copies: int = 1
    threads: int = 2
    is_healthy: bool = False

    @property
    def models(self) -> dict[str, str]:
        """The kind of each model by its name."""
        return {self.name(kind, number): kind for number in range(self.copies) for kind in MODELS}

    @staticmethod
    def name(kind: str, number: int) -> str:
        return f"{kind}_{number}" if number else kind


@dataclass
class Machines:
    """:param said: what has happened, one act a line."""

    machines: list[Machine]
    chance: random.Random
    load: Load = field(default_factory=Load)
    said: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    raw: list[str] = field(default_factory=list)
    """Errors without a code or a fix, which a user can neither look up nor follow."""
    _number: int = 0

    def start(self) -> None:
        """Build everything, on the first machine."""
        create = f"create table lake.{SCHEMA}.events (id bigint, seq bigint, amount bigint) using iceberg"
        for sql in (f"create schema lake.{SCHEMA}", create):
            assert self._command(self.machines[0], *_operation(sql)), self.said
        self.add(self.machines[0])
        self.settle(self.machines[0])

    def step(self) -> None:
        """Both machines do something at once, and something fails; then everything is in order."""
        self.counts["steps"] += 1
        threads = [
            threading.Thread(target=self._act, args=(machine, self.chance.choice(ACTS)))
            for machine in self.machines
        ]
        troubled = self.chance.choice(self.machines)
        if self.load.is_healthy:
            for thread in threads:
                thread.start()
            self._end_step(threads)
            return
        of_store = self.chance.random() < 0.5
        trouble = self.chance.choice(TROUBLES_OF_A_STORE if of_store else TROUBLES_OF_A_CATALOG)
        proxy = troubled.store if of_store else troubled.catalog
        before, after = proxy.met, self.chance.random() * 1.5
        for thread in threads:
            thread.start()
        threading.Event().wait(after)
        proxy.begin(trouble)
        threads[0].join(TROUBLE_S)
        proxy.heal()
        self.said.append(
            f"  {troubled.host}: {'store' if of_store else 'catalog'} {trouble.value} after {after:.1f} s, "
            f"met {proxy.met - before}"
        )
        self.counts["troubles"] += proxy.met > before
        self._end_step(threads)

    def _end_step(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join()
        if self.raw:
            raise Different("\n".join(self.raw))
        self.settle(self.chance.choice(self.machines))

    def _act(self, machine: Machine, act: str) -> None:
        if act == "add":
            self.add(machine)
        elif act == "run":
            self._command(machine, "dbt", "run")
        elif act == "full":
            self._command(
                machine, "dbt", "run", "--full-refresh", "--select", self.chance.choice([*self.load.models])
            )
        elif act == "compact":
            self._command(machine, "dbt-arctic", "compact")

    def add(self, machine: Machine) -> None:
        """Some events. If the command fails, they may be there or not: the table decides."""
        rows = []
        for _ in range(self.chance.randrange(1, 4)):
            self._number += 1
            rows.append(f"({self.chance.randrange(6)}, {self._number}, {self.chance.randrange(100)})")
        self._command(machine, *_operation(f"insert into lake.{SCHEMA}.events values {', '.join(rows)}"))

    def _command(self, machine: Machine, *words: str) -> bool:
        is_done, told = machine.run(*words)
        self.said.append(f"{machine.host}: {' '.join(words)}: {'done' if is_done else _first_line(told)}")
        if not is_done:
            self.counts["errors"] += 1
            # dbt prints the error of an operation, and does not return it.
            if "run-operation" not in words and not _says_what_to_do(told):
                self.raw.append(f"{machine.host}: {' '.join(words)} failed without a fix: {told[-2000:]}")
        return is_done

    def settle(self, machine: Machine) -> None:
        """Without troubles, all models can be run, and each table is as the events say."""
        for _ in range(ATTEMPTS):
            if self._command(machine, "dbt", "run"):
                break
        else:
            raise Different(f"{machine.host}: the models cannot be run")
        events = self._rows(machine, "events", "id, seq, amount")
        numbers = [seq for _, seq, _ in events]
        if len(numbers) != len(set(numbers)):
            raise Different(f"an insert was repeated: {sorted(numbers)}")
        right = _expected(events)
        for name, kind in self.load.models.items():
            found, expected = sorted(self._rows(machine, name, COLUMNS[kind])), right[kind]
            if found != expected:
                raise Different(f"{name} has\n  {found}\nand not\n  {expected}")

    def _rows(self, machine: Machine, name: str, columns: str) -> list[Row]:
        is_done, told = machine.run(
            "dbt-arctic", "sql", "--limit", "0", "--json", f"select {columns} from {name}"
        )
        if not is_done:
            raise Different(f"{machine.host} cannot read {name}: {told[-2000:]}")
        return [tuple(map(int, row.values())) for row in json.loads(told)]


def _expected(events: list[Row]) -> dict[str, list[Row]]:
    latest: dict[int, Row] = {}
    for id_, seq, amount in sorted(events, key=lambda event: event[1]):
        latest[id_] = (id_, seq, amount)
    groups: dict[int, list[int]] = {}
    for id_, _, amount in latest.values():
        groups.setdefault(id_ % 3, []).append(amount)
    return {
        "latest": sorted(latest.values()),
        "log": sorted((seq, id_) for id_, seq, _ in events),
        "totals": sorted((group, len(found), sum(found)) for group, found in groups.items()),
    }


def _operation(sql: str) -> list[str]:
    """A command that executes a statement."""
    return ["dbt", "run-operation", "run_statement", "--args", json.dumps({"sql": sql})]


def _says_what_to_do(told: str) -> bool:
    """Whether a failed command reported errors, each with a code and a fix."""
    _, *errors = re.split(r"^\s*(?=AR-\d{3} )", told, flags=re.MULTILINE)
    return bool(errors) and all(re.search(r"^\s*fix: ", error, re.MULTILINE) for error in errors)


def _first_line(told: str) -> str:
    return next((line.strip() for line in told.splitlines() if "AR-" in line), told.strip()[:200])


@contextmanager
def running(folder: Path, seed: int, load: Load) -> Iterator[Machines]:
    """Two machines with what they share."""
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own
    with ExitStack() as stack:
        store = stack.enter_context(moto(folder, tools()))
        catalog = stack.enter_context(postgres(folder))
        made = []
        for host in AHEAD_S:
            to_catalog = Proxy(
                urlsplit(catalog.address).port or 0, (b"UPDATE iceberg_", b"INSERT INTO iceberg_")
            )
            to_store = Proxy(urlsplit(store.address).port or 0, (b"PUT /",))
            stack.callback(to_catalog.close)
            stack.callback(to_store.close)
            project = folder / host
            _write(project, to_catalog.port, to_store.port, load)
            made.append(Machine(host, project, to_catalog, to_store))
            stack.callback(made[-1].close)
        yield Machines(made, random.Random(seed), load)


def _write(project: Path, catalog: int, store: int, load: Load) -> None:
    target = {
        "type": "arctic",
        "schema": SCHEMA,
        "threads": load.threads,
        "driver_memory": "1g",
        "master": "local[1]",
        "small_data": True,
        "catalog": {
            "type": "postgres",
            "uri": f"postgresql://127.0.0.1:{catalog}/lake",
            "user": "dbt",
            "password": PASSWORD,
            "warehouse": "s3://lake/warehouse",
            "s3": {
                "endpoint": f"http://127.0.0.1:{store}",
                "region": "us-east-1",
                "path_style": True,
                "access_key_id": PASSWORD,
                "secret_access_key": PASSWORD,
            },
        },
    }
    sources = {
        "version": 2,
        "sources": [{"name": "raw", "schema": SCHEMA, "tables": [{"name": "events"}]}],
    }
    for name in ("models", "macros"):
        (project / name).mkdir(parents=True)
    (project / "macros" / "run_statement.sql").write_text(_EXECUTE, encoding="utf-8")
    for path, document in {
        "dbt_project.yml": {"name": "shop", "version": "1.0", "profile": "shop"},
        "profiles.yml": {"shop": {"target": "dev", "outputs": {"dev": target}}},
        "models/sources.yml": sources,
    }.items():
        (project / path).write_text(yaml.safe_dump(document), encoding="utf-8")
    for number in range(load.copies):
        for kind, sql in MODELS.items():
            upstream = load.name("latest", number)
            text = f"{{{{ config(materialized='incremental', {_CONFIGS[kind]}) }}}}\n{sql}\n"
            text = text.replace("ref('latest')", f"ref('{upstream}')")
            (project / "models" / f"{load.name(kind, number)}.sql").write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--healthy", action="store_true")
    given = parser.parse_args()
    difference = ""
    with (
        tempfile.TemporaryDirectory(prefix="machines-") as folder,
        running(Path(folder), given.seed, Load(given.copies, given.threads, given.healthy)) as story,
    ):
        shown = 0
        try:
            story.start()
            while story.counts["steps"] < given.steps:
                story.step()
                sys.stdout.write("\n".join([*story.said[shown:], ""]))
                sys.stdout.flush()
                shown = len(story.said)
        except Different as error:
            difference = "\n".join([*story.said[shown:], str(error)])
        counts: Any = story.counts
    if difference:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(
        f"machines: {counts['steps']} steps, {counts['troubles']} troubles, {counts['errors']} errors, "
        f"{1 if difference else 0} differences\n"
    )
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
