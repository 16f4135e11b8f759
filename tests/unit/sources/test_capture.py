"""Captured changes: what a range says of a model's position, and the messages of transactions."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import date, datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.databases.api import Column, Table, TableName, UnseenTransactions
from dbt_arctic.databases.change_log import LoggedChange, LogState
from dbt_arctic.databases.logged_changes import logged_changes
from dbt_arctic.databases.pgoutput import (
    Decoder,
    LoggedTable,
    Message,
    RowChange,
    TransactionBegin,
    TransactionEnd,
    Truncated,
)
from dbt_arctic.databases.postgres_values import ValueType
from dbt_arctic.databases.replication_slot import PostgresSlot, _explained, capture_statements
from dbt_arctic.databases.table_versions import ColumnVersion, TableVersion, shape_of
from dbt_arctic.errors import ConcurrentRun, ConfigError, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, encode_consumed
from dbt_arctic.sources import capture_snapshot
from dbt_arctic.sources.capture_changes import (
    Capture,
    CaptureRead,
    _much_kept,
    in_order_of_time,
    why_lost,
)
from dbt_arctic.sources.capture_evolution import Evolution
from dbt_arctic.sources.capture_messages import TableChanges, changes_by_table, message_of
from dbt_arctic.sources.capture_pull import _FEW_CHANGES, _FEW_SCANNED, _are_few
from dbt_arctic.sources.capture_queries import unseen_statement
from dbt_arctic.sources.capture_settings import CapturedColumns, parse_capture, resolve_columns
from dbt_arctic.sources.capture_table import (
    PROPERTY_TABLES,
    Captured,
    CapturedRange,
    entry,
)
from dbt_arctic.sources.database_plan import Writes

RANGE = CapturedRange("1/crm/slot", 100, 400, date(2026, 1, 1), {"public.old": 200})
ORDERS = LoggedTable("public.orders", ("id", "flag", "body"), (20, 16, 25))
SHAPE = shape_of(ORDERS.columns)
TYPES = {20: ValueType(20), 16: ValueType(16), 25: ValueType(25)}


def captured(*commits: tuple[int, dict[str, TableChanges]], start: int = 100) -> Captured:
    """A capture table with these commits, the oldest first: the end of each, and its changes."""
    snapshots, parent = [], None
    for at, (end, tables) in enumerate(commits, 1):
        range_ = replace(RANGE, start=start, end=end)
        summary = {PROPERTY_CONSUMED: encode_consumed(entry(range_))}
        if tables:
            summary[PROPERTY_TABLES] = json.dumps(tables)
            summary["added-records"] = str(sum(one.number for one in tables.values()))
        snapshots.append(Snapshot(at, parent, at, at, "append", summary))
        parent = at
    state = TableState("s", "crm__capture", "", {}, (), tuple(snapshots), len(snapshots), {})
    return Captured(Name("lake", "s", "crm__capture"), state, replace(RANGE, start=start, end=commits[-1][0]))


def test_the_changes_between_two_positions() -> None:
    found = captured(
        (100, {}),
        (200, {"public.orders": TableChanges(2, 5, 9)}),
        (300, {"public.items": TableChanges(7, 1, 1)}),
        (400, {"public.orders": TableChanges(1, 20, 20)}),
    )
    assert found.changes_since("public.orders", 100) == TableChanges(3, 5, 20)
    assert found.changes_since("public.orders", 200) == TableChanges(1, 20, 20)
    assert found.changes_since("public.orders", 400) == TableChanges()
    assert [found.rows_since(position) for position in (100, 200, 400)] == [10, 8, 0]
    assert found.newest_ms("public.items") == 1
    assert found.newest_ms("public.none") is None


def test_changes_of_expired_commits_are_not_known() -> None:
    found = captured((300, {}), (400, {}))
    assert found.changes_since("public.orders", 200) is None
    assert found.rows_since(200) is None
    # The first commit of a capture has no changes, and ends at its start. Without it, others may be missing.
    assert found.changes_since("public.orders", 100) is None


def test_changes_are_few_if_they_and_those_of_other_tables_are_quickly_read() -> None:
    assert _are_few(_FEW_CHANGES, _FEW_SCANNED)
    assert not _are_few(_FEW_CHANGES + 1, _FEW_SCANNED)
    assert not _are_few(1, _FEW_SCANNED + 1)
    assert not _are_few(1, None)


def test_another_table_of_the_same_name_is_not_the_one_that_was_read() -> None:
    found = replace(captured((400, {})), range=RANGE)
    last = RANGE.at(400, "public.orders", "7")
    with pytest.raises(VersionUnavailable, match="dropped and created again"):
        found.require_unread(last, "public.orders", "crm.orders", "orders", "8")
    assert found.require_unread(last, "public.orders", "crm.orders", "orders") == 400


@pytest.mark.parametrize(
    ("table", "range_", "position", "why"),
    [
        ("public.orders", RANGE, 99, "were not captured"),
        ("public.old", RANGE, 199, "retention"),
        ("public.orders", replace(RANGE, identity="2/crm/slot"), 400, "another table, replication slot"),
        ("public.orders", RANGE, 401, "begun again"),  # another log of the server has smaller positions
        ("public.orders", replace(RANGE, origin="2"), 400, "begun again"),
    ],
)
def test_a_model_that_would_miss_changes_fails(
    table: str, range_: CapturedRange, position: int, why: str
) -> None:
    found = replace(captured((400, {})), range=range_)
    with pytest.raises(VersionUnavailable, match=why):
        found.require_unread(RANGE.at(position, table, "7"), table, "crm.orders", "orders", "7")


@pytest.mark.parametrize(
    ("table", "position"), [("public.orders", 100), ("public.old", 200), ("public.orders", 400)]
)
def test_a_model_that_misses_nothing_goes_on(table: str, position: int) -> None:
    found = captured((400, {}))
    found = replace(found, range=RANGE)
    assert found.require_unread(RANGE.at(position, table, "7"), table, "crm.x", "x", "7") == position


def test_a_range_is_recorded_as_it_is() -> None:
    for one in (RANGE, replace(RANGE, origin="2")):
        assert CapturedRange.of(one.consumed()) == one
        found = replace(captured((400, {})), range=one)
        last = one.at(300, "public.orders", "7")
        assert found.require_unread(last, "public.orders", "crm.orders", "orders", "7") == 300


def changes(*messages: Message) -> list[tuple[int, Any]]:
    found, _ = logged_changes(enumerate(messages, 10), TYPES)
    return [(one.end, json.loads(message_of(one))) for one in found]


def test_only_whole_transactions_are_captured_with_the_place_of_their_commit() -> None:
    row = {"id": "1", "flag": "t", "body": "x"}
    found = changes(
        *(TransactionBegin(500, 7_000_000), RowChange("insert", ORDERS, None, row), TransactionEnd(510)),
        *(TransactionBegin(600, 8_000_000), Truncated((ORDERS,))),
    )
    assert found == [
        (
            510,
            {
                **{"operation": "insert", "table": "public.orders", "at_ms": 7000},
                **{"place": f"{500:020}.{11:020}", "before": None},
                **{"after": {"id": "1", "flag": "true", "body": "x"}, "shape": SHAPE, "table_id": "0"},
            },
        )
    ]


@pytest.mark.parametrize(
    ("old", "body"),
    [(None, {}), ({"id": "1", "flag": None, "body": None}, {}), ({"id": "1", "body": "y"}, {"body": "y"})],
)
def test_a_value_that_was_not_sent_comes_from_the_old_row_or_is_marked(
    old: Any, body: dict[str, str]
) -> None:
    new = {"id": "1", "flag": None}
    ((_, found),) = changes(TransactionBegin(1, 0), RowChange("update", ORDERS, old, new), TransactionEnd(2))
    assert found["after"] == {"id": "1", "flag": None, **body}
    assert found.get("unsent", []) == ([] if body else ["body"])


def test_transactions_without_changes_have_an_end() -> None:
    """PostgreSQL 14 sends them."""
    empty: list[Message] = [
        TransactionBegin(1, 0),
        TransactionEnd(2),
        TransactionBegin(3, 0),
        TransactionEnd(4),
    ]
    assert logged_changes(enumerate(empty), TYPES) == ([], 4)


def test_the_key_of_an_old_row_has_no_other_columns() -> None:
    relation = described(7, "d", "t", 1, 0)
    key = (2).to_bytes(2, "big") + b"t" + (1).to_bytes(4, "big") + b"5" + b"n"
    decoder = Decoder()
    assert decoder.decode(relation) is None
    with pytest.raises(ValueError, match="of the kind b'P'"):  # of a prepared transaction
        decoder.decode(b"P")
    for kind, old in ((b"K", {"id": "5"}), (b"O", {"id": "5", "body": None})):
        found = decoder.decode(b"D" + (7).to_bytes(4, "big") + kind + key)
        assert isinstance(found, RowChange)
        assert found.old == old


def described(oid: int, identity: str, name: str, *flags: int) -> bytes:
    """A description of a table with the columns ``id`` and ``body``, as the log has it."""
    made = b"R" + oid.to_bytes(4, "big") + f"public\0{name}\0{identity}".encode() + (2).to_bytes(2, "big")
    for flag, column, type_ in zip(flags, (b"id", b"body"), (20, 25), strict=True):
        made += bytes([flag]) + column + b"\0" + type_.to_bytes(4, "big") + b"\xff" * 4
    return made


def test_a_change_of_a_partition_has_the_old_values_that_partitions_log() -> None:
    insert = b"I" + (7).to_bytes(4, "big") + b"N" + (2).to_bytes(2, "big") + b"t\0\0\0\0015n"
    decoder = Decoder()

    def identity(*descriptions: bytes) -> Any:
        assert [decoder.decode(one) for one in descriptions] == [None] * len(descriptions)
        found = decoder.decode(insert)
        assert isinstance(found, RowChange)
        assert found.table.name == "public.t"
        return found.table.identity

    table = described(7, "f", "t", 1, 1)
    assert identity(table) is None
    assert identity(table, described(8, "d", "a", 1, 0)) == ("id",)
    assert identity() == ("id",), "a partition is described once"
    assert identity(table, described(9, "i", "b", 0, 1)) == ()
    assert identity(table, described(9, "f", "b", 1, 1)) == ("id",)
    assert identity(table, described(8, "f", "a", 1, 1)) == ("id", "body")


@pytest.mark.parametrize(
    ("identity", "says"), [((), "REPLICA IDENTITY FULL"), (("id",), ""), (("id", "email"), "")]
)
def test_the_log_must_have_the_key_of_the_old_row(identity: tuple[str, ...], says: str) -> None:
    id_, email = Column("id", "bigint", "integer", "BIGINT"), Column("email", "text", "text", "STRING")
    table = Table("postgresql/crm/7", (id_, email), ("id",), 0, identity)
    source = parse_capture("crm.t", {"slot": "s"})
    if says:
        with pytest.raises(ConfigError, match=says):
            resolve_columns(source, table, TableName("public", "t"), "t")
    else:
        assert resolve_columns(source, table, TableName("public", "t"), "t").table_id == "7"
    with (
        pytest.raises(ConfigError, match="old values of email") if "email" not in identity else nullcontext()
    ):
        resolve_columns(replace(source, key=("email",)), table, TableName("public", "t"), "t")


@pytest.mark.parametrize(
    ("kind", "family", "refused"),
    [
        *(("date", "date", True), ("datetime(3)", "timestamp", True), ("double", "float", True)),
        *(("year(4)", "integer", True), ("int(6) unsigned zerofill", "integer", True)),
        *(("int(11)", "integer", False), ("decimal(9,2)", "decimal", False), ("time", "text", False)),
    ],
)
def test_a_value_is_no_text_if_the_log_has_another_one(kind: str, family: Any, refused: bool) -> None:
    columns = (Column("id", "int", "integer", "INT"), Column("v", kind, family, "INT"))
    table = Table("mariadb/shop/t", columns, ("id",), 0, ("id", "v"))
    for database in ("mariadb", "postgres"):
        settings = {"from": database, "slot": "s", "columns": {"id": "int", "v": "string"}}
        if database == "mariadb":
            del settings["slot"]
        source = parse_capture("crm.t", settings)
        is_refused = refused and database == "mariadb"
        with pytest.raises(ConfigError, match="cannot be read as string") if is_refused else nullcontext():
            resolve_columns(source, table, TableName("shop", "t"), "t")


def test_columns_of_settings_exist_in_any_case() -> None:
    table = Table("postgresql/crm/7", (Column("Id", "bigint", "integer", "BIGINT"),), (), 0, ("Id",))
    place = TableName("public", "t")
    found = resolve_columns(parse_capture("crm.t", {"slot": "s", "key": "id"}), table, place, "t")
    assert found.events.key == ("Id",)
    for wrong in ({"key": "idd"}, {"key": "id", "optional": "idd"}):
        with pytest.raises(ConfigError, match="names idd, which is not one of its columns"):
            resolve_columns(parse_capture("crm.t", {"slot": "s", **wrong}), table, place, "t")


def test_a_slot_that_keeps_much_of_the_log_is_a_warning() -> None:
    assert _much_kept(slot(), LogState("1", 0, 0, 0, 1024**3 - 1)) == ()
    (warning,) = _much_kept(slot(), LogState("1", 0, 0, 0, 3 * 2**29))
    assert "1.5 GiB of its log for the slot slot" in warning


class Refused(Exception):
    """As psycopg raises it."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("no")
        self.sqlstate = sqlstate


