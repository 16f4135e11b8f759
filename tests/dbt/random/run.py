"""Runs a case with dbt on Spark, in this process, and compares each table with what the oracle says."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.type_text import type_text
from tests.dbt.keyed.conftest import SETTINGS, Script
from tests.dbt.random.columns import Refused, Table
from tests.dbt.random.found import Found, Rows, as_found, as_row, is_own, plain, with_columns_of
from tests.dbt.random.oracle import Expected, days_of, expect, expect_batch, seen
from tests.dbt.random.project import CONF, Case, Model, Round, arguments_of, files_of
from tests.dbt.random.values import comparable_type, quote

_PHRASES = {
    "is to be refused": "accepted",
    "is refused": "refused",
    "a traceback": "traceback",
    "an error without a code": "no code",
    "Spark's own error": "own error",
    "it is there": "existence",
    "it is not there": "existence",
    "rows missing": "rows",
    "columns {": "columns",
}
"""How a difference is described, and its kind."""


@dataclass(frozen=True)
class Difference:
    """:param model: empty where the whole invocation is meant."""

    seed: int
    round: int
    model: str
    why: str

    @property
    def kind(self) -> str:
        """How it shows, with an error's code: what stays the same while a case is made smaller."""
        kind = next((kind for phrase, kind in _PHRASES.items() if phrase in self.why), "the run")
        code = re.search(r"AR-\d\d\d", self.why) if kind not in ("rows", "columns", "existence") else None
        return f"{kind} {code[0]}" if code else kind

    def __str__(self) -> str:
        return f"seed {self.seed}, round {self.round}, {self.model or 'the run'}: {self.why}"


@dataclass
class Judged:
    """What became of a case."""

    runs: int = 0
    models: int = 0
    refused: int = 0
    differences: list[Difference] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)


class Bench:
    """A Spark, and a warehouse in which each case has a schema of its own."""

    def __init__(self, warehouse: Path, connection: SessionConnection) -> None:
        self.warehouse = warehouse
        self.connection = connection
        self.script = Script()

    @contextmanager
    def scripted(self) -> Iterator[None]:
        """Within it, statements of dbt may be the last ones of their models' runs."""
        execute = SessionCursor.execute

        def noted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
            if cursor._connection is self.connection:
                execute(cursor, sql, bindings)
            else:
                self.script.run(sql, lambda: execute(cursor, sql, bindings))

        SessionCursor.execute = noted  # type: ignore[method-assign]
        try:
            yield
        finally:
            SessionCursor.execute = execute  # type: ignore[method-assign]

    def sql(self, text: str) -> Any:
        return self.connection.session.sql(text)

    def judge(self, case: Case, more: dict[str, str] | None = None) -> Judged:
        """Run a case, and compare after each run.

        :param more: files of the project besides those of the case.
        """
        folder = Path(tempfile.mkdtemp(prefix="dbt-random-"))
        before = os.getcwd()
        try:
            with self.scripted():
                trial = Trial(self, case, folder, more or {})
                trial.run()
                return trial.judged
        finally:
            os.chdir(before)
            reset_adapters()
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def bench() -> Iterator[Bench]:
    """A Spark of one's own."""
    warehouse = Path(tempfile.mkdtemp(prefix="dbt-random-lake-"))
    settings = SparkSettings(catalog="lake", warehouse=str(warehouse), spark_conf=CONF, **SETTINGS)  # type: ignore[arg-type]
    engine = SessionEngine(settings)
    connection = engine.connect()
    try:
        yield Bench(warehouse, connection)
    finally:
        connection.close()
        engine.close()
        shutil.rmtree(warehouse, ignore_errors=True)


