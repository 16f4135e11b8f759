"""The suite's snapshot class a second time, of a keyed table that follows a plain one by pulls."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_snapshot import common
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot
from dbt.tests.util import run_dbt

FACT = """{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns') }}
select * from {{ incremental_pull(source('working', 'fact_rows'), unique_key='id') }}"""
SOURCES = """sources:
  - name: working
    schema: "{{ target.schema }}"
    tables: [{name: fact_rows}]
"""


@pytest.mark.long
class TestSnapshotOfKeyedTable(BaseSimpleSnapshot):
    """The suite writes to `fact` directly. Here it writes to another table, which `fact` reads."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"fact.sql": FACT, "sources.yml": SOURCES}

    def create_fact_from_seed(self, where: str | None = None) -> None:
        common.clone_table(self.project, "fact_rows", "seed", "*", where)
        run_dbt(["run", "--full-refresh"])

    def update_fact_records(self, updates: dict[str, str], where: str | None = None) -> None:
        common.update_records(self.project, "fact_rows", updates, where)
        run_dbt(["run"])

    def insert_fact_records(self, where: str | None = None) -> None:
        common.insert_records(self.project, "fact_rows", "seed", "*", where)
        run_dbt(["run"])

    def delete_fact_records(self, where: str | None = None) -> None:
        common.delete_records(self.project, "fact_rows", where)
        run_dbt(["run"])

    def add_fact_column(self, column: Any = None, definition: Any = None) -> None:
        common.add_column(self.project, "fact_rows", column, definition)