@pytest.mark.parametrize("code", ["55006", "55P03"])
def test_a_slot_that_is_being_read_is_another_run(code: str) -> None:
    assert isinstance(_explained(Refused(code), "slot", "me", "here"), ConcurrentRun)


def test_a_user_without_the_right_to_replicate_is_told_the_statement() -> None:
    found = _explained(Refused("42501"), "slot", "me", "here")
    assert isinstance(found, ConfigError)
    assert 'ALTER ROLE "me" REPLICATION' in found.fix
    assert _explained(Refused("08006"), "slot", "me", "here") is None


def test_changes_are_counted_by_table() -> None:
    row = {"id": "1", "flag": None, "body": None}
    messages = [TransactionBegin(1, 5_000), RowChange("insert", ORDERS, None, row), TransactionEnd(2)]
    messages += [
        TransactionBegin(3, 9_000),
        RowChange("delete", ORDERS, row, None),
        Truncated((ORDERS,)),
        TransactionEnd(4),
    ]
    assert changes_by_table(logged_changes(enumerate(messages), TYPES)[0]) == {
        "public.orders": TableChanges(3, 5, 9, f"{3:020}.{5:020}", (SHAPE,), ("0",))
    }


def slot(*row: Any) -> PostgresSlot:
    return PostgresSlot(lambda text, values=None, /: [row] if row else [], "slot", "slot", "models/crm.yml")


