"""The settings of sources of change events, and what a run does before it reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from dbt_arctic.errors import ConfigError, SourceTruncated
from dbt_arctic.sources.change_pull import take_changes
from dbt_arctic.sources.change_settings import ChangeEvents, must_select
from dbt_arctic.sources.change_sql import Delivery
from dbt_arctic.sources.file_settings import parse_source
from dbt_arctic.sources.kafka_settings import parse_kafka
from dbt_arctic.store.context import Context

COLUMNS = {"id": "BIGINT", "amount": "Decimal(10, 2)", "at": "timestamp_ntz"}
DELIVERY = Delivery("shop.orders", "`value`", "`offset`", "'here'", {})


def kafka(**settings: Any) -> ChangeEvents:
    made = {"from": "kafka", "servers": "h:1", "format": "debezium", "key": "id", "columns": COLUMNS}
    events = parse_kafka("shop.orders", {**made, **settings}, {}, {}, "shop.yml").changes
    assert events is not None
    return events


def files(**settings: Any) -> ChangeEvents:
    made = {
        "from": "files",
        "path": "/data",
        "format": "maxwell",
        "key": "id",
        "columns": COLUMNS,
        "table": "orders",
    }
    events = parse_source("shop.orders", {**made, **settings}, {}, "shop.yml").changes
    assert events is not None
    return events


def test_types_are_those_that_values_can_be_read_as() -> None:
    assert kafka().columns == {"id": "bigint", "amount": "decimal(10,2)", "at": "timestamp_ntz"}
    assert kafka(units="micros").units == {"at": "micros"}
    assert kafka(columns={"id": "int", "tags": "ARRAY<String>"}).columns["tags"] == "array<string>"


def test_a_row_says_which_values_it_lacks_only_if_the_stored_ones_are_kept() -> None:
    assert "_unavailable" not in kafka().added
    assert "_unavailable" in kafka(unavailable="keep").added
    assert set(must_select(kafka(unavailable="keep"))) == {"_action", "_unavailable"}
    assert set(must_select(kafka())) == {"_action"}
    assert must_select(None) == {}


@pytest.mark.parametrize(
    ("parse", "settings", "said"),
    [
        (kafka, {"key": None}, "has no key"),
        (kafka, {"key": "other"}, "names other"),
        (kafka, {"columns": {}}, "declares no columns"),
        (kafka, {"columns": {"id": "int", "m": "map<string,int>"}}, "m with the type map"),
        (kafka, {"columns": {"id": "int", "_source_sequence": "string"}}, "has a column _source_sequence"),
        (kafka, {"order": "time"}, "has order: time"),
        (kafka, {"format": "canal", "table": "orders", "order": "position"}, "has order: position"),
        (kafka, {"format": "canal"}, "has no table"),
        (files, {"table": ""}, "has no table"),
        (kafka, {"format": "maxwell", "unavailable": "keep"}, "unknown setting 'unavailable'"),
        (kafka, {"units": {"at": "days"}}, "units for at: days"),
        (kafka, {"optional": ["x"]}, "optional of the source shop.orders names x"),
        (kafka, {"key_format": "json"}, "unknown setting 'key_format'"),
        (kafka, {"options": {"timestampFormat": "x"}}, "has the option timestampFormat"),
        (files, {"on_bad_row": "drop"}, "unknown setting 'on_bad_row'"),
        (files, {"order": "delivery"}, "has order: delivery"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(
    parse: Callable[..., Any], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as failed:
        parse(**settings)
    assert failed.value.fix


class Messages:
    """A context whose only query gives what the messages are."""

    def __init__(self, *kinds: tuple[str, int, int, str, str, str | None, int]) -> None:
        self.kinds = kinds

    def run(self, step: str, sql: str) -> None:
        assert step == "stage"

    def query(self, sql: str) -> list[Any]:
        return list(self.kinds)


CHANGES = ("change", 5, 1, "public.orders", "public.orders", "9", 0)
TRUNCATE = ("truncate", 1, 1, "public.orders", "public.orders", "5", 0)


def taken_columns(*kinds: Any, first: bool = True, known: str = "", **changed: Any) -> Any:
    events = replace(kafka(), **changed)
    return take_changes(cast(Context, Messages(*kinds)), events, DELIVERY, "v", first, "orders", known)


def test_what_is_no_change_is_counted() -> None:
    found = taken_columns(
        CHANGES, ("heartbeat", 1200, 1, "", "", None, 1200), ("tombstone", 1, 1, "", "", None, 1)
    )
    assert found.notes == (
        "The source shop.orders: 1,200 heartbeats ignored.",
        "The source shop.orders: 1 tombstone ignored.",
    )


def test_a_truncation_is_applied_where_no_older_rows_are_stored() -> None:
    found = taken_columns(CHANGES, TRUNCATE)
    assert "WHERE `_source_sequence` > '5'" in found.sql
    assert "truncated" in found.notes[0]
    assert "WHERE `_source_sequence` >" not in taken_columns(CHANGES).sql


def test_a_truncation_that_was_applied_excludes_older_events_that_come_later() -> None:
    assert taken_columns(CHANGES, TRUNCATE).truncated_at == "5"
    for kinds in ((CHANGES,), (CHANGES, TRUNCATE)):  # it may come again itself
        found = taken_columns(*kinds, first=False, known="5")
        assert "WHERE `_source_sequence` > '5'" in found.sql
        assert found.truncated_at == "5"
    assert taken_columns(CHANGES, first=False).truncated_at == ""
    assert taken_columns(CHANGES, first=False, known="5", order="delivery").truncated_at == ""


@pytest.mark.parametrize(
    ("kinds", "changed", "said"),
    [
        ((CHANGES, TRUNCATE), {"first": False}, "--full-refresh"),
        ((CHANGES, TRUNCATE), {"first": False, "known": "4"}, "--full-refresh"),
        ((CHANGES, (*TRUNCATE[:5], "", 1)), {"first": False, "known": "4"}, "--full-refresh"),
        ((CHANGES, (*TRUNCATE[:5], None, 1)), {}, "not known which events"),
        ((CHANGES, TRUNCATE), {"order": "delivery"}, "not known which events"),
    ],
)
def test_a_truncation_is_never_ignored(kinds: Any, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceTruncated, match=said):
        taken_columns(*kinds, **changed)


def test_events_of_several_tables_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"several tables: public\.items, public\.orders"):
        taken_columns(("change", 5, 2, "public.items", "public.orders", "9", 0))
