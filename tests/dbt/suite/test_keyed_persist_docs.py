"""The suite's classes on comments in the catalog once more, with keyed tables."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.persist_docs import fixtures
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)


def keyed(model: str, key: str = "id") -> str:
    """A model of the suite as a keyed one."""
    config = "{{ config(materialized='incremental', unique_key='" + key + "') }}\n"
    return config + model.replace("{{ config(materialized='table') }}", "").replace(
        "{{ config(materialized='view') }}", ""
    )


class TestKeyedPersistDocs(BasePersistDocs):
    """All three models are keyed; the second run of each is an upsert, which publishes no view."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "no_docs_model.sql": keyed(fixtures._MODELS__NO_DOCS_MODEL),
            "table_model.sql": keyed(fixtures._MODELS__TABLE),
            "view_model.sql": keyed(fixtures._MODELS__VIEW),
        }

    def test_other_engines_see_the_comments_too(self, project: Any) -> None:
        base = project.adapter.catalog.load_table(project.test_schema, "table_model__base_1")
        view = project.adapter.catalog.load_view(project.test_schema, "table_model")
        self._assert_common_comments(base.properties["comment"], *(column.comment for column in base.columns))
        assert base.properties["comment"] == view.comment
        assert base.columns == view.columns


class TestKeyedPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"missing_column.sql": keyed(fixtures._MODELS__MISSING_COLUMN)}


@pytest.mark.long
class TestKeyedPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"all_columns_missing.sql": keyed(fixtures._MODELS__ALL_COLUMNS_MISSING)}


@pytest.mark.long
class TestKeyedPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"quoted_case_sensitive.sql": keyed(fixtures._MODELS__QUOTED_CASE_SENSITIVE, "mycol")}


@pytest.mark.long
class TestKeyedPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        model = keyed(fixtures._MODELS__QUOTED_PHYSICAL_CASE_MISMATCH, "MyCol")
        return {"quoted_physical_case_mismatch.sql": model}


class TestKeyedPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"quote_model.sql": keyed(fixtures._MODELS__MODEL_USING_QUOTE_UTIL, "2id")}