def test_a_slot_that_cannot_be_read_is_named() -> None:
    state = slot("pgoutput", "logical", "false", "reserved", 10, 20, 5, 7385, "crm").state()
    assert state == LogState("7385/crm/slot", oldest=10, current=20, begin=10, kept_bytes=5)
    with pytest.raises(VersionUnavailable, match="has lost changes"):
        slot("pgoutput", "logical", None, "lost", 10, 20, 5, 7385, "crm").state()
    with pytest.raises(ConfigError, match="does not have the output plugin pgoutput"):
        slot("test_decoding", "logical", None, "reserved", 10, 20, 5, 7385, "crm").state()
    with pytest.raises(ConfigError, match="was created with two_phase"):
        slot("pgoutput", "logical", "true", "reserved", 10, 20, 5, 7385, "crm").state()
    with pytest.raises(ConfigError, match="there is no replication slot slot"):
        slot().state()


def test_the_statements_of_a_database_are_quoted() -> None:
    assert capture_statements("it's", ["shop.Orders", 'a."b.c"']) == [
        'CREATE PUBLICATION "it\'s" FOR TABLE "shop"."Orders", "a"."b.c"',
        "SELECT pg_create_logical_replication_slot('it''s', 'pgoutput')",
    ]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "has no slot"),
        ({"slot": "s", "sloot": 1}, "unknown setting 'sloot'"),
        ({"slot": "s", "retention": "1 hour"}, "retention: 1 hour"),
        ({"slot": "s", "initial_load": "yes"}, "initial_load: yes"),
        ({"slot": "s", "unavailable": "drop"}, "unavailable"),
        ({"slot": "s", "partitions": "many"}, "partitions: many"),
        ({"slot": "s", "columns": "id"}, "columns"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_capture("crm.orders", settings)
    assert said in str(error.value)


def test_what_is_not_set_has_a_default() -> None:
    found = parse_capture("crm.orders", {"slot": "s", "columns": ["id", "at"], "key": "id"})
    assert (found.publication, found.retention_days, found.table.table) == ("s", 7, "orders")
    assert (found.key, dict(found.table.columns), found.loads) == (("id",), {"id": "", "at": ""}, True)


def test_changes_of_a_table_that_was_not_followed_for_a_while_are_missing() -> None:
    begun = replace(RANGE, start=400).following(["public.t", "public.new"])
    assert begun.removed == RANGE.removed, "nothing was captured before"
    later = replace(begun, end=500).following(["public.t"])
    again = replace(later, end=700).following(["public.new", "public.t"])
    assert again.removed == {"public.old": 200, "public.new": 700}
    found = replace(captured((700, {})), range=again)
    for table, position, is_lost in (("t", 450, False), ("new", 699, True), ("new", 700, False)):
        consumed = again.at(position, f"public.{table}", "1")
        with pytest.raises(VersionUnavailable, match="lost") if is_lost else nullcontext():
            found.require_unread(consumed, f"public.{table}", "crm.t", "m", "1")
    assert CapturedRange.of(again.consumed()) == again


@pytest.mark.parametrize(
    ("identity", "confirmed", "says"),
    [
        ("1/crm/slot", 400, ""),
        ("1/crm/slot", 300, ""),  # a run ended before it moved the slot
        ("1/crm/slot", 401, "moved from 400 to 401 by another reader"),
        (
            "1.00000002/crm/slot",
            400,
            "the log is that of 1.00000002/crm/slot",
        ),  # another timeline, after a failover
    ],
)
def test_changes_that_the_slot_no_longer_has_are_lost(identity: str, confirmed: int, says: str) -> None:
    found = why_lost(RANGE, LogState(identity, confirmed, 900, confirmed), slot())
    assert says in found
    assert bool(found) == bool(says)


@pytest.mark.parametrize(
    ("unseen", "condition"),
    [
        (UnseenTransactions(), "(false)"),
        (UnseenTransactions(after=7), "(`transaction_end` > 7)"),
        (UnseenTransactions([3], 9), "(`transaction_id` IN (3) OR pmod(`transaction_id` - 9, 4294967296)"),
    ],
)
def test_changes_that_a_transaction_does_not_see_are_read_later(
    unseen: UnseenTransactions, condition: str
) -> None:
    assert condition in unseen_statement(captured((400, {})), "public.t", unseen)


class Opened:
    """A transaction of which it is known whether it sees a position of the log."""

    table = None
    is_closed = False

    def time(self) -> str:
        return "2026-01-02 03:04:05.678"

    def share(self) -> str:
        return "1-1"

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("range_", "why"),
    [
        (replace(RANGE, end=500), ""),
        (replace(RANGE, end=500, removed={"public.t": 401}), "was not followed for a while"),
        (replace(RANGE, start=401, end=500), "were not captured"),
        (replace(RANGE, end=500, origin="2"), "begun again"),
    ],
)
def test_changes_before_the_snapshot_of_a_table_are_captured(
    monkeypatch: pytest.MonkeyPatch, range_: CapturedRange, why: str
) -> None:
    """What a capture has that began after the transaction is not what the transaction does not see."""
    asked: list[dict[str, Any]] = []

    def take_all(*_: Any, **given: Any) -> CaptureRead:
        asked.append(given)
        return CaptureRead(replace(captured((500, {})), range=range_))

    monkeypatch.setattr(Capture, "_take_all", take_all)
    log = SimpleNamespace(write_visible=lambda: None, followed=lambda: {TableName("public", "t")})
    source, none = parse_capture("crm.t", {"slot": "s"}), cast(Any, None)
    capture = Capture(none, none, cast(Any, lambda: nullcontext(log)), source, Name("lake", "s", "c"), "1")
    before = replace(captured((400, {})), range=RANGE)
    with pytest.raises(VersionUnavailable, match=why) if why else nullcontext():
        capture.take_visible(TableName("public", "t"), "m", before, datetime(1970, 1, 2, tzinfo=timezone.utc))
    assert asked == [{"starts_again": False, "seen_ms": 86_400_000}]


