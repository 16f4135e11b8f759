"""The suite's classes on relations: changed kinds, dropped schemas, cache, ephemeral models, `--empty`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.util import check_relations_equal, get_relation_columns, run_dbt


@pytest.mark.long
class TestChangeRelationType(BaseChangeRelationTypeValidator):
    pass


class TestDropSchemaNamed(BaseDropSchemaNamed):
    pass


class TestCachingLowercaseModel(BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(BaseNoPopulateCache):
    pass


@pytest.mark.long
class TestEphemeralMulti(BaseEphemeralMulti):
    """As in the suite; the text of the view is Spark's, and lists the columns of the query."""

    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])
        expected = f"""
            with __dbt__cte__base as (
            select * from {project.test_schema}.seed
            ), __dbt__cte__base_copy as (
            select * from __dbt__cte__base
            ) -- base_copy just pulls from base. Make sure the listed
            -- graph of CTEs all share the same dbt_cte__base cte
            select * from __dbt__cte__base where gender = 'Male'
            union all
            select * from __dbt__cte__base_copy where gender = 'Female'
            """
        assert without_spaces(expected) in without_spaces(written_sql("double_dependent"))


class TestEphemeralNested(BaseEphemeralNested):
    """As in the suite; the text of the view is Spark's, and lists the columns of the query."""

    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        expected = f"""
            with __dbt__cte__ephemeral_level_two as (
            select * from `lake`.`{project.test_schema}`.`source_table`
            ), __dbt__cte__ephemeral as (
            select * from __dbt__cte__ephemeral_level_two
            ) select * from __dbt__cte__ephemeral
            """
        assert without_spaces(expected) in without_spaces(written_sql("root_view"))


@pytest.mark.long
class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestEmpty(BaseTestEmpty):
    pass


class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    """dbt 1.11 knows `--empty` in `dbt build`, and not yet in `dbt seed`."""

    def test_seed_empty_creates_table_with_zero_rows(self, project: Any) -> None:
        run_dbt(["build", "--empty", "--select", "raw_seed"])
        self.assert_row_count(project, "raw_seed", 0)

    def test_seed_empty_preserves_column_types(self, project: Any) -> None:
        run_dbt(["build", "--empty", "--select", "raw_seed"])
        empty_types = get_relation_columns(project.adapter, "raw_seed")
        run_dbt(["seed"])
        self.assert_row_count(project, "raw_seed", 2)
        assert get_relation_columns(project.adapter, "raw_seed") == empty_types


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            # Iceberg widens numbers, and nothing else.
            "alter_column_type.sql": _models.ALTER_COLUMN_TYPE.replace("varchar", "string"),
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns.sql": _models.ALTER_RELATION_ADD_REMOVE_COLUMNS.replace(
                "varchar", "string"
            ),
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }


def written_sql(model: str) -> str:
    return Path("target", "run", "test", "models", f"{model}.sql").read_text(encoding="utf-8")


def without_spaces(text: str) -> str:
    return re.sub(r"\s+", "", text)
