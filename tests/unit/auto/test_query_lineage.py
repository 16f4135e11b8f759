"""The column lineage of a model: through pulls, and up to the views that it reads."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dbt_arctic.auto import inputs
from dbt_arctic.auto.query_lineage import find_column_lineage
from dbt_arctic.auto.upstreams import Upstream, View
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import ArcticError, ConfigError, DamagedKeyedTable, UnknownRelation
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed

MODEL, ORDERS = Name("lake", "shop", "model"), Name("lake", "shop", "Orders")
RATES = Name("lake", "raw", "rates")
PULLED = "( /* incremental_pull(`lake`.`shop`.`Orders`) */\nSELECT id, ')' FROM (SELECT 1) -- (\n)"


@pytest.fixture(autouse=True)
def relations(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (("id", "bigint"), ("amount", "decimal(9,2)"))
    known = {
        ORDERS: Upstream(ORDERS, columns, ("id",), Consumed("o", "1"), {}, True),
        RATES: View(RATES, (("rate", "double"),), "SELECT amount AS rate FROM shop.Orders", RATES),
    }
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: known.get(name))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT id, amount * 2 AS twice, _action FROM {PULLED} AS o", {"id": ["id"], "twice": ["amount"]}),
        (f"WITH a AS (SELECT * FROM {PULLED}) SELECT count(*) AS n, max(id) AS m FROM a", {"m": ["id"]}),
        ("SELECT rate FROM lake.raw.rates", {"rate": ["rate"]}),
        ("SELECT id FROM (SELECT id FROM shop.Orders)", {"id": ["id"]}),
    ],
)
def test_values_come_from_columns_of_what_a_model_reads(sql: str, expected: dict[str, list[str]]) -> None:
    found = find_column_lineage(cast(Any, OneCatalog()), MODEL, sql)
    assert found is not None
    assert {name: [one.column for one in columns] for name, columns in found.items() if columns} == expected
    relation = RATES if "rates" in sql else ORDERS
    assert {one.relation for columns in found.values() for one in columns} == {relation}


def test_a_relation_that_cannot_be_read_leaves_the_lineage_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The documentation of a project does not depend on the state of each of its tables."""
    sql = "SELECT id FROM shop.Orders"
    assert find_column_lineage(cast(Any, OneCatalog()), MODEL, sql) is not None
    for error in (UnknownRelation, DamagedKeyedTable, ConfigError):

        def inspect(*arguments: Any, error: type[ArcticError] = error) -> None:
            raise error("broken")

        monkeypatch.setattr(inputs, "inspect_upstream", inspect)
        assert find_column_lineage(cast(Any, OneCatalog()), MODEL, sql) is None


def test_settings_with_which_sql_has_another_meaning_leave_the_lineage_unknown() -> None:
    sql, setting = 'SELECT "amount" AS a FROM shop.Orders', "spark.sql.ansi.doubleQuotedIdentifiers"
    assert find_column_lineage(cast(Any, OneCatalog()), MODEL, sql, f"{setting}=false") == {"a": ()}
    assert find_column_lineage(cast(Any, OneCatalog()), MODEL, sql, f"{setting}=true") is None


@pytest.mark.parametrize(
    "sql", ["SELECT id FROM shop.gone", "SELECT 'x", "INSERT INTO t SELECT 1", "SELECT gone FROM shop.Orders"]
)
def test_without_a_plan_the_lineage_is_unknown(sql: str) -> None:
    assert find_column_lineage(cast(Any, OneCatalog()), MODEL, sql) is None
