"""dbt's own adapter test suite on an embedded Spark: one Spark and one warehouse for each test worker.

The suite runs dbt inside this process and gives every class a schema of its own. dbt-arctic keeps one engine
for equal settings, so all classes of a worker share a Spark although the suite resets dbt's adapters.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403  # fixtures, for this folder only

from dbt_arctic.adapter.impl import ArcticAdapter

# Tests of the suite replace ``datetime``. Classes of pyiceberg that are made meanwhile never work again.
importlib.import_module("pyiceberg.table")

POSTGRES_TO_SPARK = (
    (r"\bTIMESTAMP WITHOUT TIME ZONE\b", "TIMESTAMP"),
    (r"\bTEXT\b", "STRING"),
    (r"\bvarchar\(\d+\) default null", "STRING"),
    (r"varchar\(\d+\) default 'dummy_value'", "STRING"),
    (r"(?<=[(, ])'(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)'", r"TIMESTAMP '\1'"),
    (r"(?<=[(, ])'(\d{4}-\d\d-\d\d)'", r"DATE '\1'"),
    (r'"(\w+)"', r"`\1`"),
)
"""The suite prepares its tables in PostgreSQL's dialect. Spark writes no text into a column of dates."""

_CASCADE = re.compile(r"drop schema if exists (\w+) cascade", re.IGNORECASE)


def in_spark_sql(text: str) -> list[str]:
    """The statements of a script of the suite, in Spark's dialect."""
    for pattern, replacement in POSTGRES_TO_SPARK:
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    without_comments = re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE)
    return [statement for statement in without_comments.split(";") if statement.strip()]


@pytest.fixture(scope="session")
def dbt_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this worker's tables."""
    return tmp_path_factory.mktemp("suite_warehouse")


def profile_target(warehouse: Path) -> dict[str, Any]:
    return {
        "type": "arctic",
        "method": "session",
        "catalog": "lake",
        "warehouse": str(warehouse),
        "master": "local[2]",
        "driver_memory": "2g",
        "threads": 2,
        # The tables have a few rows: what costs is to plan, to compile and to start tasks.
        "spark_conf": {
            "spark.sql.shuffle.partitions": 1,
            "spark.sql.leafNodeDefaultParallelism": 1,
            "spark.sql.codegen.wholeStage": False,
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": False,
        },
    }


@pytest.fixture(scope="class")
def dbt_profile_target(dbt_warehouse: Path) -> dict[str, Any]:
    return profile_target(dbt_warehouse)


@pytest.fixture(scope="class")
def profile_user() -> str:
    """The owner that the suite expects of each relation: a folder of files has none."""
    return ""


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory, prefix: str) -> Iterator[str]:
    """dbt's logs of one class; the suite's own fixture writes them into the repository."""
    folder = str(tmp_path_factory.mktemp("logs") / prefix)
    settings = {"DBT_LOG_PATH": folder, "DBT_LOG_LEVEL_FILE": "none"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        yield folder


@pytest.fixture(scope="session")
def shared_data_dir() -> str:
    """Data that tests share: here there is none."""
    return ""


@pytest.fixture(scope="class")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a test may make its data; the suite's own fixture writes into the repository."""
    return tmp_path_factory.mktemp("data") / "made_by_the_test"


@pytest.fixture(autouse=True, scope="session")
def _schemas_are_left() -> Iterator[None]:
    """Classes do not drop their schema at the end: no other class uses its name, and dropping is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestProjInfo, "drop_test_schema", lambda project: None)  # noqa: F405
        yield


def drop_quickly(adapter: ArcticAdapter, relation: Any) -> None:
    """Like the adapter's own way, but that the files stay: to look for them is a Spark job for each table."""
    for entry in adapter.list_everything(relation):
        adapter.execute(f"drop {entry.type} if exists {entry.render()}")
    adapter.execute(f"drop schema if exists {relation.without_identifier()}")
    adapter.cache.drop_schema(relation.database, relation.schema)


@pytest.fixture(autouse=True, scope="class")
def _schemas_are_dropped_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Between its tests and at its end a class drops its schema; one that is there to test this says so."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.cls, "drops_like_a_user", False):
            patch.setattr(ArcticAdapter, "drop_schema", drop_quickly)
        yield


def tables_in_schema(project: TestProjInfo) -> dict[str, str]:  # noqa: F405
    with project.adapter.connection_named("__test"):
        found = project.adapter.list_relations(project.database, project.test_schema)
    return {relation.identifier: str(relation.type) for relation in found}


@pytest.fixture(autouse=True, scope="session")
def _tables_are_listed_without_information_schema() -> Iterator[None]:
    """Spark has none, so the adapter lists a schema."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestProjInfo, "get_tables_in_schema", tables_in_schema)  # noqa: F405
        yield


@pytest.fixture(autouse=True, scope="session")
def _suite_speaks_spark() -> Iterator[None]:
    run_one = ArcticAdapter.run_sql_for_tests

    def run(adapter: ArcticAdapter, sql: str, fetch: str | None, connection: Any) -> Any:
        rows = None
        for statement in in_spark_sql(sql):
            if (dropped := _CASCADE.fullmatch(statement.strip())) is not None:
                # Iceberg does not drop what a schema contains.
                relation = adapter.Relation.create(adapter.config.credentials.database, dropped[1])
                adapter.drop_schema(relation.without_identifier())
                continue
            rows = run_one(adapter, statement, fetch, connection)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArcticAdapter, "run_sql_for_tests", run)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The suite defines fixtures in a way that pytest 10 will no longer accept.
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning"))
