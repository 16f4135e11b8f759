"""The suite's classes on materialized views, which are automatic models."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.materialized_view import files
from dbt.tests.adapter.materialized_view.basic import MaterializedViewBasic
from dbt.tests.adapter.materialized_view.changes import (
    MaterializedViewChanges,
    MaterializedViewChangesApplyMixin,
    MaterializedViewChangesContinueMixin,
    MaterializedViewChangesFailMixin,
)
from dbt.tests.util import get_model_file, run_dbt, set_model_file

from dbt_arctic.keyed.table import KeyedTable

END = "\n) }}"
"""The end of the config of a model of the suite."""


def with_setting(model: str, setting: str) -> str:
    assert model.count(END) == 1
    return model.replace(END, f"\n    {setting},{END}")


def with_key(model: str) -> str:
    """A model of the suite with a key, which an automatic model needs."""
    return with_setting(model, "unique_key='id'")


def relation_type(project: Any, relation: Any) -> str | None:
    """The type as dbt lists it when an invocation begins."""
    with project.adapter.connection_named("__test"):
        listed = project.adapter.list_relations_without_caching(relation.without_identifier())
    types = [str(one.type) for one in listed if one.identifier == relation.identifier]
    return types[0] if types else None


class OwnSettings:
    """The fixtures and methods that the classes require."""

    query_relation_type = staticmethod(relation_type)

    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {
            "my_table.sql": with_key(files.MY_TABLE),
            "my_view.sql": with_key(files.MY_VIEW),
            "my_materialized_view.sql": with_key(files.MY_MATERIALIZED_VIEW),
        }


class TestMaterializedViewBasic(OwnSettings, MaterializedViewBasic):
    @staticmethod
    def insert_record(project: Any, table: Any, record: tuple[int, int]) -> None:
        project.run_sql(f"insert into {table} values {record}")

    @staticmethod
    def refresh_materialized_view(project: Any, materialized_view: Any) -> None:
        run_dbt(["run", "--models", materialized_view.identifier])

    @staticmethod
    def query_row_count(project: Any, relation: Any) -> int:
        return int(project.run_sql(f"select count(*) from {relation}", fetch="one")[0])


class Changes(OwnSettings, MaterializedViewChanges):
    """A table property is changed in place, another layout needs a rebuild."""

    @staticmethod
    def check_start_state(project: Any, materialized_view: Any) -> None:
        assert state(project, materialized_view) == (None, ("id",))

    @staticmethod
    def change_config_via_alter(project: Any, materialized_view: Any) -> None:
        set_config(project, materialized_view, "tblproperties={'owner.team': 'sales'}")

    @staticmethod
    def check_state_alter_change_is_applied(project: Any, materialized_view: Any) -> None:
        assert state(project, materialized_view)[0] == "sales"

    @staticmethod
    def change_config_via_replace(project: Any, materialized_view: Any) -> None:
        set_config(project, materialized_view, "sort_by='value'")

    @staticmethod
    def check_state_replace_change_is_applied(project: Any, materialized_view: Any) -> None:
        assert state(project, materialized_view)[1] == ("value",)


class TestApply(Changes, MaterializedViewChangesApplyMixin):
    pass


class TestContinue(Changes, MaterializedViewChangesContinueMixin):
    pass


class TestFail(Changes, MaterializedViewChangesFailMixin):
    pass


def set_config(project: Any, relation: Any, setting: str) -> None:
    set_model_file(project, relation, with_setting(get_model_file(project, relation), setting))


def state(project: Any, relation: Any) -> tuple[str | None, tuple[str, ...]]:
    """The property that a test sets, and the columns by which the table is sorted."""
    with project.adapter.connection_named("__test"):
        table: KeyedTable = project.adapter.keyed_table(relation)
        base = project.adapter.catalog.load_table(table.base.schema, table.base.identifier)
    return base.properties.get("owner.team"), table.layout.sort_by
