"""Settings that have no effect on a model as it is configured are warnings that say where they have one."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.refresh.ineffective_settings import ineffective_settings, settings_for_many

KEYED = {"materialized": "incremental", "unique_key": "id"}


@pytest.mark.parametrize(
    ("config", "name", "on"),
    [
        ({"materialized": "table", "unique_key": "id"}, "unique_key", "materialized='table'"),
        ({"materialized": "view", "unique_key": "id"}, "unique_key", "materialized='view'"),
        ({"materialized": "table", "incremental_strategy": "auto"}, "incremental_strategy", "='table'"),
        ({"materialized": "table", "auto": "strict"}, "auto", "='table'"),
        ({"materialized": "seed", "before_images": True}, "before_images", "a seed"),
        ({"materialized": "table", "on_schema_change": "fail"}, "on_schema_change", "='table'"),
        ({"materialized": "view", "compaction": {"trigger": {"files": 2}}}, "compaction", "='view'"),
        ({"materialized": "snapshot", "buckets": 4, "unique_key": "id"}, "buckets", "a snapshot"),
        ({"materialized": "incremental", "sort_by": "id"}, "sort_by", "without a keyed table"),
        ({**KEYED, "incremental_strategy": "merge", "buckets": 4}, "buckets", "without a keyed table"),
        ({**KEYED, "incremental_strategy": "append"}, "unique_key", "the strategy 'append'"),
        ({**KEYED, "batch_size": "day"}, "batch_size", "the strategy 'upsert'"),
        ({"materialized": "view", "partition_by": "day(at)"}, "partition_by", "='view'"),
        ({"materialized": "ephemeral", "tblproperties": {"a": "b"}}, "tblproperties", "='ephemeral'"),
    ],
)
def test_a_setting_without_effect_is_reported(config: dict[str, Any], name: str, on: str) -> None:
    found = ineffective_settings("orders", config)
    ((setting, problem),) = found
    assert setting == name
    assert problem.what.startswith(f"{name} has no effect ")
    assert on in problem.what
    assert problem.where == "orders"
    assert problem.why
    assert problem.fix


@pytest.mark.parametrize(
    "config",
    [
        {**KEYED, "buckets": 4, "sort_by": "id", "compaction": {"trigger": {}}, "on_schema_change": "fail"},
        {**KEYED, "incremental_strategy": "merge", "merge_update_columns": ["a"], "partition_by": "day(at)"},
        {**KEYED, "incremental_strategy": "microbatch", "batch_size": "day", "begin": "2026-01-01"},
        {**KEYED, "incremental_strategy": "insert_overwrite", "partition_by": "day(at)"},
        {"materialized": "materialized_view", "unique_key": "id", "buckets": 4, "auto": "strict"},
        {
            "materialized": "table",
            "on_schema_change": "ignore",
            "partition_by": "id",
            "tblproperties": {"a": "b"},
        },
        {"materialized": "snapshot", "unique_key": "id", "partition_by": "id"},
        {"materialized": "of_the_project", "unique_key": "id", "buckets": 4},
        {"materialized": "table", "unique_key": None, "incremental_strategy": None, "auto": {}},
    ],
)
def test_a_setting_with_an_effect_is_not_reported(config: dict[str, Any]) -> None:
    assert ineffective_settings("orders", config) == []


def test_a_setting_that_the_project_sets_for_many_models_is_not_reported() -> None:
    for_many = settings_for_many({"shop": {"marts": {"+unique_key": "id"}}})
    config = {"materialized": "table", "unique_key": "id", "buckets": 4}
    assert [name for name, _ in ineffective_settings("orders", config, for_many)] == ["buckets"]
    assert settings_for_many(None) == frozenset()
