"""Changes of a followed table: what they mean for the rows of a model, and when a run refuses them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.databases.api import Column, Table, TableName
from dbt_arctic.databases.change_log import ALTERED
from dbt_arctic.databases.table_versions import ColumnVersion, TableVersion, shape_of
from dbt_arctic.errors import ConfigError, SchemaChanged, VersionUnavailable
from dbt_arctic.sources.capture_evolution import Evolution, plan_evolution
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_pull import _other_columns
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource, parse_capture, resolve_columns
from dbt_arctic.sources.change_settings import EarlierColumns
from dbt_arctic.sources.column_changes import RecordedTable, table_changes
from dbt_arctic.sources.database_plan import Writes

KEYED = Writes(("id",), appends=False, is_keyed=True)
SOURCE = parse_capture("crm.t", {"slot": "s"})

Given = tuple[int, str, ColumnVersion]


def column(number: int, name: str, kind: str = "INT", *, by: str = "1", **version: Any) -> Given:
    return number, name + " " + kind, ColumnVersion(number, by, **version)


def columns(
    *given: Given, file: str = "f1", last: int = 0, source: CaptureSource = SOURCE
) -> CapturedColumns:
    """A table with these columns."""
    named = [(*text.split(" "), version) for _, text, version in given]
    found = tuple(Column(name, kind.lower(), "integer", kind) for name, kind, _ in named)
    version = TableVersion(
        file,
        last or max(number for number, *_ in given),
        {name: made for name, _, made in named},
        tuple(name for name, *_ in named),
    )
    key = (found[0].name,)
    table = Table("postgresql/crm/7", found, key, 0, key, version)
    return resolve_columns(SOURCE, table, TableName("public", "t"), "t")


ID, A, B = column(1, "id"), column(2, "a"), column(3, "b")
BEFORE = columns(ID, A, B)


def planned(
    now: CapturedColumns,
    *shapes: str,
    before: CapturedColumns = BEFORE,
    recorded: RecordedTable | None = None,
    source: CaptureSource = SOURCE,
    truncated: bool = False,
    writes: Writes = KEYED,
    others: tuple[str, ...] = (),
) -> Evolution:
    last = recorded or before.recorded(None)
    assert last is not None
    last = RecordedTable.from_json(json.loads(json.dumps(last.as_json())))
    return plan_evolution(source, now, last, shapes, truncated, writes, others, "t")


def effects(found: Evolution) -> dict[str, str]:
    return {one.column: one.effect for one in found.changes}


def test_the_log_has_the_old_values_of_the_key_unless_stored_keys_are_compared() -> None:
    lacking = shape_of(("id", "a", "b"), ("a",))
    with pytest.raises(VersionUnavailable, match="old values of id"):
        planned(BEFORE, lacking)
    assert planned(BEFORE, lacking, truncated=True).compared == ("id",)


def test_a_table_that_has_not_changed_is_not_read_again() -> None:
    assert planned(columns(ID, A, B), shape_of(("id", "a", "b"))) == Evolution()


def test_a_new_column_is_null_in_older_changes() -> None:
    now = columns(ID, A, B, column(4, "c"))
    found = planned(now, shape_of(("id", "a", "b")), shape_of(("id", "a", "b", "c")))
    assert (effects(found), found.reads_again) == ({"c": "null"}, False)
    assert found.applied_to(now).events.optional == ("c",)


@pytest.mark.parametrize(
    "now",
    [
        columns(ID, A, B, column(4, "c", fills_older=True)),
        columns(ID, A, B, column(4, "c"), file="f2"),
        columns(ID, A, B, column(4, "c"), file=""),
    ],
)
def test_a_new_column_with_a_default_is_read_again_unless_it_is_optional(now: CapturedColumns) -> None:
    assert planned(now).reads_again
    optional = replace(now, events=replace(now.events, optional=("c",)))
    assert effects(planned(optional)) == {"c": "null"}


def test_it_is_not_known_whether_the_rows_of_a_partitioned_table_were_written_again() -> None:
    before = columns(ID, A, file="")
    assert effects(planned(columns(ID, A, B, file=""), before=before)) == {"b": "read"}
    assert effects(planned(columns(ID, column(2, "a", by="2"), file=""), before=before)) == {"a": "read"}
    assert planned(columns(ID, A, file=""), before=before) == Evolution()


def test_a_column_whose_bytes_are_shown_in_another_way_is_read_again() -> None:
    now = columns(ID, column(2, "a", by="2", shown_as="869"))
    assert planned(now, before=columns(ID, column(2, "a", shown_as="650"))).reads_again
    # A commit of an earlier version does not say how they were shown.
    recorded = columns(ID, A).recorded(None)
    assert recorded is not None
    short = [one[:6] for one in recorded.as_json()[4]]
    earlier = RecordedTable.from_json([*recorded.as_json()[:4], short, []])
    assert planned(now, recorded=earlier) == Evolution()


def test_a_column_with_the_name_of_an_earlier_one_is_read_again() -> None:
    new = column(4, "A")
    assert planned(columns(ID, B, new)).reads_again
    # Also if a run in between has read the table without it.
    between = columns(ID, B, last=3).recorded(BEFORE.recorded(None))
    assert effects(planned(columns(ID, B, new), recorded=between)) == {"A": "read"}
    assert effects(planned(columns(ID, B, column(4, "c")), recorded=between)) == {"c": "null"}


def test_a_column_that_existed_and_was_not_read_is_read_again() -> None:
    before = columns(ID, A, last=3)
    assert planned(columns(ID, A, B), before=before).reads_again


@pytest.mark.parametrize(
    "now",
    [
        columns(ID, column(2, "x"), B),
        columns(ID, column(2, "b"), column(3, "a")),
        columns(ID, column(2, "a", "BIGINT"), B),
        columns(ID, column(2, "a", by="2"), B, file="f2"),
        columns(ID, column(2, "a", by="2"), B, file=""),
    ],
)
def test_a_column_whose_values_may_be_others_is_read_again(now: CapturedColumns) -> None:
    assert planned(now).reads_again


@pytest.mark.parametrize(
    "now", [columns(ID, column(2, "a", by="2"), B), columns(ID, A, B, file="f2"), columns(ID, B)]
)
def test_other_statements_leave_the_rows_as_they_are(now: CapturedColumns) -> None:
    assert not planned(now).reads_again


@pytest.mark.parametrize(
    ("kind", "file", "reads_again"),
    [
        ("DECIMAL(12,2)", "f1", False),
        ("DECIMAL(12,2)", "f2", True),
        ("DECIMAL(9,2)", "f1", True),
        ("DECIMAL(12,3)", "f1", True),
        ("STRING", "f1", True),
    ],
)
def test_more_digits_of_a_decimal_leave_the_values_as_they_are(
    kind: str, file: str, reads_again: bool
) -> None:
    before = columns(ID, column(2, "m", "DECIMAL(10,2)"))
    found = planned(columns(ID, column(2, "m", kind, by="2"), file=file), before=before)
    assert found.reads_again == reads_again
    assert [one.text for one in found.changes] == [f"m: decimal(10,2) to {kind.lower()}"]


def test_labels_of_an_enum_may_be_added_and_not_renamed() -> None:
    before = columns(ID, column(2, "e", labels=("ok", "bad")))
    assert planned(columns(ID, column(2, "e", labels=("ok", "bad", "new"))), before=before) == Evolution()
    assert planned(columns(ID, column(2, "e", labels=("fine", "bad", "new"))), before=before).reads_again


def test_columns_that_are_known_neither_from_before_nor_from_now_are_read_again() -> None:
    assert planned(columns(ID, A, B), shape_of(("id", "b", "a"))).reads_again
    assert not planned(columns(ID, B), shape_of(("id", "a", "b")), shape_of(("id", "b"))).reads_again


def test_deletes_of_a_composite_key_need_columns_that_are_known() -> None:
    before, now = BEFORE.recorded(None), columns(ID, A, B)
    assert before is not None
    types, key = now.events.columns, ("id", "a")
    for shape, effects_ in ((("id", "b", "a"), ["load"]), (("id", "a", "b"), [])):
        before = replace(before, key=(1, 2))
        found = table_changes(before, now.table, types, key, {shape_of(shape)})
        assert [one.effect for one in found] == effects_


def test_a_new_column_may_have_the_name_of_one_that_has_come_and_gone() -> None:
    now, logged = columns(ID, A, B, column(5, "c")), shape_of(("id", "a", "b", "c"))
    assert effects(planned(now, logged)) == {"c": "read"}
    assert effects(planned(now)) == {"c": "null"}, "without changes there is no other value"


def test_old_changes_that_are_read_by_names_of_their_time_are_a_warning() -> None:
    now = columns(ID, A, B)
    old, new = shape_of(("id", "b", "a")), shape_of(("id", "a", "b"))
    assert _other_columns(SOURCE, now, TableChanges(shapes=(new,))) == ()
    (warning,) = _other_columns(SOURCE, now, TableChanges(shapes=tuple(sorted((old, new)))))
    assert "If columns were renamed, check the rows" in warning


@pytest.mark.parametrize(
    "now",
    [
        columns(column(1, "key"), A, B),
        columns(A, ID, B),
        columns(column(1, "id", "BIGINT"), A, B),
        columns(column(1, "id", by="2"), A, B, file="f2"),
    ],
)
def test_another_key_needs_another_model(now: CapturedColumns) -> None:
    with pytest.raises(VersionUnavailable, match="have the old key") as error:
        planned(now)
    assert "--full-refresh --select t, with the new key as its unique_key" in error.value.fix


def test_a_source_can_refuse_changes_of_columns() -> None:
    source = parse_capture("crm.t", {"slot": "s", "schema_changes": "fail"})
    with pytest.raises(SchemaChanged, match="c added; a dropped"):
        planned(columns(ID, B, column(4, "c")), source=source)
    assert planned(columns(ID, A, B), source=source) == Evolution()


@pytest.mark.parametrize(
    ("settings", "writes", "said"),
    [
        ({"initial_load": False}, KEYED, "initial_load: false"),
        ({}, Writes((), appends=True), "adds rows to those that it has"),
        ({}, Writes(("id",), appends=True), "adds rows to those that it has"),
    ],
)
def test_rows_that_cannot_be_replaced_are_not_read_again(
    settings: dict[str, Any], writes: Writes, said: str
) -> None:
    source = parse_capture("crm.t", {"slot": "s", **settings})
    with pytest.raises(VersionUnavailable, match=said):
        planned(columns(ID, column(2, "x"), B), source=source, writes=writes)
    # A new column without a default needs no reading.
    assert not planned(columns(ID, A, B, column(4, "c")), source=source, writes=writes).reads_again


def test_a_truncation_deletes_the_keys_that_the_table_does_not_have() -> None:
    found = planned(BEFORE, truncated=True)
    assert (found.reads_again, found.compared) == (True, ("id",))
    assert planned(columns(ID, column(2, "x"), B)).compared == ()


@pytest.mark.parametrize(
    ("writes", "others", "said"),
    [
        (Writes(("id",)), (), "no table with one row for each key"),
        (KEYED, ("lake.s.orders",), r"rows of other tables as well \(lake.s.orders\)"),
        (
            Writes(("customer_id",), is_keyed=True),
            (),
            r"unique_key \(customer_id\) does not consist of columns",
        ),
    ],
)
def test_a_truncation_is_not_applied_to_rows_that_may_be_of_other_tables(
    writes: Writes, others: tuple[str, ...], said: str
) -> None:
    with pytest.raises(VersionUnavailable, match=said):
        planned(BEFORE, truncated=True, writes=writes, others=others)


@pytest.mark.parametrize("wrong", [{"schema_changes": "quarantine"}, {"truncate": "yes"}])
def test_a_wrong_policy_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        parse_capture("crm.t", {"slot": "s", **wrong})


@pytest.mark.parametrize(
    ("words", "effect"),
    [("a add alter column table t", "read"), ("alter change id t table", "load"), ("*", "load")],
)
def test_a_statement_in_the_log_has_all_rows_read_again_unless_it_may_be_about_the_key(
    words: str, effect: str
) -> None:
    altered = ALTERED + words
    if effect == "load":
        with pytest.raises(VersionUnavailable, match="old key"):
            planned(BEFORE, altered)
        return
    found = planned(BEFORE, altered, shape_of(("id", "a", "b")))
    assert (found.reads_again, found.note) == (True, "ALTER TABLE")


OF_HISTORY = Writes(("id",), keeps_changes=True)
EARLIER = shape_of(("id", "a", "b"))


def test_where_each_change_shows_earlier_ones_are_read_by_the_names_of_now() -> None:
    now = columns(ID, column(2, "x"), column(4, "c", fills_older=True))
    found = planned(now, EARLIER, shape_of(("id", "x", "c")), writes=OF_HISTORY)
    assert found.reads_again
    assert found.earlier == EarlierColumns(EARLIER, {"id": "id", "a": "x"})
    assert found.applied_to(now).events.optional == ("c",)
    assert planned(now, shape_of(("id", "x", "c")), writes=OF_HISTORY).earlier is None
    assert planned(now, EARLIER).earlier is None


@pytest.mark.parametrize(
    ("now", "shape", "of_mariadb"),
    [
        (
            columns(ID, column(2, "x"), B),
            "other",
            False,
        ),  # columns that neither the model has read nor now are
        (columns(ID, A, column(4, "b")), EARLIER, False),  # another column has the name
        (columns(ID, A, column(4, "c", fills_older=True)), EARLIER, True),  # renamed, or another one
    ],
)
def test_where_each_change_shows_the_columns_of_each_must_be_known(
    now: CapturedColumns, shape: str, of_mariadb: bool
) -> None:
    if of_mariadb:
        assert planned(now, shape, writes=OF_HISTORY).earlier is not None
        now = replace(now, events=replace(now.events, sends_all=True))
    with pytest.raises(VersionUnavailable, match="not known which columns"):
        planned(now, shape, writes=OF_HISTORY)
    assert planned(now, writes=OF_HISTORY).reads_again, "no change is unread"
