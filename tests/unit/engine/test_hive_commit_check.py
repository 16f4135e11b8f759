"""The server of a Hive catalog is tested only where nothing else protects a commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from dbt_arctic.engine.hive_commit_check import ignores_location

HIVE = "org.apache.iceberg.hive.HiveCatalog"


@pytest.mark.parametrize(
    ("kind", "locks", "ignores"),
    [(HIVE, "false", True), (HIVE, "true", False), ("org.apache.iceberg.rest.RESTCatalog", "false", False)],
)
def test_a_metastore_that_accepts_a_wrong_location_ignores_it(kind: str, locks: str, ignores: bool) -> None:
    catalog: Any = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: kind),
        getConf=lambda: {"iceberg.engine.hive.lock-enabled": locks},
    )
    jvm = MagicMock()
    client = jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient.return_value
    assert ignores_location(jvm, catalog, "shop", "orders") is ignores
    assert client.alter_table_with_environmentContext.called is ignores
    assert client.close.called is ignores
