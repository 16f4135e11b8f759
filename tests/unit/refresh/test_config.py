"""A model's config: every mistake is named, with its fix; nothing falls back in silence."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.auto_config import ACCEPTABLE
from dbt_arctic.refresh.batch import make_batch
from dbt_arctic.refresh.config import (
    choose_strategy,
    match_columns,
    parse_config,
)

OVERWRITING = {"unique_key": "a", "incremental_strategy": "insert_overwrite"}
AUTOMATIC = {"unique_key": "a", "incremental_strategy": "auto"}


def test_one_name_or_a_list_of_names_is_a_key() -> None:
    assert parse_config("m", {"unique_key": "id"}).unique_key == ("id",)
    assert parse_config("m", {"unique_key": ["a", "b"]}).unique_key == ("a", "b")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, ["unique_key"]),
        ({"unique_key": []}, ["'upsert' needs a unique_key", "incremental_strategy='append'"]),
        ({"incremental_strategy": "auto"}, ["'auto' needs a unique_key", "materialized='table'"]),
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
        ({**AUTOMATIC, "auto": True}, ["auto is True", "strict"]),
        ({**AUTOMATIC, "auto": "strickt"}, ["auto is 'strickt'", "strict"]),
        ({**AUTOMATIC, "auto": {"stric": True}}, ["auto is", "'stric'"]),
        ({**AUTOMATIC, "auto": {"strict": "false"}}, ["auto is", "'strict': 'false'"]),
        ({**AUTOMATIC, "auto": {"accept": "float_sum"}}, ["auto is", "'accept': 'float_sum'"]),
        ({**AUTOMATIC, "auto": {"accept": False}}, ["auto is", "'accept': False"]),
        ({**AUTOMATIC, "auto": {"accept": ["float_sums"]}}, ["auto is", "'float_sums'", "float_sum,"]),
        ({**AUTOMATIC, "auto": {"ties": True}}, ["auto is", "'ties': True", "'by_key'"]),
        ({**AUTOMATIC, "auto": {"accept": [["ties"]]}}, ["auto is", "[['ties']]"]),
        ({**AUTOMATIC, "full_refresh_above": "0.3"}, ["full_refresh_above is '0.3'"]),
        ({**AUTOMATIC, "full_refresh_above": True}, ["full_refresh_above is True"]),
        ({**AUTOMATIC, "full_refresh_above": 30}, ["full_refresh_above is 30"]),
        ({**AUTOMATIC, "full_refresh_above": -0.1}, ["full_refresh_above is -0.1"]),
        ({**AUTOMATIC, "full_refresh_above": math.nan}, ["full_refresh_above is nan"]),
        ({**AUTOMATIC, "before_images": "true"}, ["before_images is 'true'"]),
        ({**AUTOMATIC, "before_images": 1}, ["before_images is 1"]),
    ],
    ids=str,
)
def test_a_wrong_value_is_named(config: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config("orders", config)
    assert (raised.value.code, raised.value.where) == ("AR-301", "orders")
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
        ({**AUTOMATIC, "auto": "strict", "full_refresh_above": 0.5, "before_images": True}, "auto"),
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
        {"incremental_strategy": "auto"},
        {"unique_key": "id", "auto": "strict"},
        {"unique_key": "id", "full_refresh_above": 0.5},
        {"unique_key": "id", "incremental_strategy": "microbatch", "before_images": True},
        {**AUTOMATIC, "sequence_by": "at"},
    ],
    ids=str,
)
def test_a_strategy_that_would_not_do_what_the_config_says_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        choose_strategy("m", config)


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


@pytest.mark.parametrize(
    ("given", "strict", "accept"),
    [
        ({}, None, []),
        ({"auto": "strict"}, "strict", []),
        ({"auto": {}}, None, []),
        ({"auto": {"strict": True}}, "strict", []),
        ({"auto": {"strict": False, "accept": []}}, None, []),
        ({"auto": {"strict": None, "accept": None}}, None, []),
        ({"auto": {"accept": ["float_sum"]}}, None, ["float_sum"]),
        ({"auto": {"strict": True, "accept": ["ties", "ties"]}}, "strict", ["ties"]),
        ({"auto": {"accept": list(ACCEPTABLE)}}, None, sorted(ACCEPTABLE)),
    ],
    ids=str,
)
def test_accepted_nondeterminism_and_strictness_are_distinguished(
    given: dict[str, Any], strict: str | None, accept: list[str]
) -> None:
    config = parse_config("m", {**AUTOMATIC, **given})
    assert [config.auto, sorted(config.accept)] == [strict, accept]


def test_ties_are_decided_by_the_key_if_the_config_requires_it() -> None:
    assert parse_config("m", AUTOMATIC).ties is None
    assert parse_config("m", {**AUTOMATIC, "auto": {"ties": None}}).ties is None
    both = parse_config("m", {**AUTOMATIC, "auto": {"ties": "by_key", "strict": True}})
    assert (both.ties, both.auto) == ("by_key", "strict")


def test_a_share_and_a_flag_are_as_they_were_given() -> None:
    left_out = parse_config("m", AUTOMATIC)
    assert (left_out.full_refresh_above, left_out.before_images) == (0.3, None)
    for share, flag in ((0, False), (0.45, True), (1, None)):
        config = parse_config("m", {**AUTOMATIC, "full_refresh_above": share, "before_images": flag})
        assert (config.full_refresh_above, config.before_images) == (share, flag)


def test_an_automatic_model_has_no_column_of_actions() -> None:
    """It would be left out, and rows with another action with it."""
    schema = [ColumnInfo("id", "int"), ColumnInfo("_ACTION", "string")]
    sql = "SELECT 1 AS id, 'D' AS _ACTION"
    plain = parse_config("m", {"unique_key": "id"})
    assert make_batch(plain, sql, schema, None).columns == ("id",)
    with pytest.raises(ConfigError, match="_action"):
        make_batch(parse_config("m", {"unique_key": "id", "incremental_strategy": "auto"}), sql, schema, None)


def test_a_key_names_no_column_twice_in_other_letters() -> None:
    with pytest.raises(ConfigError, match="contains a column twice"):
        parse_config("m", {"unique_key": ["id", "ID"]})


@pytest.mark.parametrize(
    ("expression", "fix"),
    [
        ("order_at desc", "'-(order_at)'"),
        ("order_at ASC", "deduplicate_by='order_at'"),
        ("coalesce(a, b) DESC NULLS LAST", "deduplicate_by='coalesce(a, b)'"),
        ("a nulls first", "deduplicate_by='a'"),
    ],
)
def test_a_direction_in_deduplicate_by_is_refused_with_the_expression_alone(
    expression: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config("m", {"unique_key": "id", "deduplicate_by": ["b", expression]})
    assert repr(expression) in error.value.what
    assert fix in error.value.fix
    plain = ("desc", "nvl(a, 'x desc')", "a.desc")
    assert parse_config("m", {"unique_key": "id", "deduplicate_by": list(plain)}).deduplicate_by == plain
