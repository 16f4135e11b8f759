"""What of the suite's classes on grants can hold where there are none: a grant is refused."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.grants.test_invalid_grants import BaseInvalidGrants
from dbt.tests.util import relation_from_name, run_dbt, write_file


class TestInvalidGrants(BaseInvalidGrants):
    """Each grantee and each privilege is one that Spark does not know."""

    @pytest.fixture(scope="class", autouse=True)
    def some_user(self) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DBT_TEST_USER_2", "somebody")
            yield

    def grantee_does_not_exist_error(self) -> str:
        return "AR-301 grants contains select, but Spark has no GRANT for Iceberg tables"

    def privilege_does_not_exist_error(self) -> str:
        return "AR-301 grants contains fake_privilege, but Spark has no GRANT for Iceberg tables"

    def test_nothing_was_built(self, project: Any) -> None:
        relation = relation_from_name(project.adapter, "my_invalid_model")
        assert project.adapter.catalog.load_table(relation.schema, relation.identifier) is None

    def test_empty_grants_ask_for_nothing(self, project: Any) -> None:
        schema = "models: [{name: my_invalid_model, config: {materialized: table, grants: {select: []}}}]"
        write_file(schema, project.project_root, "models", "schema.yml")
        run_dbt(["run"])
