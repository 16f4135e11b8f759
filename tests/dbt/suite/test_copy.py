"""The suite's classes that copy a seed through models of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.util import run_dbt

from tests.dbt.suite.conftest import profile_target


@pytest.mark.long
class TestSimpleCopy(SimpleCopyBase):
    def test_simple_copy_with_materialized_views(self, project: Any) -> None:
        """As in the suite: what dbt did not make, a view over it and a view over that do not disturb a run.

        Spark has no materialized view over Iceberg, so an ordinary one takes its place.
        """
        project.run_sql("create table {schema}.unrelated_table (id int)")
        for name, source in (
            ("unrelated_materialized_view", "unrelated_table"),
            ("unrelated_view", "unrelated_materialized_view"),
        ):
            project.run_sql(f"create view {{schema}}.{name} as select * from {project.test_schema}.{source}")
        assert len(run_dbt(["seed"])) == 1
        assert len(run_dbt()) == 7


@pytest.mark.long
class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass


@pytest.mark.long
class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_warehouse: Path) -> dict[str, Any]:
        """The suite's class names a server of its own."""
        return profile_target(dbt_warehouse)
