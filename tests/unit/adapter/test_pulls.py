"""What one run of a model pulled: one state of each upstream, however often it is requested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.adapter.pulls import ModelPulls, require_selected
from dbt_arctic.errors import ConcurrentRun, ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PART, Consumed
from dbt_arctic.refresh.materializations import takes_part
from dbt_arctic.refresh.plain_config import replaces_by_key
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.source_planner import DELETES

ORDERS, RETURNS = Name("lake", "shop", "orders"), Name("lake", "shop", "returns")


def pull(upstream: Name, version: str, changed: bool = True, staging: str | None = None) -> Pull:
    stage = None if staging is None else StagedView(staging, "CREATE TEMPORARY VIEW ...")
    return Pull(upstream, f"SELECT {version}", Consumed("id", version), changed, stage=stage)


def test_an_upstream_that_is_pulled_twice_is_found_the_second_time() -> None:
    pulls = ModelPulls()
    assert not pulls.find("m", ORDERS)
    first = pull(ORDERS, "1.1.1")
    pulls.add("m", {}, first)
    assert pulls.find("m", ORDERS) == [first]
    assert not pulls.find("m", RETURNS)
    assert not pulls.find("other", ORDERS), "another model of the same thread"


def test_a_commit_consumes_every_upstream_of_its_model_and_of_no_other() -> None:
    pulls = ModelPulls()
    expected = {ORDERS.dotted: Consumed("id", "1.0.1")}
    pulls.add("m", expected, pull(ORDERS, "1.1.1"))
    pulls.add("m", expected, pull(RETURNS, "1.7.7"))
    pulls.add("other", {}, pull(RETURNS, "1.8.8"))
    assert pulls.consumed("m") == {
        "lake.shop.orders": Consumed("id", "1.1.1"),
        "lake.shop.returns": Consumed("id", "1.7.7"),
    }
    assert pulls.last_consumed("m") == expected
    assert pulls.last_consumed("unknown") == {}


def test_all_pulls_of_a_model_begin_where_the_first_did() -> None:
    pulls = ModelPulls()
    assert pulls.begun_from("m") is None
    expected = {ORDERS.dotted: Consumed("id", "1.0.1")}
    pulls.add("m", expected, pull(ORDERS, "1.1.1"))
    assert pulls.begun_from("m") == expected
    pulls.add("m", {ORDERS.dotted: Consumed("id", "1.2.2")}, pull(RETURNS, "1.7.7"))
    assert pulls.begun_from("m") == pulls.last_consumed("m") == expected


def test_a_model_reads_few_rows_if_each_pull_does_and_it_reads_nothing_else() -> None:
    few, many = replace(pull(ORDERS, "1.1.1"), few_rows=True), pull(RETURNS, "1.7.7")
    for pulled, nodes, expected in (
        ([few], ["source.shop.orders"], True),
        ([few], ["source.shop.orders", "model.shop.customers"], False),
        ([few, many], ["source.shop.orders", "source.shop.returns"], False),
        ([few, replace(many, few_rows=True)], ["source.shop.orders", "source.shop.returns"], True),
        ([few, few], ["source.shop.orders"], True),
        ([], [], False),
    ):
        pulls = ModelPulls()
        for one in pulled:
            pulls.add("m", {}, one)
        assert pulls.read_few_rows("m", nodes) == expected, (pulled, nodes)


def test_no_table_is_built_of_what_changed() -> None:
    pulls = ModelPulls()
    pulls.require_everything("m", "orders")
    pulls.add("m", {}, pull(ORDERS, "1.1.1"))
    pulls.require_everything("m", "orders")
    pulls.add("n", {ORDERS.dotted: Consumed("id", "1.0.1")}, pull(ORDERS, "1.1.1"))
    with pytest.raises(ConcurrentRun, match="run the model again"):
        pulls.require_everything("n", "orders")


def test_a_run_has_nothing_to_do_only_if_it_pulls_and_nothing_changed() -> None:
    pulls = ModelPulls()
    assert not pulls.nothing_new("m"), "a model that pulls nothing always runs"
    pulls.add("m", {}, pull(ORDERS, "1.1.1", changed=False))
    assert pulls.nothing_new("m")
    pulls.add("m", {}, pull(RETURNS, "1.1.1", changed=True))
    assert not pulls.nothing_new("m")


def test_forgetting_returns_how_to_drop_the_staging_tables() -> None:
    pulls = ModelPulls()
    pulls.add("m", {}, pull(ORDERS, "1", staging="m__pull_1"))
    pulls.add("m", {}, pull(RETURNS, "1"))
    pulls.stage(ORDERS.sibling("m__pull_2"))
    assert pulls.clear() == [
        "DROP VIEW IF EXISTS `m__pull_1`",
        "DROP TABLE IF EXISTS `lake`.`shop`.`m__pull_2` PURGE",
    ]
    assert pulls.clear() == []
    assert pulls.consumed("m") == {}


def test_what_a_pull_holds_is_released_once_after_the_model() -> None:
    pulls, released = ModelPulls(), []
    pulls.hold(lambda: released.append("snapshot"))
    assert released == []
    pulls.clear()
    pulls.clear()
    assert released == ["snapshot"]


def test_keys_to_delete_are_not_written_as_rows() -> None:
    pulls = ModelPulls()
    pulls.must_select("m", DELETES)
    assert pulls.needed_columns("m", deletes_by_condition=True) == {}
    needed = pulls.needed_columns("m", deletes_by_condition=False)
    require_selected("m", needed, ["id", "_ACTION"])
    with pytest.raises(ConfigError, match="the model does not return _action"):
        require_selected("m", needed, ["id"])
    pulls.clear()
    assert pulls.needed_columns("m", deletes_by_condition=False) == {}


def test_one_table_in_place_of_another_is_no_pull() -> None:
    other, expected = ORDERS.sibling("others"), {ORDERS.dotted: Consumed("id", "1.0.1")}

    def with_pulls(*pulled: tuple[Pull, Consumed | None]) -> ModelPulls:
        pulls = ModelPulls()
        for one, since in pulled:
            pulls.add("m", expected, one, since)
        return pulls

    since = expected[ORDERS.dotted]
    renamed = replace(pull(other, "1.1.1"), consumed=Consumed("id", "1.1.1"))
    fresh = replace(pull(other, "1.1.1"), consumed=Consumed("new", "1.1.1"))
    with_pulls((pull(ORDERS, "1.1.1"), since)).require_same_upstreams("m", "daily")
    with_pulls((pull(ORDERS, "1.1.1"), since), (fresh, None)).require_same_upstreams("m", "daily")
    expected[RETURNS.dotted] = Consumed("returns", "1.0.1")  # which it has stopped to pull from, long ago
    with_pulls((pull(ORDERS, "1.1.1"), since), (fresh, None)).require_same_upstreams("m", "daily")
    del expected[RETURNS.dotted]
    with_pulls((renamed, since)).require_same_upstreams("m", "daily")
    with_pulls().require_same_upstreams("m", "daily")
    with pytest.raises(ConfigError, match="no longer from lake") as told:
        with_pulls((fresh, None)).require_same_upstreams("m", "daily")
    assert "--full-refresh --select daily" in told.value.fix


def test_a_deferred_upstream_is_not_exchanged_for_the_one_of_another_schema() -> None:
    since = Consumed("id", "1.0.1")
    production, own = Name("lake", "prod", "returns"), Name("lake", "dev", "returns")
    expected = {ORDERS.dotted: since, production.dotted: Consumed("prod", "1.3.3")}
    built = replace(pull(own, "1.1.1"), consumed=Consumed("dev", "1.1.1"))

    pulls = ModelPulls()
    pulls.add("m", expected, pull(ORDERS, "1.1.1"), since)
    pulls.add("m", expected, built, None)
    message = "from lake.dev.returns for the first time, and no longer from lake.prod.returns"
    with pytest.raises(ConfigError, match=message):
        pulls.require_same_upstreams("m", "daily")

    both = ModelPulls()
    both.add("m", expected, built, None)
    both.add("m", expected, pull(production, "1.3.3"), expected[production.dotted])
    both.require_same_upstreams("m", "daily")


@pytest.mark.parametrize(
    ("rows", "read", "replaced", "last_consumed", "is_refused"),
    [
        (3, {"is_relation": True}, False, {}, True),
        (None, {"is_relation": True}, False, {}, True),
        (0, {"is_relation": True}, False, {}, False),
        (3, {}, True, {}, False),
        (3, {"is_relation": True}, True, {RETURNS.dotted: Consumed("id", "1.0.1")}, False),
        (3, {"source": "landing.clicks"}, False, {}, False),
        (3, {"source": "landing.clicks"}, True, {}, True),
        (0, {"source": "landing.clicks"}, True, {}, False),
    ],
    ids=[
        "rows",
        "unknown",
        "no rows",
        "rejected rows",
        "recorded",
        "source",
        "source of a replaced table",
        "emptied",
    ],
)
def test_all_rows_of_an_upstream_are_not_added_to_rows_of_unknown_origin(
    rows: int | None, read: Any, replaced: bool, last_consumed: dict[str, Consumed], is_refused: bool
) -> None:
    pulls = ModelPulls()
    pulls.require_known_rows("m", "daily", lambda: rows, lambda: replaced)
    pulls.add("m", last_consumed, pull(ORDERS, "1.1.1"), **read)
    if is_refused:
        with pytest.raises(ConfigError, match=r"for the first time|not known what was read") as told:
            pulls.require_known_rows("m", "daily", lambda: rows, lambda: replaced)
        assert "--full-refresh --select daily" in told.value.fix
        pulls.clear()
    pulls.require_known_rows("m", "daily", lambda: rows, lambda: replaced)


def test_a_part_of_a_source_outside_the_catalog_is_known_until_the_model_is_done() -> None:
    pulls = ModelPulls()
    pulls.read_part("m", outside=True)
    pulls.read_part("m")
    pulls.read_part("n")
    assert [pulls.reads_part(name) for name in "mno"] == [True, True, False]
    assert [pulls.reads_outside(name) for name in "mno"] == [True, False, False]
    pulls.add("n", {}, pull(ORDERS, "1.1.1"))
    assert [set(pulls.consumed(name)) for name in "mno"] == [{PART}, {PART}, set()]
    pulls.clear()
    assert not pulls.reads_part("m")


@pytest.mark.parametrize(
    ("config", "takes"),
    [
        ({"unique_key": "id"}, True),
        ({"unique_key": "id", "incremental_strategy": "merge"}, True),
        ({"unique_key": "id", "incremental_strategy": "delete+insert"}, True),
        ({"unique_key": "id", "full_refresh": True}, True),
        ({"unique_key": "id", "full_refresh": False}, False),
        ({"unique_key": "id", "incremental_strategy": "insert_overwrite"}, False),
        ({"unique_key": "id", "incremental_strategy": "append"}, False),
        ({"incremental_strategy": "insert_overwrite"}, False),
        ({}, False),
    ],
)
def test_a_part_is_written_only_by_key_and_where_the_next_run_may_rebuild(
    config: dict[str, Any], takes: bool
) -> None:
    assert takes_part({"materialized": "incremental", **config}) == takes


@pytest.mark.parametrize(
    ("strategy", "by_key", "without_key"),
    [
        (None, True, False),
        ("upsert", True, None),
        ("merge", True, None),
        ("delete+insert", True, None),
        ("insert_overwrite", True, False),
        ("append", False, False),
        ("own", False, False),
    ],
)
def test_which_strategies_store_no_row_twice(
    strategy: str | None, by_key: bool, without_key: bool | None
) -> None:
    config: dict[str, Any] = {"materialized": "incremental", "incremental_strategy": strategy}
    assert replaces_by_key("m", config | {"unique_key": "id"}) == by_key
    if without_key is not None:
        assert replaces_by_key("m", config) == without_key
