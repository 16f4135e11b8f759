"""The suite's classes on comments in the catalog, of tables, views and seeds."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)


class TestPersistDocs(BasePersistDocs):
    """And of the seed, which the suite describes but does not look at."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        docs = {"test": {"+persist_docs": {"relation": True, "columns": True}}}
        return {"models": docs, "seeds": docs}

    def test_a_seed_has_comments(self, project: Any) -> None:
        seed = project.adapter.catalog.load_table(project.test_schema, "seed")
        assert seed.properties["comment"].startswith("Seed model description")
        self._assert_common_comments(seed.properties["comment"], *(column.comment for column in seed.columns))


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    pass


@pytest.mark.long
class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


@pytest.mark.long
class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    pass


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    pass


class TestPersistDocsOfAView(BasePersistDocsCommentOnQuotedColumn):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        docs = {"relation": True, "columns": True}
        return {"models": {"test": {"materialized": "view", "+persist_docs": docs}}}
