"""Change events of a database: after each run, the keyed table equals the database's table."""

from __future__ import annotations

import base64
import json
import random
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.databases.api import Column, Table, TableName
from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.errors import ArcticError, MalformedFile
from dbt_arctic.keyed.names import literal, quote_all
from dbt_arctic.sources.capture_messages import message_of
from dbt_arctic.sources.capture_settings import parse_capture, resolve_columns
from dbt_arctic.sources.change_settings import ChangeEvents
from dbt_arctic.sources.change_sql import Delivery, _unavailable_forms, rows_of_events, summary_of
from dbt_arctic.sources.change_types import EncodedValue, SchemaInMessage, decoded
from dbt_arctic.sources.kafka_settings import KafkaSource, parse_kafka
from dbt_arctic.sources.kafka_sql import delivery_of
from tests.extent import extent
from tests.spark.keyed.change_feed import COLUMNS, UNSENT, Canal, Database, Maxwell, MySql, Postgres

RUNS, TRANSACTIONS = 3, extent(60, 600)
TYPES = {**COLUMNS, "_source_sequence": "string"}


def source(**settings: Any) -> KafkaSource:
    made = {"from": "kafka", "servers": "h:1", "columns": COLUMNS, "key": ["region", "id"], **settings}
    return parse_kafka("shop.orders", made, {}, {}, "shop.yml")


def text(message: Any) -> str | None:
    return None if message is None else json.dumps(message, ensure_ascii=False)


def topic(shop: Any, name: str, messages: list[tuple[int, str | None]]) -> str:
    """A view like that of Spark's reader of Kafka."""
    rows = [(0, offset, None if one is None else bytearray(one.encode())) for offset, one in messages]
    frame = shop.main.connection.session.createDataFrame(rows, "partition int, offset bigint, value binary")
    frame.selectExpr("*", "current_timestamp() AS timestamp").createOrReplaceTempView(name)
    return name


def rows(shop: Any, made: KafkaSource, view: str, truncated_at: str = "") -> str:
    assert made.changes is not None
    return rows_of_events(made.changes, delivery_of(made), view, truncated_at)