def test_times_of_changes_do_not_go_back() -> None:
    """A statement that waited for another one began before. A session may also set any time."""
    changes = [LoggedChange(at, at, str(at), "t", "insert", ms) for at, ms in enumerate((5, 3, 9, 8, 99, 7))]
    assert [one.at_ms for one in in_order_of_time(changes, 4, 20)] == [5, 5, 9, 9, 20, 20]
    assert [one.at_ms for one in in_order_of_time(changes, 30, 20)] == [30] * 6, "the clock was set back"


@pytest.mark.parametrize(("split", "begun"), [(0, 1), (2, 3), (99, 10)])
def test_rows_of_which_each_change_shows_are_those_of_a_position(
    monkeypatch: pytest.MonkeyPatch, split: int, begun: int
) -> None:
    """A commit that is in the log and not visible would show twice, so the transaction begins again."""
    opened, pauses, taken = list[Opened](), list[float](), [CaptureRead(captured((400, {})))]

    def take_visible(place: TableName, model: str, before: Captured, at: datetime) -> CaptureRead:
        assert before is taken[-1].captured, "the changes since the last capture"
        taken.append(CaptureRead(captured((400 + len(taken), {}))))
        return taken[-1]

    def begin() -> Opened:
        opened.append(Opened())
        return opened[-1]

    def seen(*_: Any) -> Any:
        at = datetime(2026, 1, 2)
        return capture_snapshot._SnapshotPosition(Consumed("", ""), "", at, len(opened) <= split)

    capture = SimpleNamespace(take_visible=take_visible, source=parse_capture("crm.t", {"slot": "s"}))
    monkeypatch.setattr(capture_snapshot.time, "sleep", pauses.append)
    monkeypatch.setattr(capture_snapshot, "resolve_columns", lambda *_: None)
    monkeypatch.setattr(capture_snapshot.TableSnapshot, "_seen", seen)
    table = capture_snapshot.TableSnapshot(
        cast(Any, capture),
        cast(Any, SimpleNamespace(begin=begin)),
        TableName("public", "t"),
        Writes(("id",), keeps_changes=True),
        lambda: Name("lake", "s", "t"),
    )
    with pytest.raises(ConcurrentRun, match="as of one position") if split == 99 else nullcontext():
        assert table._open(taken[0], None, "m", True).read is taken[-1]
    assert len(opened) == begun
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0][: begun - 1]
    assert [one.is_closed for one in opened] == [True] * min(split, begun) + [False] * (begun > split)


