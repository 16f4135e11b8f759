"""Both readers of the catalog that the shared Spark writes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from tests.spark.keyed.conftest import connection  # noqa: F401

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def embedded(warehouse: Path) -> EmbeddedCatalog:
    return EmbeddedCatalog("lake", warehouse)


@pytest.fixture
def by_sql(sql: Sql) -> SparkSqlCatalog:
    return SparkSqlCatalog("lake", sql)


@pytest.fixture
def schema(sql: Sql) -> str:
    """A fresh schema whose name needs quoting; it stays, as the warehouse is thrown away."""
    name = f"test `catalog`-{uuid.uuid4().hex[:8]}"
    sql(f"CREATE SCHEMA lake.{quoted(name)}")
    return name


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.fixture
def at(schema: str) -> str:
    """The schema as SQL names it, with its catalog."""
    return f"lake.{quoted(schema)}"
