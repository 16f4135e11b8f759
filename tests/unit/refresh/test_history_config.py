"""The settings of a history: every mistake is named, with its fix."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.history import PROPERTY_SETTINGS, History
from dbt_arctic.refresh.config import choose_strategy, parse_config
from dbt_arctic.refresh.history_config import (
    check_history,
    described_columns,
    parse_history,
    require_same_settings,
    resolve,
    settings_property,
)
from dbt_arctic.refresh.table_properties import declared_properties

CONFIG = {"incremental_strategy": "history", "unique_key": "id", "sequence_by": "seq"}
COLUMNS = {"id": "bigint", "seq": "bigint", "Status": "string", "note": "string", "_source_file": "string"}


def resolved(columns: dict[str, str] | None = None, **settings: Any) -> History:
    config = {**CONFIG, **settings}
    return resolve(
        parse_config("m", config),
        parse_history("m", config),
        columns or COLUMNS,
        lambda names: ", ".join(names),
    )


def test_all_columns_but_those_of_a_source_are_tracked() -> None:
    found = resolved()
    assert (found.key, found.sequence, found.time) == (("id",), "seq", "seq")
    assert (found.tracked, found.ignored) == (("Status", "note"), ("_source_file",))
    assert found.scd_id == "`id`, `seq`"


def test_columns_are_chosen_as_in_a_snapshot() -> None:
    assert resolved(check_cols=["status"]).tracked == ("Status",)
    assert resolved(check_cols=["status"]).ignored == ("note", "_source_file")
    assert resolved(check_cols="all").tracked == resolved().tracked
    assert resolved(ignore_cols="NOTE").tracked == ("Status",)
    assert resolved(check_cols="_source_file").tracked == ("_source_file",)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sequence_by": None}, ["needs sequence_by"]),
        ({"on_schema_change": "append_new_columns"}, ["on_schema_change", "--full-refresh"]),
        ({"check_cols": ["status"], "ignore_cols": ["note"]}, ["both check_cols and ignore_cols"]),
        ({"ignore_cols": [1]}, ["ignore_cols is [1]"]),
        ({"ignore_cols": ["nots"]}, ["ignore_cols contains nots", "did you mean note"]),
        ({"ignore_cols": ["id"]}, ["ignore_cols contains id, which is a column of unique_key"]),
        ({"check_cols": ["seq"]}, ["check_cols contains seq"]),
        ({"updated_at": 5}, ["updated_at is 5"]),
        ({"updated_at": "at"}, ["updated_at contains at", "does not return"]),
        ({"unique_key": ["id", "seq"]}, ["sequence_by is a column of unique_key"]),
        ({"hard_deletes": "ignore"}, ["hard_deletes is 'ignore'"]),
        ({"dbt_valid_to_current": 9}, ["dbt_valid_to_current is 9"]),
        ({"snapshot_meta_column_names": "a"}, ["snapshot_meta_column_names"]),
        ({"snapshot_meta_column_names": {"valid_from": "a"}}, ["'valid_from'", "dbt_valid_from"]),
        ({"snapshot_meta_column_names": {"dbt_valid_from": "dbt_valid_to"}}, ["one name to two columns"]),
        (
            {"snapshot_meta_column_names": {"dbt_valid_from": "NOTE"}},
            ["returns note", "the strategy 'history' adds"],
        ),
    ],
    ids=str,
)
def test_a_mistake_is_named(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        resolved(**settings)
    assert [word for word in words if word not in str(error.value)] == []


@pytest.mark.parametrize("name", ["_unavailable", "_arctic_last", "dbt_valid_from"])
def test_a_column_of_another_meaning_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        resolved({**COLUMNS, name: "string"})


def test_a_history_needs_a_key() -> None:
    with pytest.raises(ConfigError, match="needs a unique_key"):
        choose_strategy("m", {"incremental_strategy": "history"})


def test_settings_of_a_history_have_no_effect_elsewhere() -> None:
    check_history("m", CONFIG, "history")
    check_history("m", {"unique_key": "id"}, "upsert")
    with pytest.raises(ConfigError, match="hard_deletes has no effect with the strategy 'upsert'"):
        check_history("m", {"unique_key": "id", "hard_deletes": "new_record"}, "upsert")


def test_stored_settings_are_kept_and_compared() -> None:
    found = resolved(hard_deletes="new_record", snapshot_meta_column_names={"dbt_valid_from": "since"})
    stored = settings_property(found)
    require_same_settings(found, stored)
    assert described_columns(stored) == (
        "dbt_scd_id",
        "dbt_updated_at",
        "since",
        "dbt_valid_to",
        "dbt_is_deleted",
    )
    assert described_columns(settings_property(resolved())) == resolved().described
    with pytest.raises(ConfigError, match="hard_deletes changed from new_record to invalidate"):
        require_same_settings(resolved(), stored)
    assert "other" in declared_properties(["other", PROPERTY_SETTINGS])["arctic.given-properties"]
    assert declared_properties([PROPERTY_SETTINGS]) == {}, (
        "a run must not remove it as a property that the model dropped"
    )
