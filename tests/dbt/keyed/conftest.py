"""A small dbt project that a test controls: sources, models, `dbt run`, and a process that ends anywhere."""

from __future__ import annotations

import json
import math
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.auto import few_rows, plan_model
from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import load_keyed
from tests.dbt.keyed.database_servers import Server, running_server
from tests.dbt.keyed.kafka_topics import Broker, add_reader, broker

SETTINGS = {"master": "local[2]", "driver_memory": "2g"}
SPARK_CONF = {
    # A handful of rows, hundreds of statements: what costs is to plan, to compile and to start tasks.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


PURGE = re.compile(r"(?<=\S)\s+PURGE\s*$", re.IGNORECASE)
"""Left out of what is sent to Spark: deleting the files of a table takes 0.4 CPU seconds.

Classes of dbt's suite with ``drops_like_a_user`` do it.
"""


class Killed(Exception):
    """The process ended here: no later statement runs, not even a clean-up."""


@dataclass
class Script:
    """What happens at each statement of dbt: it is noted, and the run of a model may end there.

    ``ends`` says for a model's name at which of the statements that mention it its run ends, and whether
    before or right after that statement. So one invocation stands for many processes that died.
    """

    ran: list[str] = field(default_factory=list)
    jobs: int = 0
    ends: dict[str, tuple[int, bool]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def run(self, sql: str, execute: Callable[[], None]) -> None:
        name = next((name for name in self.ends if re.search(rf"\b{name}(__|\b)", sql)), None)
        if name is None:
            execute()
            self.ran.append(sql)
            return
        at, after = self.ends[name]
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        if count > at or (count == at and not after):
            raise Killed(f"{name} had ended before: {sql}")
        execute()
        self.ran.append(sql)
        if count == at:
            raise Killed(f"{name} ended after: {sql}")


@dataclass
class Shop:
    """A dbt project in a folder of its own, and the schema that it builds in."""

    folder: Path
    warehouse: Path
    schema: str
    connection: SessionConnection
    script: Script

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run SQL outside of dbt, like another tool."""
        cursor = self.connection.cursor()
        cursor.execute(text.format(s=f"lake.{self.schema}"))
        return cursor.fetchall()

    def rows(self, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return sorted(self.sql(f"SELECT {columns} FROM {{s}}.{name}"), key=repr)

    def source(self, name: str, select: str) -> None:
        """Replace a source table."""
        self.sql(f"CREATE OR REPLACE TABLE {{s}}.{name} USING iceberg AS {select}")

    def model(self, name: str, text: str) -> None:
        (self.folder / "models" / f"{name}.sql").write_text(text, encoding="utf-8")

    def file(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def dbt(self, *arguments: str) -> Any:
        """Run dbt and expect success; returns its results."""
        outcome = self.try_dbt(*arguments)
        assert outcome.success, self.messages(outcome)
        return outcome.result

    def fail(self, *arguments: str) -> str:
        """Run dbt and expect failure; returns what it says."""
        outcome = self.try_dbt(*arguments)
        assert not outcome.success
        return self.messages(outcome)

    def try_dbt(self, *arguments: str) -> Any:
        self.script.ran, self.script.jobs = [], 0
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return dbtRunner().invoke([*arguments, *folders, "--quiet", "--no-use-colors"])

    def refusals(self, *arguments: str) -> dict[str, str]:
        """Run dbt, of which each model is to fail; what it says of each."""
        outcome = self.try_dbt(*arguments)
        assert outcome.exception is None, outcome.exception
        assert {str(result.status) for result in outcome.result.results} == {"error"}
        return {result.node.name: str(result.message) for result in outcome.result.results}

    @staticmethod
    def messages(outcome: Any) -> str:
        if outcome.exception is not None:
            return str(outcome.exception)
        return "\n".join(str(result.message) for result in getattr(outcome.result, "results", []))

    @property
    def recorded(self) -> dict[str, dict[str, Any]]:
        """What ``run_results.json`` says of each node of the last run."""
        told = json.loads((self.folder / "target" / "run_results.json").read_text(encoding="utf-8"))
        return {entry["unique_id"].split(".")[2]: entry["adapter_response"] for entry in told["results"]}

    def end(self, ends: dict[str, tuple[int, bool]]) -> None:
        """End the runs of some models at a statement each; with an empty dict, of none."""
        self.script.ends, self.script.counts = ends, {}

    @property
    def catalog(self) -> EmbeddedCatalog:
        return EmbeddedCatalog("lake", self.warehouse)

    def log(self, name: str, side: str = "change") -> list[Snapshot]:
        """The commits of a keyed table's change or base table, newest first."""
        return self.state(name, side).history()

    def state(self, name: str, side: str) -> TableState:
        table = load_keyed(self.catalog, Name("lake", self.schema, name))
        state = self.catalog.load_table(self.schema, getattr(table, side).identifier)
        assert state is not None
        return state


@pytest.fixture(autouse=True)
def whatever_it_takes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How an automatic model is refreshed depends on what earlier refreshes took, and a machine may be slow.

    It also depends on the number of rows, of which tables of tests have few. Tests that are not about that do
    without.
    """
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
    if not getattr(request.module, "BY_HISTORY", False):
        monkeypatch.setattr(plan_model, "timings", lambda history: [])


@pytest.fixture(scope="session")
def shop_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop_warehouse")


@pytest.fixture(scope="session")
def shop_connection(shop_warehouse: Path) -> Iterator[SessionConnection]:
    settings = SparkSettings(
        catalog="lake",
        warehouse=str(shop_warehouse),
        spark_conf=SPARK_CONF,
        **SETTINGS,
    )
    made = SessionEngine(settings).connect()
    yield made
    made.close()


@pytest.fixture(scope="session")
def kafka_broker(
    tmp_path_factory: pytest.TempPathFactory, shop_connection: SessionConnection
) -> Iterator[Broker]:
    """A broker for all tests of a worker, and a Spark that can read from it."""
    folder = tmp_path_factory.mktemp("kafka")
    with broker(folder) as made:
        add_reader(shop_connection, folder)
        yield made


@pytest.fixture(scope="session")
def postgres_server(
    tmp_path_factory: pytest.TempPathFactory, shop_connection: SessionConnection
) -> Iterator[Server]:
    """A PostgreSQL for all tests of a worker, and a Spark that can read from it."""
    with running_server("postgresql") as made:
        add_reader(shop_connection, tmp_path_factory.mktemp("postgresql"), "postgresql")
        yield made


@pytest.fixture(scope="session")
def mariadb_alone() -> Iterator[Server]:
    """A MariaDB for all tests of a worker."""
    with running_server("mariadb") as made:
        yield made


@pytest.fixture(scope="session")
def mariadb_server(
    tmp_path_factory: pytest.TempPathFactory, shop_connection: SessionConnection, mariadb_alone: Server
) -> Server:
    """The same, and a Spark that can read from it."""
    add_reader(shop_connection, tmp_path_factory.mktemp("mariadb"), "mariadb")
    return mariadb_alone


@pytest.fixture
def dbt_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """dbt writes its log file, as it does for users. Comes before ``shop``."""
    monkeypatch.setenv("DBT_LOG_LEVEL_FILE", "debug")


@pytest.fixture
def shop(tmp_path: Path, shop_warehouse: Path, shop_connection: SessionConnection) -> Iterator[Shop]:
    with opened_shop(tmp_path, shop_warehouse, shop_connection) as made:
        yield made


@contextmanager
def opened_shop(folder: Path, warehouse: Path, connection: SessionConnection) -> Iterator[Shop]:
    """A project in a folder. Once it is closed, its tables can still be read."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        # Only a few tests read dbt's log file. Each line of it takes a dozen calls of the file system.
        monkeypatch.setenv("DBT_LOG_LEVEL_FILE", os.environ.get("DBT_LOG_LEVEL_FILE", "none"))
        made = _opened(folder, warehouse, connection, monkeypatch)
        before = os.getcwd()
        yield made
        os.chdir(before)
        reset_adapters()  # dbt keeps the last one, and would give it to the next test of the process


def _opened(
    folder: Path, warehouse: Path, connection: SessionConnection, monkeypatch: pytest.MonkeyPatch
) -> Shop:
    script = Script()
    execute = SessionCursor.execute

    def scripted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
        if cursor._connection is connection:
            execute(cursor, sql, bindings)
            return
        script.run(sql, lambda: execute(cursor, PURGE.sub("", sql), bindings))
        script.jobs += cursor.job_count or 0

    monkeypatch.setattr(SessionCursor, "execute", scripted)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    schema = f"shop_{uuid.uuid4().hex[:10]}"
    made = Shop(folder, warehouse, schema, connection, script)
    made.file("dbt_project.yml", yaml.safe_dump({"name": "shop", "version": "1.0", "profile": "shop"}))
    target = {
        "type": "arctic",
        "warehouse": str(warehouse),
        "schema": schema,
        "threads": 1,
        "spark_conf": SPARK_CONF,
        **SETTINGS,
    }
    made.file("profiles.yml", yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}}))
    tables = [{"name": name} for name in ("raw_orders", "raw_events", "missing")]
    made.file(
        "models/sources.yml",
        yaml.safe_dump({"version": 2, "sources": [{"name": "raw", "schema": schema, "tables": tables}]}),
    )
    made.sql("CREATE SCHEMA {s}")
    return made


class Terminal:
    """Types commands of ours in the shop's project."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def __call__(self, *arguments: str, code: int = 0, answer: str | None = None) -> str:
        folders = ["--project-dir", str(self.shop.folder), "--profiles-dir", str(self.shop.folder)]
        result = CliRunner().invoke(main, [*arguments, *folders], input=answer)
        assert result.exit_code == code, result.output + repr(result.exception)
        return result.output

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))


@pytest.fixture
def type_in(shop: Shop) -> Terminal:
    return Terminal(shop)
