"""The suite's classes a second time, on keyed tables: incremental, documentation, clone, concurrency.

Unique keys and changed schemas are in ``test_incremental``, snapshots in ``test_keyed_snapshots``.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic import expected_catalog, files, test_docs_generate
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.concurrency import test_concurrency
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency
from dbt.tests.adapter.dbt_clone import fixtures
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseClonePossible

from tests.dbt.suite.statistics import of_table

KEYED = "materialized='incremental', unique_key='id', buckets=1"


def keyed(models: dict[str, str], *found: str) -> dict[str, str]:
    """The suite's models with another materialization."""
    made = {}
    for name, text in models.items():
        for words in found:
            text = text.replace(words, KEYED)
        made[name] = text
    assert made != models
    return made


class TestIncrementalOfKeyedTables(BaseIncremental):
    drops_like_a_user = True

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        models = {"incremental.sql": files.incremental_sql, "schema.yml": files.schema_base_yml}
        return keyed(models, 'materialized="incremental"')


class TestDocsGenerateOfKeyedTables(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return keyed(
            {
                "schema.yml": test_docs_generate.models__schema_yml,
                "second_model.sql": test_docs_generate.models__second_model_sql,
                "readme.md": test_docs_generate.models__readme_md,
                "model.sql": test_docs_generate.models__model_sql,
            },
            "materialized='view'",
        )

    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str) -> dict[str, Any]:
        return expected_catalog.base_expected_catalog(
            project,
            role=profile_user,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="keyed table",
            table_type="table",
            model_stats=of_table(is_keyed=True),
            seed_stats=of_table(),
        )


@pytest.mark.long
class TestCloneOfKeyedTables(BaseClonePossible):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return keyed(
            {
                "table_model.sql": fixtures.table_model_sql,
                "view_model.sql": fixtures.view_model_sql,
                "ephemeral_model.sql": fixtures.ephemeral_model_sql,
                "schema.yml": fixtures.schema_yml,
                "exposures.yml": fixtures.exposures_yml,
            },
            "materialized='table'",
        )


@pytest.mark.long
class TestConcurrencyOfKeyedTables(BaseConcurrency):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "threads": 4}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return keyed(
            {
                "invalid.sql": test_concurrency.models__invalid_sql,
                "table_a.sql": test_concurrency.models__table_a_sql,
                "table_b.sql": test_concurrency.models__table_b_sql,
                "view_model.sql": test_concurrency.models__view_model_sql,
                "dep.sql": test_concurrency.models__dep_sql,
                "view_with_conflicting_cascade.sql": (
                    test_concurrency.models__view_with_conflicting_cascade_sql
                ),
                "skip.sql": test_concurrency.models__skip_sql,
            },
            'materialized = "table"',
        )