@pytest.mark.parametrize(
    "tool", [Postgres(), MySql(), Maxwell(), Canal()], ids=lambda one: type(one).__name__
)
def test_the_table_equals_the_source_after_each_run(shop: Any, tool: Any) -> None:
    """With events of another kind in between, and events that are repeated at any later time."""
    chance = random.Random(5)
    database = Database(chance)
    made = source(**tool.settings)
    assert made.changes is not None
    orders = shop.table("orders", TYPES, unique_key=["region", "id"], sequence_by="_source_sequence")
    sent: list[Any] = []
    offset = 0
    for run in range(RUNS):
        log: list[Any] = []
        if run == 0 and isinstance(tool, Postgres):
            for _ in range(5):
                database.transaction()
            log += [one for change in database.snapshot() for one in tool.messages(change)]
        for _ in range(TRANSACTIONS):
            log += [one for change in database.transaction() for one in tool.messages(change)]
        batch = list(map(text, log))
        again = batch[len(batch) // 2 :] if run == 1 else []
        if tool.is_ordered:
            again += chance.sample(sent, min(len(sent), 60))
        for other in tool.others():
            batch.insert(chance.randrange(len(batch)), text(other))
        sent += [one for one in batch if one]
        # Canal repeats everything from some message on. The others may repeat any event.
        batch += again
        view = topic(shop, f"topic_{run}", [(offset + at, one) for at, one in enumerate(batch)])
        offset += len(batch)
        lacking = ["_unavailable"] if made.changes.unavailable == "keep" else []
        model = f"SELECT {quote_all([*TYPES, *lacking, '_action'])}\nFROM (\n{rows(shop, made, view)}\n)"
        if run == 0:
            orders.build_sql(model)
        else:
            orders.upsert_sql(model)
        found = shop.main.query(f"SELECT {quote_all(COLUMNS)} FROM {orders.name.sql}")
        assert sorted(repr(tuple(row)) for row in found) == sorted(
            repr(tuple(row.values())) for row in database.rows.values()
        )
    counted = {row[0]: row[1] for row in shop.main.query(summary_of(made.changes, delivery_of(made), view))}
    assert sum(counted.values()) == len(batch)
    assert len(counted) > 1


VALUES: list[tuple[str, Any, str | None, int | None, Any]] = [
    ("bigint", 9223372036854775807, None, None, 9223372036854775807),
    ("bigint", 9223372036854775808, None, None, None),
    ("int", 1.5, None, None, None),
    ("tinyint", 128, None, None, None),
    ("bigint", "AQ==", "org.apache.kafka.connect.data.Decimal", 0, None),
    ("boolean", True, None, None, True),
    ("boolean", 0, None, None, False),
    ("boolean", 2, None, None, None),
    ("double", "NaN", None, None, "nan"),
    ("double", 1.5, None, None, 1.5),
    ("double", "AQ==", "org.apache.kafka.connect.data.Decimal", 2, None),
    ("date", 18000, "io.debezium.time.Date", None, date(2019, 4, 14)),
    ("date", -1, "org.apache.kafka.connect.data.Date", None, date(1969, 12, 31)),
    ("date", 18000, "io.debezium.time.Timestamp", None, None),
    ("date", "2026-02-30", None, None, None),
    ("string", 3_723_000, "io.debezium.time.Time", None, "01:02:03"),
    ("string", -3_723_000_001, "io.debezium.time.MicroTime", None, "-01:02:03.000001"),
    ("string", 3_723_000_000_001, "io.debezium.time.NanoTime", None, None),
    ("string", 18000, "io.debezium.time.Date", None, "2019-04-14"),
    ("string", 1, "io.debezium.time.Timestamp", None, None),
    ("string", {"b": [1, None], "a": "x"}, None, None, '{"a":"x","b":[1,null]}'),
    ("string", '{"a": 1}', "io.debezium.data.Json", None, '{"a": 1}'),
    ("string", "5f0c", "io.debezium.data.Uuid", None, "5f0c"),
    (
        "timestamp_ntz",
        1_700_000_000_123,
        "io.debezium.time.Timestamp",
        None,
        datetime(2023, 11, 14, 22, 13, 20, 123000),
    ),
    (
        "timestamp_ntz",
        -1,
        "io.debezium.time.MicroTimestamp",
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999999),
    ),
    ("timestamp_ntz", 1_000, "io.debezium.time.NanoTimestamp", None, datetime(1970, 1, 1, 0, 0, 0, 1)),
    ("timestamp_ntz", 1_001, "io.debezium.time.NanoTimestamp", None, None),
    ("timestamp_ntz", 10**18, "io.debezium.time.MicroTimestamp", None, None),
    ("timestamp_ntz", 1_700_000_000_123, None, None, None),
    ("timestamp_ntz", "2026-01-02 03:04:05.6", None, None, datetime(2026, 1, 2, 3, 4, 5, 600000)),
    ("timestamp_ntz", "2026-01-02T03:04:05Z", "io.debezium.time.ZonedTimestamp", None, None),
    ("timestamp", "2026-01-02 03:04:05", None, None, None),
    ("timestamp", "2026-01-02T03:04:05.1234567Z", "io.debezium.time.ZonedTimestamp", None, None),
    ("binary", "AQL/", None, None, b"\x01\x02\xff"),
    ("binary", "AQL", None, None, None),
    ("binary", "", None, None, b""),
    ("decimal(10,2)", "ANI=", "org.apache.kafka.connect.data.Decimal", 2, Decimal("2.10")),
    ("decimal(10,2)", "/y4=", "org.apache.kafka.connect.data.Decimal", 2, Decimal("-2.10")),
    ("decimal(10,1)", "ANI=", "org.apache.kafka.connect.data.Decimal", 2, Decimal("2.1")),
    ("decimal(10,0)", "ANI=", "org.apache.kafka.connect.data.Decimal", 2, None),
    ("decimal(2,2)", "ANI=", "org.apache.kafka.connect.data.Decimal", 2, None),
    ("decimal(38,0)", "ACzXb+CGuTzi92igCyKgAAAAAAA=", "org.apache.kafka.connect.data.Decimal", 0, None),
    (
        "decimal(38,0)",
        "SztMqFqGxHoJiiI//////w==",
        "org.apache.kafka.connect.data.Decimal",
        0,
        Decimal(10**38 - 1),
    ),
    (
        "decimal(20,5)",
        {"scale": 3, "value": "ANI="},
        "io.debezium.data.VariableScaleDecimal",
        None,
        Decimal("0.21000"),
    ),
    ("decimal(10,2)", "12.50", "", None, Decimal("12.50")),
    ("decimal(10,2)", "12.505", "", None, None),
    ("decimal(10,2)", 1.0e3, "", None, Decimal("1000.00")),
    ("decimal(10,2)", "1234", None, None, None),
    ("decimal(10,2)", "12.5", None, None, Decimal("12.50")),
    ("array<int>", [1, None, 3], None, None, [1, None, 3]),
    ("array<int>", [1, "x"], None, None, None),
    ("array<date>", [0, 1], "io.debezium.time.Date", None, [date(1970, 1, 1), date(1970, 1, 2)]),
]
"""A type; a value of a message; the name of its type and its scale in the message's schema, if it has one;
and what it is in the table, or ``None`` if it does not fit. An empty name: the schema has none for it."""
ONLY_DEBEZIUM = ("date", "array<date>", "decimal(10,2)")
"""Types that Debezium writes as numbers or bytes even without a schema."""


