"""A model's config: every mistake is named, with its fix; nothing falls back in silence."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import (
    OWN_SETTINGS,
    choose_strategy,
    match_columns,
    parse_config,
    reject_misspelled,
)

OVERWRITING = {"unique_key": "a", "incremental_strategy": "insert_overwrite"}


def test_one_name_or_a_list_of_names_is_a_key() -> None:
    assert parse_config("m", {"unique_key": "id"}).unique_key == ("id",)
    assert parse_config("m", {"unique_key": ["a", "b"]}).unique_key == ("a", "b")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, ["unique_key"]),
        ({"unique_key": []}, ["unique_key"]),
        ({"unique_key": ["a", "a"]}, ["twice"]),
        ({"unique_key": ["a", ""]}, ["unique_key"]),
        ({"unique_key": ["a", 3]}, ["unique_key", "3"]),
        ({"unique_key": "a", "buckets": "8"}, ["buckets", "'8'"]),
        ({"unique_key": "a", "buckets": True}, ["buckets"]),
        ({"unique_key": "a", "bucket_by": ["a"]}, ["bucket_by"]),
        ({"unique_key": "a", "delete_when": True}, ["delete_when"]),
        ({"unique_key": "a", "on_schema_change": "append"}, ["on_schema_change", "append_new_columns"]),
        ({"unique_key": "a", "tblproperties": "x=y"}, ["tblproperties"]),
        ({"unique_key": "a", "merge_update_columns": ["b"], "merge_exclude_columns": ["c"]}, ["both"]),
        ({**OVERWRITING, "overwrite": "all"}, ["'all'", "partitions"]),
        ({**OVERWRITING, "overwrite": "partitions"}, ["partition_by"]),
        ({**OVERWRITING, "sequence_by": "at"}, ["sequence_by", "insert_overwrite"]),
        ({"unique_key": "a", "tblproperties": {"arctic.id": "1"}}, ["arctic.id", "prefix"]),
    ],
    ids=str,
)
def test_a_wrong_value_is_named(config: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config("orders", config)
    assert raised.value.where == "orders"
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({"unique_key": "id"}, "upsert"),
        ({}, "append"),
        ({"unique_key": "id", "incremental_strategy": "merge"}, "merge"),
        ({"unique_key": "id", "incremental_strategy": "default"}, "upsert"),
        ({"buckets": 8}, "append"),
        ({"unique_key": "id", "incremental_strategy": "microbatch", "delete_when": "gone"}, "microbatch"),
        ({**OVERWRITING, "overwrite": "table"}, "insert_overwrite"),
        ({"incremental_strategy": "insert_overwrite"}, "insert_overwrite"),
        ({"unique_key": "id", "merge_exclude_columns": ["name"]}, "upsert"),
    ],
    ids=str,
)
def test_a_key_decides_the_strategy_unless_the_config_does(config: dict[str, Any], strategy: str) -> None:
    assert choose_strategy("m", config) == strategy


@pytest.mark.parametrize(
    "config",
    [
        {"incremental_strategy": "upsert"},
        {"incremental_strategy": "merge"},
        {"incremental_strategy": "delete+insert"},
        {"delete_when": "gone"},
        {"unique_key": "id", "incremental_strategy": "merge", "deduplicate_by": "at"},
        {"incremental_strategy": "microbatch", "delete_when": "gone"},
        {"unique_key": "id", "incremental_strategy": "microbatch", "merge_update_columns": ["name"]},
        {"unique_key": "id", "incremental_strategy": "insert_overwrite", "merge_exclude_columns": ["name"]},
        {"unique_key": "id", "overwrite": "table"},
        {"incremental_strategy": "insert_overwrite", "overwrite": "table"},
        {"unique_key": "id", "incremental_predicates": ["id > 1"]},
        {"unique_key": "id", "incremental_strategy": "microbatch", "predicates": ["id > 1"]},
    ],
    ids=str,
)
def test_a_strategy_that_would_not_do_what_the_config_says_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        choose_strategy("m", config)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("unique_keys", "unique_key"), ("bucketby", "bucket_by"), ("dedupliate_by", "deduplicate_by")],
)
def test_a_misspelled_setting_says_what_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"'{meant}'"):
        reject_misspelled("m", ["tags", typed], ["tags", *OWN_SETTINGS])
    reject_misspelled("m", ["tags", "team", "sort", "sort_type"], ["tags", *OWN_SETTINGS])


def test_columns_are_matched_whatever_their_case() -> None:
    assert match_columns(["ID", "x"], ["Id", "day"]) == ("Id", "x")


@pytest.mark.parametrize(
    ("config", "replaced"),
    [
        ({}, "table"),
        ({"partition_by": "day"}, "partitions"),
        ({"partition_by": "day", "overwrite": "table"}, "table"),
    ],
    ids=str,
)
def test_an_overwrite_replaces_partitions_where_there_are_some(config: dict[str, Any], replaced: str) -> None:
    assert parse_config("m", {**OVERWRITING, **config}).overwrite == replaced
    assert parse_config("m", {"unique_key": "a"}).overwrite is None
