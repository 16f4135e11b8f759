"""Settings of a keyed table that its stored rows depend on: a change is never ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.upsert import check_unchanged_config

COLUMNS = tuple(Column(name, "int") for name in ("a", "b", "day", "at"))
TABLE = KeyedTable(
    Name("lake", "shop", "orders"),
    Generation(1, "base", "change", "at"),
    ("a", "b"),
    Layout(4, "b", ("day",), ("day", "a")),
    COLUMNS,
)
SAME: dict[str, Any] = {
    "unique_key": ("A", "b"),
    "partition_by": ("day",),
    "bucket_by": "B",
    "sort_by": ("day", "A"),
    "sequence_by": "at",
}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("unique_key", ("a",)),
        ("unique_key", ("b", "a")),
        ("partition_by", ()),
        ("partition_by", ("day", "a")),
        ("partition_by", ("days(day)",)),
        ("bucket_by", "a"),
        ("sort_by", ("a",)),
        ("sequence_by", "day"),
        ("sequence_by", None),
    ],
)
def test_a_changed_setting_is_an_error_that_names_both_values(setting: str, value: object) -> None:
    check_unchanged_config(KeyedConfig("orders", **SAME), TABLE)
    with pytest.raises(ConfigError, match=f"{setting} changed from ") as error:
        check_unchanged_config(KeyedConfig("orders", **{**SAME, setting: value}), TABLE)
    assert "--full-refresh --select orders" in error.value.fix


def test_a_sequence_cannot_be_added_to_stored_rows() -> None:
    table = replace(TABLE, generation=Generation(1, "base", "change"))
    with pytest.raises(ConfigError, match="sequence_by changed from "):
        check_unchanged_config(KeyedConfig("orders", **SAME), table)


@pytest.mark.parametrize(("setting", "value"), [("bucket_by", None), ("sort_by", ())])
def test_a_layout_that_is_no_longer_set_stays(setting: str, value: object) -> None:
    """An adopted table has a layout that no model has set."""
    check_unchanged_config(KeyedConfig("orders", **{**SAME, setting: value}), TABLE)
