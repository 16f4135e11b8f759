"""What `materialized_view` and `streaming_table` mean, as values."""

from __future__ import annotations

from itertools import product

import pytest

from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.config import choose_strategy, writes_keyed
from dbt_arctic.refresh.foreign_settings import reject_without_effect
from dbt_arctic.refresh.materializations import (
    PROPERTY_MATERIALIZED_VIEW,
    ConfigurationChange,
    check_materialization,
    choose_action,
    is_automatic,
    is_materialized_view,
    require_pull,
)
from dbt_arctic.refresh.plain_columns import evolve_plain
from dbt_arctic.refresh.schema_policy import changes_to_make, check_full_refresh, needs_rebuild

VIEW = {"materialized": "materialized_view", "unique_key": "id"}
STREAM = {"materialized": "streaming_table", "unique_key": "id"}
CHANGES = (
    ConfigurationChange(),
    ConfigurationChange(altered=("owner.team",)),
    ConfigurationChange(replaced=("sort_by",)),
    ConfigurationChange(("owner.team",), ("sort_by",)),
)


@pytest.mark.parametrize("strategy", [None, "default", "auto"])
def test_a_materialized_view_is_an_automatic_model(strategy: str | None) -> None:
    config = {**VIEW, "incremental_strategy": strategy}
    reject_without_effect("orders", config)
    assert is_automatic(config)
    assert choose_strategy("orders", config) == "auto"
    assert writes_keyed("orders", config)


def test_a_streaming_table_is_an_incremental_model() -> None:
    reject_without_effect("orders", STREAM)
    assert not is_automatic(STREAM)
    assert choose_strategy("orders", STREAM) == "upsert"
    assert choose_strategy("orders", {"materialized": "streaming_table"}) == "append"
    with pytest.raises(ConfigError, match="incremental_pull"):
        require_pull("orders", pulls=False)
    require_pull("orders", pulls=True)


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"materialized": "materialized_view"}, "needs a unique_key"),
        ({**VIEW, "incremental_strategy": "merge"}, "'merge' in a materialized view"),
        ({**VIEW, "incremental_strategy": "upsert"}, "'upsert' in a materialized view"),
        ({**STREAM, "incremental_strategy": "auto"}, "'auto' in a streaming table"),
        ({**STREAM, "incremental_strategy": "microbatch"}, "'microbatch' in a streaming table"),
    ],
)
def test_settings_with_another_meaning_are_refused(config: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        check_materialization("orders", config)
    assert caught.value.fix


def test_no_setting_is_changed_unless_dbt_is_told_to_apply_changes() -> None:
    for kind, change, on_change, full_refresh, may_rebuild in product(
        (None, "table", "view", "keyed", "clone"),
        CHANGES,
        ("apply", "continue", "fail"),
        (False, True),
        (False, True),
    ):
        action = choose_action(kind, change, on_change, full_refresh=full_refresh, may_rebuild=may_rebuild)
        if kind is None:
            assert action == "create"
        elif full_refresh or kind in ("table", "view"):
            assert action == "replace"
        elif not change:
            assert action == "refresh"
        elif on_change != "apply":
            assert action == on_change
        elif not change.replaced:
            assert action == "alter"
        else:
            # If the model must not be rebuilt, its refresh reports the setting that needs it.
            assert action == ("replace" if may_rebuild else "refresh")


def test_only_a_keyed_table_with_the_mark_is_a_materialized_view() -> None:
    marked = {PROPERTY_MATERIALIZED_VIEW: "true"}
    assert is_materialized_view({**marked, "arctic.protocol": "1"})
    # A view that replaces a materialized view keeps the mark of the old one.
    assert not is_materialized_view({**marked, "arctic.protocol": ""})
    assert not is_materialized_view({"arctic.protocol": "1", PROPERTY_MATERIALIZED_VIEW: ""})


STORED = [Column("id", "bigint"), Column("box", "struct<a:int>"), Column("note", "void")]


@pytest.mark.parametrize(
    ("produced", "rebuilds"),
    [
        (STORED, False),
        ([STORED[0], STORED[1], Column("note", "string")], False),
        ([*STORED, Column("new", "date")], True),
        (STORED[:2], True),
        ([Column("id", "string"), *STORED[1:]], True),
        ([STORED[0], Column("box", "struct<a:int,b:int>"), STORED[2]], True),
        ([STORED[0], Column("box", "struct<a:bigint>"), STORED[2]], True),
    ],
)
def test_every_other_difference_of_columns_rebuilds(produced: list[Column], rebuilds: bool) -> None:
    difference = needs_rebuild(STORED, produced)
    assert bool(difference) is rebuilds
    if not rebuilds:
        # What is left is changed in place.
        assert all(one.kind == "typed" for one in changes_to_make("orders", "full_refresh", difference))


def test_a_table_that_another_run_has_changed_since_is_not_written_with_missing_columns() -> None:
    with pytest.raises(SchemaChanged):
        evolve_plain(None, None, "orders", "full_refresh", STORED, STORED[:2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "strategy", "language", "what"),
    [
        ({"full_refresh": False}, "upsert", "sql", "full_refresh is false"),
        ({}, "microbatch", "sql", "microbatch"),
        ({}, "upsert", "python", "Python"),
    ],
)
def test_a_rebuild_that_a_run_cannot_make_is_refused(
    config: dict[str, object], strategy: str, language: str, what: str
) -> None:
    check_full_refresh("orders", {**config, "on_schema_change": "fail"}, strategy, language)
    with pytest.raises(ConfigError, match=what):
        check_full_refresh("orders", {**config, "on_schema_change": "full_refresh"}, strategy, language)