class ReadsRows(Exception):
    """The run goes on to read the rows."""


NAMES = ("id", "n")
VERSION = TableVersion("16384", 2, {name: ColumnVersion(at, "7") for at, name in enumerate(NAMES, 1)}, NAMES)


def columns_of(names: tuple[str, ...] = NAMES, version: TableVersion = VERSION) -> CapturedColumns:
    found = tuple(Column(name, "bigint", "integer", "BIGINT") for name in names)
    table = Table("postgresql/crm/7", found, ("id",), 0, names, version)
    return resolve_columns(parse_capture("crm.t", {"slot": "s"}), table, TableName("public", "t"), "m")


@pytest.mark.parametrize(
    ("since", "columns", "is_same"),
    [
        (TableChanges(), columns_of(), True),
        (TableChanges(3, shapes=(shape_of(NAMES), shape_of(NAMES, ("id",)))), columns_of(), True),
        (TableChanges(3, shapes=(shape_of(NAMES), shape_of(("id", "m")))), columns_of(), False),
        (TableChanges(1, truncated_at="1"), columns_of(), False),
        (None, columns_of(), False),
        (TableChanges(), columns_of(version=VERSION._replace(storage="16390")), False),
        (TableChanges(), columns_of(("id",)), False),
    ],
    ids=[
        "same",
        "same-columns",
        "other-columns-between",
        "truncated",
        "unknown",
        "rewritten",
        "other-columns",
    ],
)
def test_a_table_that_is_read_again_is_the_one_for_which_that_was_decided(
    monkeypatch: pytest.MonkeyPatch, since: TableChanges | None, columns: CapturedColumns, is_same: bool
) -> None:
    """A statement that comes between the decision and the transaction would go unnoticed."""
    before, opened, place = captured((400, {})), Opened(), TableName("public", "t")
    later = (500, {} if since is None else {place.dotted: since})
    now = CaptureRead(captured(later) if since is None else captured((400, {}), later))
    position = capture_snapshot._SnapshotPosition(Consumed("", ""), "", datetime(2026, 1, 2))

    def view(*_: Any) -> str:
        raise ReadsRows

    def begun(*_: Any) -> Any:
        return capture_snapshot._Opened(cast(Any, opened), columns, now, position)

    monkeypatch.setattr(capture_snapshot.TableSnapshot, "_open", begun)
    monkeypatch.setattr(capture_snapshot.TableSnapshot, "_view", view)
    capture = cast(Any, SimpleNamespace(source=parse_capture("crm.t", {"slot": "s"})))
    writes, none = Writes(("id",), keeps_changes=True), cast(Any, None)
    table = capture_snapshot.TableSnapshot(capture, none, place, writes, none)
    again = capture_snapshot.ReadAgain(Evolution(), 300, columns_of())
    with pytest.raises(ReadsRows) if is_same else pytest.raises(ConcurrentRun, match="ALTER TABLE"):
        table.plan(CaptureRead(before), {}, "m", "consume", again)
    assert opened.is_closed