def test_values_are_exact_or_do_not_fit(shop: Any) -> None:
    events = ChangeEvents("debezium", {}, ())
    expected, selected = [], []
    for kind, value, name, scale, made in VALUES:
        parsed = f"parse_json({literal(json.dumps(value))})"
        schema = SchemaInMessage(
            str(name is not None).lower(),
            literal(name) if name else "CAST(NULL AS STRING)",
            "CAST(NULL AS INT)" if scale is None else str(scale),
        )
        schemas: list[SchemaInMessage | None] = [schema]
        if name is None and kind not in ONLY_DEBEZIUM:
            schemas.append(None)  # a format whose messages have no schema has the same values
        for one in schemas:
            encoded = EncodedValue(parsed, f"CAST({parsed} AS STRING)", one)
            selected.append(decoded(kind, encoded, events, "c"))
            expected.append((kind, value, name, one, made))
    ((*found,),) = shop.main.query("SELECT " + ",\n".join(selected))
    for (kind, value, name, schema_of, made), one in zip(expected, found, strict=True):
        plain = bytes(one) if isinstance(one, bytearray) else str(one) if made == "nan" else one
        assert plain == made, (kind, value, name, schema_of)


def test_each_form_of_a_value_that_was_not_sent_is_known(shop: Any) -> None:
    """Those of Debezium's ``UnchangedToastedPlaceholder``, by the types that they stand for."""
    raw = UNSENT.encode()

    def coded(part: bytes) -> str:
        return base64.b64encode(part).decode()

    geometry = {
        "wkb": coded(bytes.fromhex("0101000020E6100000000000FC83D797C1000000FC83D797C1")),
        "srid": 4326,
    }
    forms: dict[str, Any] = {
        **{"text": UNSENT, "bytea": coded(raw), "text[]": [UNSENT], "bytea[]": [coded(raw)]},
        **{"int[]": list(raw), "float8[]": list(map(float, raw)), "hstore": {UNSENT: UNSENT}},
        "numeric(9,2)[]": [coded(bytes([byte])) for byte in raw],
        "numeric[]": [{"scale": 0, "value": coded(bytes([byte]))} for byte in raw],
        "geometry": geometry,
    }
    known = ", ".join(map(literal, _unavailable_forms(UNSENT)))
    listed = ", ".join(
        f"CAST(parse_json({literal(json.dumps(one))}) AS STRING) IN ({known})" for one in forms.values()
    )
    (found,) = shop.main.query(f"SELECT {listed}")
    assert [kind for kind, is_known in zip(forms, found, strict=True) if not is_known] == []


REAL = {
    **{"region": "string", "id": "bigint", "name": "string", "amount": "decimal(12,2)"},
    **{"free": "decimal(38,10)", "at": "timestamp_ntz", "at3": "timestamp_ntz", "tz": "timestamp"},
    **{"day": "date", "tod": "string", "flag": "boolean", "f8": "double", "f4": "float", "body": "string"},
    **{"blob": "binary", "doc": "string", "u": "string", "tags": "array<string>", "nums": "array<int>"},
    **{"m": "string", "bits": "binary"},
}
UNITS = {"at": "micros", "at3": "millis"}
NO_SCHEMA = {"decimal_handling": "precise", "units": UNITS, "columns": {**REAL, "tod": "bigint"}}


