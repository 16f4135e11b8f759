"""The suite's basic classes: materializations, tests, documentation, adapter methods."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from tests.dbt.suite.statistics import of_table


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestSingularTests(BaseSingularTests):
    pass


@pytest.mark.long
class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestEmpty(BaseEmpty):
    pass


@pytest.mark.long
class TestEphemeral(BaseEphemeral):
    pass


@pytest.mark.long
class TestIncremental(BaseIncremental):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


@pytest.mark.long
class TestGenericTests(BaseGenericTests):
    pass


@pytest.mark.long
class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


@pytest.mark.long
class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


@pytest.mark.long
class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str) -> dict[str, Any]:
        return expected_catalog.base_expected_catalog(
            project,
            role=profile_user,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=expected_catalog.no_stats(),
            seed_stats=of_table(),
        )


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any, profile_user: str) -> dict[str, Any]:
        return expected_catalog.expected_references_catalog(
            project,
            role=profile_user,
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            bigint_type="bigint",
            view_type="view",
            table_type="table",
            model_stats=of_table(),
            view_summary_stats=expected_catalog.no_stats(),
        )


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        made = single_relation(project, "my_seed", "table")
        for name, shown in of_table().items():
            if name != "has_stats":
                made.stats[name] = StatsItem(**shown)
        return made

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return single_relation(project, "my_view_model", "view")


def single_relation(project: Any, name: str, kind: str) -> CatalogTable:
    types = {
        "id": "bigint",
        "first_name": "string",
        "email": "string",
        "ip_address": "string",
        "updated_at": "timestamp",
    }
    return CatalogTable(
        metadata=TableMetadata(
            type=kind, schema=project.test_schema, name=name, database="lake", comment=None, owner=""
        ),
        columns={
            column: ColumnMetadata(type=type_, index=index, name=column, comment=None)
            for index, (column, type_) in enumerate(types.items(), start=1)
        },
        stats={},
    )