class Trial:
    """One case in a schema of its own.

    :ivar tables: what the oracle says of each model; one that differed once is not looked at again.
    """

    def __init__(self, bench: Bench, case: Case, folder: Path, more: dict[str, str]) -> None:
        self.bench, self.case, self.folder, self.more = bench, case, folder, more
        self.schema = f"random_{uuid.uuid4().hex[:10]}"
        self.tables: dict[str, Table | None] = {model.name: None for model in case.models}
        self.statuses: dict[str, Any] = {}
        self.judged = Judged()
        self.written: dict[str, str] = {}
        self.may_have_changed = False
        self.catalog = EmbeddedCatalog("lake", bench.warehouse)

    def run(self) -> None:
        self.bench.sql(f"CREATE SCHEMA lake.{self.schema}")
        target = {
            "type": "arctic",
            "warehouse": str(self.bench.warehouse),
            "schema": self.schema,
            "threads": 1,
            "spark_conf": CONF,
            **SETTINGS,
        }
        project = {"name": "random", "version": "1.0", "profile": "random"}
        self._write(
            {
                "dbt_project.yml": yaml.safe_dump(project),
                "profiles.yml": yaml.safe_dump({"random": {"target": "dev", "outputs": {"dev": target}}}),
                **self.more,
            }
        )
        try:
            for number, round_ in enumerate(self.case.rounds):
                self._round(number, round_)
                if any(not one.model for one in self.judged.differences):
                    break
        finally:
            self._drop()

    def _write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            if self.written.get(path) != text:
                target = self.folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        for path in [
            path for path in self.written if path not in files and path.startswith(("models/", "snap"))
        ]:
            (self.folder / path).unlink()
            del self.written[path]
        self.written |= files

    def _drop(self) -> None:
        began = time.monotonic()
        for relation in self.catalog.list_names(self.schema):
            kind = relation.kind.upper()
            self.bench.sql(f"DROP {kind} IF EXISTS lake.{self.schema}.{quote(relation.name)}")
        self.bench.sql(f"DROP SCHEMA lake.{self.schema}")
        shutil.rmtree(self.bench.warehouse / self.schema, ignore_errors=True)
        self.judged.seconds["drop"] += time.monotonic() - began

    def _round(self, number: int, round_: Round) -> None:
        began = time.monotonic()
        self._write(files_of(self.case, round_))
        self.bench.script.ends, self.bench.script.counts = dict(round_.ends), {}
        micro = any("microbatch" in model.kind for model in self.case.models)
        if round_.verb == "retry" and not any(is_failure(one) for one in self.statuses.values()):
            return
        outcome = self._dbt(arguments_of(round_, micro))
        self.bench.script.ends = {}
        self.judged.runs += 1
        self.judged.seconds["dbt"] += time.monotonic() - began
        results = {one.node.name: one for one in getattr(outcome.result, "results", None) or []}
        if outcome.exception is not None or not results:
            self._differ(number, "", f"dbt ended with {outcome.exception!r}")
            return
        began = time.monotonic()
        there = {one.name for one in self.catalog.list_names(self.schema)}
        for model in self.case.models:
            if model.name not in self.tables:
                continue
            result = results.get(model.name)
            self.judged.models += result is not None
            why = self._compare(round_.settled(model), round_, result, model.name in there)
            if why:
                del self.tables[model.name]
                self._differ(number, model.name, f"{model.kind}: {why}")
        self.statuses |= results
        self.judged.seconds["compare"] += time.monotonic() - began

    def _dbt(self, words: list[str]) -> Any:
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return dbtRunner().invoke([*words, *folders, "--log-level", "none", "--log-level-file", "none"])

    def _differ(self, number: int, model: str, why: str) -> None:
        self.judged.differences.append(Difference(self.case.seed, number, model, why))

    # One model

    def _compare(self, model: Model, round_: Round, result: Any, is_there: bool) -> str:
        """What is wrong after a round; empty if nothing is."""
        self.may_have_changed = False
        if result is None:
            candidates, why = [self.tables[model.name]], ""
        elif "microbatch" in model.kind:
            candidates, why = self._after_batches(model, round_, result)
        else:
            candidates, why = self._after(model, round_, result)
        if why:
            return why
        if model.kind == "view" and result is None:
            return ""
        found = self._read(model) if is_there else None
        for table in candidates:
            expected = None if table is None else as_found(model, table)
            if expected == found:
                self.tables[model.name] = table
                return ""
        first = candidates[0]
        if self.may_have_changed and first is not None and found is not None:
            changed = with_columns_of(first, found)
            if changed is not None and as_found(model, changed) == found:
                self.tables[model.name] = changed
                return ""
        if first is None or found is None:
            told = f"it is {'there' if is_there else 'not there'}"
        else:
            told = as_found(model, first).describe(found)
        return f"{told}; reported {'nothing' if result is None else f'{result.status} {result.message}'}"

    def _after(self, model: Model, round_: Round, result: Any) -> tuple[list[Table | None], str]:
        """The tables that there may be after a run, the likeliest first; or what is wrong anyway."""
        before, name = self.tables[model.name], model.name
        batch, message = seen(model, round_.batches[name]), str(result.message)
        expected: Expected | None = None
        try:
            expected = expect(model, before, batch, round_, name in round_.poisoned)
            refusal = None
        except Refused as error:
            refusal = error
        self.judged.met[f"{model.kind}: {'refused' if refusal else 'written'}"] += 1
        if not is_failure(result):
            if expected is None:
                return [], f"it reports success, and is to be refused: {refusal}"
            return [expected.table], ""
        self.judged.refused += 1
        if name in round_.ends:
            self.may_have_changed = True
            if expected is None:
                return [before], ""
            return [before, expected.table], ""
        if refusal is None and not (expected and expected.may_refuse):
            return [], f"it is refused: {message}"
        wrong = unclear(message, by_spark=refusal is not None and refusal.by_spark)
        if wrong:
            return [], f"{wrong} ({refusal}): {message}"
        self.may_have_changed = refusal is None or refusal.by_rows
        return [before], ""

    def _after_batches(self, model: Model, round_: Round, result: Any) -> tuple[list[Table | None], str]:
        days = days_of(round_)
        again = self.statuses.get(model.name) if round_.verb == "retry" else None
        todo = [day for day in days if again is None or day not in done_days(again, days)]
        done = set(todo) & done_days(result, days)
        killed = model.name in round_.ends
        refused = {day for day in todo if day not in done}
        self.judged.refused += bool(refused)
        candidates: list[Table | None] = []
        first_why = ""
        ways = itertools.product(
            *[(True,) if day in done else (False, True) if killed else (False,) for day in todo]
        )
        for way in ways:
            table, skipping = self.tables[model.name], False
            for place, (day, applied) in enumerate(zip(todo, way, strict=True)):
                rebuild = round_.full_refresh and day == days[0]
                batch = seen(model, round_.batches[model.name])
                try:
                    expected = expect_batch(model, table, batch, day, rebuild)
                    refusal = None
                except Refused as error:
                    refusal = error
                if applied:
                    if refusal is not None:
                        first_why = first_why or f"the batch of {day} is to be refused: {refusal}"
                        break
                    table = expected.table
                elif refusal is None and not expected.may_refuse and not killed and not skipping:
                    first_why = first_why or f"the batch of {day} is refused: {batch_errors(result)}"
                    break
                if not applied and place == 0:
                    skipping = True
            else:
                candidates.append(table)
        self.judged.met[f"{model.kind}: {'refused' if refused else 'written'}"] += 1
        return candidates, "" if candidates else first_why

    def _read(self, model: Model) -> Found:
        frame = self.bench.sql(f"SELECT * FROM lake.{self.schema}.{quote(model.name)}")
        fields = frame.schema.fields
        names = [one.name for one in fields]
        types = {one.name.lower(): type_text(one.dataType) for one in fields}
        rows: Rows = Counter()
        for row in frame.collect():
            values = {
                name: plain(value, one.dataType) for name, value, one in zip(names, row, fields, strict=True)
            }
            rows[as_row(model, values, types)] += 1
        kept = {name: comparable_type(one) for name, one in types.items() if not is_own(model, name)}
        return Found(kept, rows)


def is_failure(result: Any) -> bool:
    return str(result.status) in ("error", "fail", "skipped", "partial success", "runtime error")


def done_days(result: Any, days: list[str]) -> set[str]:
    """The days whose batches a microbatch model's result calls successful."""
    if not is_failure(result):
        return set(days)
    if result.batch_results is None:
        return set()
    return {str(start)[:10] for start, _ in result.batch_results.successful}


def batch_errors(result: Any) -> str:
    return str(result.message)


def unclear(message: str, by_spark: bool) -> str:
    """What is wrong with the text of a refusal."""
    if "Traceback" in message or "\tat org." in message:
        return "a traceback"
    code = re.search(r"AR-\d\d\d", message)
    if code is None:
        return (
            "" if "Compilation Error" in message or "Contract Error" in message else "an error without a code"
        )
    if code[0] == "AR-201" and not by_spark:
        return "Spark's own error"
    return ""
