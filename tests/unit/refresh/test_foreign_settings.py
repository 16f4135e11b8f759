"""Settings that would have no effect are refused or reported, with what to use instead."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import OWN_SETTINGS
from dbt_arctic.refresh.foreign_settings import (
    SETTINGS_OF_OTHERS,
    STRATEGIES,
    reject_materialization,
    reject_misspelled,
    reject_without_effect,
    settings_without_effect,
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("unique_keys", "unique_key"),
        ("bucketby", "bucket_by"),
        ("dedupliate_by", "deduplicate_by"),
        ("full_refresh_over", "full_refresh_above"),
        ("before_image", "before_images"),
    ],
)
def test_a_misspelled_setting_says_what_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"AR-301.*'{typed}'.*'{meant}'"):
        reject_misspelled("m", ["tags", typed], ["tags", *OWN_SETTINGS])


def test_settings_of_others_and_of_users_are_not_misspelled() -> None:
    reject_misspelled("m", ["tags", "team", *sorted(SETTINGS_OF_OTHERS)], ["tags", *OWN_SETTINGS])
    assert not SETTINGS_OF_OTHERS & set(OWN_SETTINGS)


@pytest.mark.parametrize(
    ("config", "what", "fix"),
    [
        ({"not_matched_by_source_action": "delete"}, "not_matched_by_source_action", "delete_when"),
        ({"delete_condition": "src.gone"}, "delete_condition", "delete_when"),
        ({"delete_if": "gone"}, "delete_if", "delete_when"),
        ({"apply_as_deletes": "gone"}, "apply_as_deletes", "_action"),
        ({"sequence_col": "at"}, "sequence_col", "sequence_by"),
        ({"stored_as_scd_type": 2}, "stored_as_scd_type", "history"),
        ({"merge_with_schema_evolution": True}, "merge_with_schema_evolution", "on_schema_change"),
        ({"materialized": "table", "delete_when": "gone"}, "materialized='table'", "incremental"),
        ({"materialized": "view", "sequence_by": "at"}, "materialized='view'", "incremental"),
        ({"materialized": "incremental", "incremental_strategy": "upserts"}, "'upserts'", "'upsert'"),
        ({"materialized": "incremental", "incremental_strategy": "delete_insert"}, "'delete_insert'", "+"),
        ({"partition_by": "dayy(at)"}, "dayy(at)", "did you mean day(at)"),
        ({"partition_by": ["country", "date_trunc('day', at)"]}, "date_trunc", "use a transform"),
        ({"partition_by": {"field": "at", "granularity": "month"}}, "mapping", "month(at)"),
        ({"partition_by": {"field": "n", "range": {"interval": 10}}}, "mapping", "truncate(10, n)"),
    ],
)
def test_what_would_change_rows_or_fail_later_is_refused(config: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reject_without_effect("orders", config)
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.where == "orders"


@pytest.mark.parametrize("strategy", [None, "default", *STRATEGIES])
def test_a_valid_model_is_accepted(strategy: str | None) -> None:
    fields = ["days(at)", "HOUR(`at`)", "truncate(4, sku)", "bucket(8, id)", "`f(x)`", "country"]
    config = {"materialized": "incremental", "incremental_strategy": strategy, "partition_by": fields}
    reject_without_effect("orders", {**config, "delete_when": "gone", "unique_key": "id"})
    reject_without_effect("orders", {"materialized": "table", "partition_by": "day(at)", "delete_when": None})


def test_a_project_may_define_a_strategy() -> None:
    config = {"materialized": "incremental", "incremental_strategy": "append+delete"}
    names: list[str] = []
    reject_without_effect("orders", config, lambda name: names.append(name) is None)  # type: ignore[func-returns-value]
    assert names == ["get_incremental_append_delete_sql"]
    reject_without_effect("orders", {**config, "incremental_strategy": "scd"})


def test_settings_of_other_adapters_are_reported_with_what_to_use() -> None:
    config = {
        "file_format": "delta",
        "transient": False,
        "cluster_by": ["day"],
        "tags": ["x"],
        "tblproperties": {"delta.autoOptimize": "true", "write.format.default": "orc"},
    }
    found = dict(settings_without_effect("orders", config))
    assert sorted(found) == ["cluster_by", "delta.autoOptimize", "file_format"]
    assert "sort_by" in found["cluster_by"].fix
    assert "write.format.default" in found["file_format"].fix
    assert all(problem.where == "orders" and problem.fix for problem in found.values())
    assert settings_without_effect("orders", {"file_format": "iceberg", "tblproperties": None}) == []


def test_a_materialization_of_another_adapter_names_the_one_to_use() -> None:
    with pytest.raises(ConfigError, match="materialized='materialized_view'"):
        reject_materialization("orders", "dynamic_table")