@pytest.mark.parametrize(
    ("file", "settings", "tod"),
    [
        ("debezium_postgres.jsonl", NO_SCHEMA, 45_296_000_001),
        ("debezium_postgres_with_schemas.jsonl", {"columns": REAL}, "12:34:56.000001"),
    ],
)
def test_messages_that_debezium_has_written(shop: Any, file: str, settings: dict[str, Any], tod: Any) -> None:
    """Captured from Debezium 3.2.3 and PostgreSQL 15: see ``debezium_postgres.md`` for the statements."""
    made = source(format="debezium", unavailable="keep", **settings)
    assert made.changes is not None
    lines = (Path(__file__).parent / file).read_text().splitlines()
    view = topic(shop, "real", [(at, None if line == "null" else line) for at, line in enumerate(lines)])
    types = {**made.columns, "_source_sequence": "string"}
    orders = shop.table("orders", types, unique_key=["region", "id"], sequence_by="_source_sequence")
    selected = quote_all([*types, "_unavailable", "_action"])
    orders.build_sql(f"SELECT {selected}\nFROM (\n{rows(shop, made, view)}\n)")
    instant = "CAST(unix_micros(tz) AS BIGINT) AS tz"
    columns = ", ".join(instant if name == "tz" else f"`{name}`" for name in REAL)
    first, other = shop.main.query(f"SELECT {columns} FROM {orders.name.sql} ORDER BY region")
    assert other == ("b", 1, None, Decimal("7.00"), *[None] * (len(REAL) - 4))
    at = datetime(2026, 1, 2, 3, 4, 5, 123456)
    instant_micros = int(datetime(2026, 1, 2, 1, 4, 5, tzinfo=timezone.utc).timestamp()) * 10**6 + 123456
    assert first == (
        *("a", 1, "two", Decimal("99999.99"), Decimal("123456789012345678901234.5000000000")),
        *(at, at.replace(microsecond=123000), instant_micros, date(2026, 1, 2), tod, True, 1.5, 1.5),
        *("x" * 3000, b"\x00\xff" * 2000, '{"a": 1.10}', "5f0c1d2e-0000-0000-0000-000000000001"),
        *([f"t{number}" for number in range(1, 601)], list(range(1, 901)), "ok", b"\x05"),
    )
    summary = shop.main.query(summary_of(made.changes, delivery_of(made), view))
    kinds = {row[0]: row[1] for row in summary}
    assert kinds["truncate"] == 1
    assert kinds["tombstone"] == 3
    assert {"heartbeat", "transaction"} <= kinds.keys()


def test_what_cannot_be_read_is_an_error(shop: Any) -> None:
    tool = Postgres()
    database = Database(random.Random(1))
    (change, *_) = database.transaction()
    message = tool.messages(change)[0]
    wrong = {
        "amount is not a decimal": {**message, "after": {**message["after"], "amount": "!"}},
        "name is missing": {**message, "after": {k: v for k, v in message["after"].items() if k != "name"}},
        "not an event": {"id": 1},
        "no position": {
            **message,
            "source": {**message["source"], "lsn": None, "sequence": None},
        },
    }
    for number, (said, one) in enumerate(wrong.items()):
        view = topic(shop, f"wrong_{number}", [(7, text(one))])
        with pytest.raises(ArcticError, match=said) as failed:
            shop.main.query(rows(shop, source(**tool.settings), view))
        assert isinstance(failed.value, MalformedFile)
        assert "partition 0, offset 7" in str(failed.value)


def test_a_decimal_key_with_more_zeros_is_the_same_key(shop: Any) -> None:
    """A delete and an upsert of one key and one change would have no order."""
    table = Table(
        "postgresql/x/7", (Column("id", "numeric", "decimal", "DECIMAL(38,18)"),), ("id",), 0, ("id",)
    )
    columns = resolve_columns(parse_capture("crm.t", {"slot": "s"}), table, TableName("public", "t"), "t")
    delivery = Delivery("crm.t", "`message`", "CAST(NULL AS STRING)", "'here'", {})
    for before, after, actions in (
        ("1.0", "1.00", [("U", 1)]),
        ("1.0", "1.01", [("D", 1), ("U", Decimal("1.01"))]),
    ):
        change = LoggedChange(9, 1, "5", "public.t", "update", 0, {"id": before}, {"id": after})
        shop.main.query(
            f"CREATE OR REPLACE TEMPORARY VIEW changed AS SELECT {literal(message_of(change))} AS message"
        )
        made = rows_of_events(columns.events, delivery, "changed")
        found = shop.main.query(f"SELECT _action, id FROM ({made}) ORDER BY _action")
        assert list(map(tuple, found)) == actions
