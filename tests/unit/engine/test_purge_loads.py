"""How often a drop loads its table; `tests/spark/engine/test_purge.py` drops real ones."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from dbt_arctic.engine.purge import purge
from dbt_arctic.engine.statement import Statement

MISSING = "org.apache.iceberg.exceptions.NoSuchTableException"


class Catalog:
    """Iceberg's catalog, as py4j presents it."""

    def __init__(self, fails: str = "") -> None:
        self.fails, self.asked = fails, []  # type: tuple[str, list[str]]

    def getClass(self) -> Any:  # noqa: N802  # Java's
        return SimpleNamespace(getName=lambda: "org.apache.iceberg.jdbc.JdbcCatalog")

    def tableExists(self, table: Any) -> bool:  # noqa: N802
        self.asked.append("exists")
        return not self.fails

    def loadTable(self, table: Any) -> Any:  # noqa: N802
        self.asked.append("load")
        if self.fails:
            kind = SimpleNamespace(getName=lambda: self.fails)
            raise Py4JJavaError("it failed", SimpleNamespace(_target_id="o1", getClass=lambda: kind))
        metadata = SimpleNamespace(
            previousFiles=lambda: SimpleNamespace(size=lambda: 0),
            metadataFileLocation=lambda: "file:/t/metadata/00000-a.metadata.json",
        )
        operations = SimpleNamespace(current=lambda: metadata)
        return SimpleNamespace(operations=lambda: operations, properties=dict)

    def dropTable(self, table: Any, purges: bool) -> None:  # noqa: N802
        self.asked.append("drop")


def dropped(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr("dbt_arctic.engine.iceberg_api.active_session", nullcontext)
    monkeypatch.setattr(
        "dbt_arctic.engine.purge.table_identifier", lambda session, schema, name: f"{schema}.{name}"
    )
    spark_catalog = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: "org.apache.iceberg.spark.SparkCatalog"),
        icebergCatalog=lambda: catalog,
    )
    manager = SimpleNamespace(isCatalogRegistered=lambda name: True, catalog=lambda name: spark_catalog)
    state = SimpleNamespace(catalogManager=lambda: manager)
    session = SimpleNamespace(_jsparkSession=SimpleNamespace(sessionState=lambda: state))
    sql = "DROP TABLE IF EXISTS `lake`.`shop`.`t` PURGE"
    return purge(session, cast(Statement, SimpleNamespace(verb="DROP", sql=sql)))


def test_a_table_is_loaded_once_before_its_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog()
    assert dropped(catalog, monkeypatch)
    assert catalog.asked == ["load", "drop"]


def test_a_table_that_does_not_exist_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(MISSING)
    assert not dropped(catalog, monkeypatch)
    assert catalog.asked == ["load"]


def test_another_error_of_the_catalog_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Py4JJavaError):
        dropped(Catalog("java.sql.SQLException"), monkeypatch)
