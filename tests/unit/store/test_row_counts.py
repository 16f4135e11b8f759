"""The number of rows of a write: what Spark reports, what its commit records, or unknown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.connections import ArcticConnectionManager
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.plain import begin_plain_write, execute_plain_write
from dbt_arctic.store.context import Context
from dbt_arctic.store.row_counts import rows_written

ORDERS = Name("lake", "shop", "orders")


class Catalog(OneCatalog):
    """A catalog with one table, whose newest commit added three rows."""

    needs_spark = False

    def load_table(self, schema: str, identifier: str) -> Any:
        commit = SimpleNamespace(summary={"added-records": "3"})
        return SimpleNamespace(branches={"main": 1}, history=lambda snapshot: [commit])


def context_of(catalog: Catalog, *reported: int | None) -> Context:
    rows = list(reported)
    return Context(catalog, lambda step, sql, table=None: rows.pop(0), list, list)  # type: ignore[arg-type]


@pytest.mark.parametrize(("reported", "rows"), [(0, 0), (5, 5), (None, 3)])
def test_a_reported_number_counts_and_the_commit_is_read_otherwise(reported: int | None, rows: int) -> None:
    assert rows_written(context_of(Catalog()), reported, ORDERS) == rows


def test_an_unknown_number_of_one_statement_makes_the_total_unknown() -> None:
    write = begin_plain_write(context_of(Catalog()), ORDERS, statements=1, last_consumed={}, consumed={})
    statements = ["DELETE", "INSERT"]
    assert execute_plain_write(context_of(Catalog(), 2, 0), write, statements).rows == 2
    assert execute_plain_write(context_of(Catalog(), 2, None), write, statements).rows is None


@pytest.mark.parametrize(("rows", "message"), [(None, "OK"), (0, "OK 0"), (7, "OK 7")])
def test_dbt_gets_none_for_an_unknown_number(rows: int | None, message: str) -> None:
    cursor: Any = SimpleNamespace(known_rows=rows, statement_id="s", job_count=0)
    response = ArcticConnectionManager.get_response(cursor)
    assert (response.rows_affected, str(response)) == (rows, message)
