"""The suite's class on the kinds of relations in `dbt docs generate`."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes

KEYED = (
    "{{ config(materialized='incremental', unique_key='id', buckets=1) }} select * from {{ ref('my_seed') }}"
)


class TestCatalogRelationTypes(CatalogRelationTypes):
    """A keyed table in the place of a materialized view, which Spark does not have over Iceberg."""

    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW, "my_keyed_table.sql": KEYED}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [
            ("seed.test.my_seed", "table"),
            ("model.test.my_table", "table"),
            ("model.test.my_view", "view"),
            ("model.test.my_keyed_table", "keyed table"),
        ],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
