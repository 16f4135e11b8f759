"""Runs a case with dbt on Spark, in this process, and compares each table with what the oracle says."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner
from pyspark.errors import PySparkException

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.type_text import type_text
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import is_keyed
from dbt_arctic.maintenance.table_read import read_table
from tests.dbt.keyed.conftest import SETTINGS, Script
from tests.dbt.random.allowed_outcomes import AllowedOutcomes, Fault, RanModel, is_failure
from tests.dbt.random.cheap_settings import flags, is_usual, whatever_the_size
from tests.dbt.random.columns import Row, Table
from tests.dbt.random.hooks import has_hooks, wrong_steps
from tests.dbt.random.other_programs import (
    Interrupt,
    LateUpsert,
    OtherPrograms,
    batch_of,
    can_evolve,
    is_adoptable,
    is_unique,
    lands_early,
    late_row,
    wrong_catalog,
    wrong_plan,
)
from tests.dbt.random.project import (
    CONF,
    HOOK_LOG,
    Case,
    Model,
    Round,
    arguments_of,
    files_of,
    is_set_aside,
)
from tests.dbt.random.properties import wrong_properties
from tests.dbt.random.read_tables import (
    Rows,
    StoredTable,
    as_found,
    as_row,
    in_order,
    is_own,
    plain,
    rows_of_arrow,
    with_columns_of,
)
from tests.dbt.random.values import comparable_type, in_zone, quote
from tests.dbt.random.views_left_alone import is_left_alone, shown_by


@dataclass(frozen=True)
class Difference:
    """:param model: empty where the whole invocation is meant."""

    seed: int
    round: int
    model: str
    why: str
    kind: str = ""

    def __str__(self) -> str:
        return f"seed {self.seed}, round {self.round}, {self.model or 'the run'}: {self.why}"


@dataclass
class CaseResult:
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
        self.interrupt: Interrupt | None = None
        self.others: OtherPrograms | None = None

    @contextmanager
    def scripted(self) -> Iterator[None]:
        """Within it, statements of dbt may be the last ones of their models' runs."""
        execute = SessionCursor.execute

        def noted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
            if cursor._connection is self.connection:
                execute(cursor, sql, bindings)
                return
            if self.others is not None:
                self.others.before(sql)
            if self.interrupt is not None and self.interrupt.is_at(sql):
                # Unlike `_thread.interrupt_main`, a signal also ends the wait of dbt's main thread.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                assert cursor._running._cancelled.wait(60)
            self.script.run(sql, lambda: execute(cursor, sql, bindings))

        SessionCursor.execute = noted  # type: ignore[method-assign]
        try:
            yield
        finally:
            SessionCursor.execute = execute  # type: ignore[method-assign]

    def sql(self, text: str) -> Any:
        return self.connection.session.sql(text)

    def judge(self, case: Case, more: dict[str, str] | None = None) -> CaseResult:
        """Run a case, and compare after each run.

        :param more: files of the project in addition to those of the case.
        """
        folder = Path(tempfile.mkdtemp(prefix="dbt-random-"))
        before = os.getcwd()
        try:
            with self.scripted(), in_zone(case.zone), whatever_the_size(case.seed):
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
    assert wrong_catalog(warehouse) == ""
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
    :ivar others_possible: of a model whose table was set aside when its run ended, the tables that the next
        run may find in place of the one in ``tables``.
    """

    def __init__(self, bench: Bench, case: Case, folder: Path, more: dict[str, str]) -> None:
        self.bench, self.case, self.folder, self.more = bench, case, folder, more
        self.schema = f"random_{uuid.uuid4().hex[:10]}"
        self.tables: dict[str, Table | None] = {model.name: None for model in case.models}
        self.others_possible: dict[str, list[Table | None]] = {}
        self.statuses: dict[str, Any] = {}
        self.judged = CaseResult()
        self.left_alone: dict[str, Table] = {}
        self.written: dict[str, str] = {}
        self.steps: Counter[tuple[str, str]] = Counter()
        self.catalog = EmbeddedCatalog("lake", bench.warehouse)
        self.others = bench.others = OtherPrograms(bench.connection, self.catalog, self.schema)

    def run(self) -> None:
        self.bench.sql(f"CREATE SCHEMA lake.{self.schema}")
        target = {
            "type": "arctic",
            "warehouse": str(self.bench.warehouse),
            "schema": self.schema,
            "threads": 1,
            "spark_conf": self.case.spark_conf,
            **SETTINGS,
        }
        profiles = {"random": {"target": "dev", "outputs": {"dev": target}}}
        self._write(
            {
                "dbt_project.yml": yaml.safe_dump(self.case.project),
                "profiles.yml": yaml.safe_dump(profiles),
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
        if round_.verb == "retry" and not any(is_failure(one) for one in self.statuses.values()):
            return
        late = self._prepare(number, round_)
        if round_.cancel is not None:
            self.bench.interrupt = Interrupt(*round_.cancel)
        following = self.case.rounds[number + 1 : number + 2]
        words = arguments_of(self.case, round_)
        if not is_usual(self.case.seed):
            words += flags(is_retried=bool(following) and following[0].verb == "retry")
        outcome = self._dbt(words)
        self.bench.script.ends, self.bench.interrupt, self.others.late = {}, None, {}
        if round_.planned and (wrong := wrong_plan(self.folder)):
            self._differ(number, "", Fault("plan", wrong))
        self.judged.runs += 1
        self.judged.seconds["dbt"] += time.monotonic() - began
        results = {one.node.name: one for one in getattr(outcome.result, "results", None) or []}
        is_cancelled = round_.cancel is not None and isinstance(outcome.exception, KeyboardInterrupt)
        self.judged.met["cancelled"] += is_cancelled
        if round_.reserved and f"{round_.reserved} is reserved for" not in str(outcome.exception):
            self._differ(number, "", Fault("names", f"a model may have the name {round_.reserved}"))
            return
        is_over = is_cancelled or bool(round_.reserved)
        if not is_over and (outcome.exception is not None or not results):
            self._differ(number, "", Fault("dbt", f"dbt ended with {outcome.exception!r}"))
            return
        began = time.monotonic()
        there = {one.name for one in self.catalog.list_names(self.schema)}
        read = [one for one in self._compared(round_, results) if one.name in there]
        found = self._read(read) if read else {}
        for model in self.case.models:
            if model.name not in self.tables or (model.upstream and model.upstream not in self.tables):
                self.tables.pop(model.name, None)
                continue
            result = results.get(model.name)
            self.judged.models += result is not None
            cut = is_cancelled or model.name in round_.ends or model.upstream in round_.ends
            ran = RanModel(
                round_.settled(model),
                round_,
                result,
                self.tables[model.name],
                cut,
                self.case.zone,
                self.tables.get(model.upstream),
                self.statuses.get(model.name),
                late.get(model.name),
            )
            possible = self.others_possible.pop(model.name, [])
            if ran.failed and model.name not in found and is_set_aside(model.name, there):
                # The next run puts the old table back, or the new one in its place.
                self.others_possible[model.name] = [*possible, *ran.after().candidates]
                continue
            fault = self._compare(ran, found.get(model.name))
            while fault is not None and possible:
                if self._compare(replace(ran, before=possible.pop()), found.get(model.name)) is None:
                    fault = None
            fault = fault or self._compare_properties(ran)
            if fault is not None:
                del self.tables[model.name]
                self._differ(number, model.name, fault)
        self._compare_hooks(number, round_, results, is_cancelled)
        self.statuses |= results
        self.judged.seconds["compare"] += time.monotonic() - began

    def _prepare(self, number: int, round_: Round) -> dict[str, Row]:
        """What other programs do before the run, and the rows that they write during it."""
        late: dict[str, Row] = {}
        for model in map(round_.settled, self.case.models):
            table = None if model.name in self.others_possible else self.tables.get(model.name)
            if model.name in round_.adopted and table is not None and is_adoptable(model, table):
                if wrong := self.others.adopt(model, table):
                    del self.tables[model.name]
                    self._differ(number, model.name, Fault("adopt", wrong))
                elif is_unique(model, table):
                    self.tables[model.name] = table = replace(table, form="keyed")
            if model.name in round_.evolved and table is not None and can_evolve(model, table):
                self.others.evolve(model)
                self.judged.met["evolved"] += 1
                self.tables[model.name] = table = replace(table, old_files="some")
            if model.name in round_.late and model.name in self.tables:
                row = late_row(model, table, round_)
                if row is not None and table is not None:
                    late[model.name] = row
                    early = lands_early(model, table, row, round_)
                    self.others.late[model.name] = LateUpsert(model, batch_of(row, table), early)
        return late

    def _compared(self, round_: Round, results: dict[str, Any]) -> list[Model]:
        """The models whose rows are compared. A view that did not run may read what is not there any more."""
        known = [one for one in self.case.models if one.name in self.tables]
        views = [round_.settled(one) for one in known if round_.settled(one).kind == "view"]
        shown = {one.name: shown_by(one, self.tables[one.name], round_, results) for one in views}
        self.left_alone = {name: table for name, table in shown.items() if table is not None}
        left = {one.name for one in views if is_left_alone(one, self.tables[one.name], round_, results)}
        unknown = (shown.keys() - results.keys() | left) - self.left_alone.keys()
        return [one for one in known if one.name not in unknown]

    def _dbt(self, words: list[str]) -> Any:
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return dbtRunner().invoke([*words, *folders, "--log-level", "none", "--log-level-file", "none"])

    def _differ(self, number: int, model: str, fault: Fault) -> None:
        kind = next((one.kind for one in self.case.models if one.name == model), "")
        why = f"{kind}: {fault.text}" if kind else fault.text
        self.judged.differences.append(Difference(self.case.seed, number, model, why, fault.kind))

    # One model

    def _compare(self, ran: RanModel, found: StoredTable | Fault | None) -> Fault | None:
        """What is wrong after a round; ``None`` if nothing is."""
        model = ran.model
        after = ran.after()
        if ran.result is not None:
            self.judged.met[f"{model.kind}: {'written' if after.wrote else 'refused'}"] += 1
            self.judged.refused += ran.failed
        if after.fault is not None:
            return after.fault
        if isinstance(found, Fault):
            return found
        if model.kind == "view" and ran.result is None and ran.cut:
            # It may have been replaced before the run was cancelled.
            return self._settle_cut_view(model, after, found)
        if model.kind == "view" and (
            ran.result is None or is_left_alone(model, ran.before, ran.round, {model.name: ran.result})
        ):
            shown = self.left_alone.get(model.name)
            self.judged.met["view: left alone"] += shown is not None
            if shown is None or found is None or as_found(model, shown) == found:
                return None
            return Fault("view", f"it was left alone: {as_found(model, shown).describe(found)}")
        for table in after.candidates:
            expected = None if table is None else as_found(model, table)
            if expected == found:
                self.tables[model.name] = table
                return None
        first = after.candidates[0]
        if after.may_have_changed and first is not None and found is not None:
            changed = with_columns_of(first, found, may_drop=after.may_have_dropped)
            if changed is not None and as_found(model, changed) == found:
                self.tables[model.name] = changed
                return None
        status = "" if ran.result is None else ran.result.status
        reported = f"reported {status} {ran.message}"
        if first is None or found is None:
            return Fault("existence", f"it is {'not there' if found is None else 'there'}; {reported}")
        expected = as_found(model, first)
        kind = "rows" if expected.types == found.types else "columns"
        return Fault(kind, f"{expected.describe(found)}; {reported}")

    def _settle_cut_view(self, model: Model, after: AllowedOutcomes, found: Any) -> None:
        """Decide which view there is; if that is not known, it is not looked at again."""
        tables = [
            table for table in after.candidates if table is not None and as_found(model, table) == found
        ]
        if tables:
            self.tables[model.name] = tables[0]
        else:
            del self.tables[model.name]

    def _compare_properties(self, ran: RanModel) -> Fault | None:
        if ran.failed or ran.keeps_batches or ran.model.kind in ("view", "seed", "auto"):
            return None
        wrong = wrong_properties(self.catalog, self.schema, ran.model)
        return Fault("properties", wrong) if wrong else None

    def _compare_hooks(self, number: int, round_: Round, results: dict[str, Any], is_cancelled: bool) -> None:
        """Which statements of hooks have run."""
        if not any(has_hooks(model) for model in self.case.models):
            return
        found: Counter[tuple[str, str]] = Counter()
        if any(one.name == HOOK_LOG for one in self.catalog.list_names(self.schema)):
            logged = self.bench.sql(f"SELECT model, step FROM lake.{self.schema}.{HOOK_LOG}").collect()
            found.update(tuple(row) for row in logged)
        for model in self.case.models:
            ran = Counter(
                {
                    step: count - self.steps[model.name, step]
                    for (name, step), count in found.items()
                    if name == model.name and count != self.steps[model.name, step]
                }
            )
            result = results.get(model.name)
            cut = is_cancelled or model.name in round_.ends
            if result is None and not cut:
                why = f"it did not run, and its hooks left {ran}" if ran else ""
            else:
                why = wrong_steps(ran, result is None or is_failure(result), cut) if has_hooks(model) else ""
            if why:
                self._differ(number, model.name, Fault("hooks", why))
        self.steps = found

    def _read(self, models: list[Model]) -> dict[str, StoredTable | Fault]:
        """What the tables of models hold, by name, from one statement if all can be read."""
        parts = [self._part(place, models) for place in range(len(models))]
        try:
            return dict(self._found(models, self.bench.sql("\nUNION ALL\n".join(parts))))
        except PySparkException as error:
            if len(models) == 1:
                return {models[0].name: Fault("unreadable", f"it cannot be read: {error}")}
        found: dict[str, StoredTable | Fault] = {}
        for model in models:
            found |= self._read([model])
        return found

    def _part(self, place: int, models: list[Model]) -> str:
        """The rows of one model as structs, in a column of its own."""
        cells = ["struct(t.*)" if other == place else "NULL" for other in range(len(models))]
        columns = ", ".join(f"{cell} AS c{number}" for number, cell in enumerate(cells))
        return f"SELECT {columns} FROM lake.{self.schema}.{quote(models[place].name)} AS t"

    def _found(self, models: list[Model], frame: Any) -> Iterator[tuple[str, StoredTable | Fault]]:
        collected = frame.collect()
        for model, column in zip(models, frame.schema.fields, strict=True):
            fields = column.dataType.fields
            types = {one.name.lower(): type_text(one.dataType) for one in fields}
            rows: Rows = Counter()
            for row in collected:
                if (struct := row[column.name]) is not None:
                    values = plain(struct, column.dataType)
                    rows[as_row(model, values, types)] += 1
            kept = {name: comparable_type(one) for name, one in types.items() if not is_own(model, name)}
            found = StoredTable(kept, rows)
            yield model.name, self._read_without_spark(model, types, rows) or found

    def _read_without_spark(self, model: Model, types: dict[str, str], rows: Rows) -> Fault | None:
        """How the rows differ that ``dbt_arctic.read`` reads."""
        name = Name("lake", self.schema, model.name)
        view = self.catalog.load_view(name.schema, name.identifier)
        if "variant" in str(types) or (view is not None and not is_keyed(view.properties)):
            return None
        try:
            read = rows_of_arrow(model, read_table(self.catalog, name), types)
        except ArcticError as error:
            return Fault("read", f"it cannot be read without Spark: {error}")
        missing, more = in_order(rows - read), in_order(read - rows)
        return (
            Fault("read", f"read without Spark: missing {missing}, too many {more}")
            if missing or more
            else None
        )
