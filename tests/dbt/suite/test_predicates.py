"""The suite's classes on narrowed writes once more, where they say it for MERGE."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import test_incremental_merge_exclude_columns as suite
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates


@pytest.mark.long
class TestPredicatesOfMerge(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        reduced = {
            "+incremental_predicates": ["DBT_INTERNAL_DEST.id != 2"],
            "+incremental_strategy": "merge",
        }
        return {"models": reduced}


@pytest.mark.long
class TestMergeUpdateColumns(BaseMergeExcludeColumns):
    """The same outcome, from the columns that are to be updated."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        text = suite.models__merge_exclude_columns_sql
        return {
            "merge_exclude_columns.sql": text.replace(
                "merge_exclude_columns=['msg']", "merge_update_columns=['color']"
            )
        }


@pytest.mark.long
class TestMergeExcludeColumnsOfKeyedTables(BaseMergeExcludeColumns):
    """The same setting on a keyed table: a partial upsert."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        text = suite.models__merge_exclude_columns_sql
        return {"merge_exclude_columns.sql": text.replace("incremental_strategy='merge'", "buckets=1")}
