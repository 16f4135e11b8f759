"""A database's table in Python, and what Debezium, Maxwell and Canal write about its changes.

The shapes of the messages are those of the tools' sources: ``io.debezium.connector.postgresql.SourceInfo``,
Debezium's documentation of its MySQL connector, ``com.zendesk.maxwell.row.RowMap`` and Canal's
``MQMessageUtils.messageConverter``.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

Row = dict[str, Any]
Key = tuple[str, int]

COLUMNS = {
    **{"region": "string", "id": "bigint", "name": "string", "amount": "decimal(12,2)"},
    **{"at": "timestamp_ntz", "day": "date", "flag": "boolean", "body": "string"},
}
UNSENT = "__debezium_unavailable_value"
EPOCH = datetime(1970, 1, 1)


def unscaled(amount: Decimal) -> str:
    """A decimal with two places as Kafka Connect writes it: the bytes of its unscaled value, in base64."""
    number = int(amount * 100)
    size = (number.bit_length() + 8) // 8
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


@dataclass(frozen=True)
class Change:
    """One change of a row, with its position in the log.

    :param commit: the position of the commit before the transaction; ``None`` if there was none.
    :param place: counts the changes of the database.
    :param last: whether it is the last one of its transaction.
    """

    before: Row | None
    after: Row | None
    place: int
    commit: int | None
    offset: int
    last: bool
    unsent: tuple[str, ...] = ()
    is_read: bool = False


@dataclass
class Database:
    """A table with a composite key, changed in transactions."""

    chance: random.Random
    rows: dict[Key, Row] = field(default_factory=dict)
    place: int = 100
    commit: int | None = 0

    def row(self, key: Key) -> Row:
        draw = self.chance
        moment = EPOCH + timedelta(microseconds=draw.randrange(2 * 10**15))
        return {
            "region": key[0],
            "id": key[1],
            "name": draw.choice([None, "", "Öl | 'x'", "null", f"n{draw.randrange(9)}"]),
            "amount": draw.choice(
                [None, Decimal(draw.randrange(-(10**9), 10**9)).scaleb(-2), Decimal("0.00")]
            ),
            "at": draw.choice([None, moment]),
            "day": draw.choice([None, moment.date()]),
            "flag": draw.choice([None, True, False]),
            "body": draw.choice([None, f"long {draw.random()}"]),
        }

    def key(self) -> Key:
        return self.chance.choice("ab"), self.chance.randrange(12)

    def transaction(self) -> list[Change]:
        """A few changes, in the order of the log."""
        found: list[Change] = []
        for _ in range(self.chance.randrange(1, 5)):
            found += self._change(len(found))
        if found:
            found[-1] = Change(**{**found[-1].__dict__, "last": True})
        self.place += 1
        self.commit = self.place
        return found

    def _change(self, offset: int) -> Iterator[Change]:
        key = self.key()
        old = self.rows.get(key)
        self.place += self.chance.randrange(1, 4)

        def made(before: Row | None, after: Row | None, unsent: tuple[str, ...] = ()) -> Change:
            return Change(before, after, self.place, self.commit, offset, False, unsent)

        if old is None:
            self.rows[key] = self.row(key)
            yield made(None, self.rows[key])
        elif self.chance.random() < 0.2:
            del self.rows[key]
            yield made(old, None)
        elif self.chance.random() < 0.25 and (moved := self.key()) not in self.rows:
            del self.rows[key]
            self.rows[moved] = {**self.row(moved), "body": old["body"]}
            yield made(old, self.rows[moved])
        else:
            new = self.row(key)
            unsent = ("body",) if self.chance.random() < 0.5 else ()
            new |= {name: old[name] for name in unsent}
            self.rows[key] = new
            yield made(old, new, unsent)

    def snapshot(self) -> list[Change]:
        """All rows as they are now, read at the end of the log."""
        self.place += 1
        self.commit = None  # a new connector has seen no commit
        return [Change(None, row, self.place, None, 0, False, is_read=True) for row in self.rows.values()]


class Postgres:
    """Debezium's connector for PostgreSQL, JSON without schemas. A key change is a delete and an insert."""

    settings: ClassVar[dict[str, Any]] = {
        "format": "debezium",
        "unavailable": "keep",
        "units": "micros",
        "decimal_handling": "precise",
    }
    is_ordered = True

    def messages(self, change: Change) -> list[Any]:
        before, after = change.before, change.after
        if before and after and key_of(before) != key_of(after):
            gone = Change(**{**change.__dict__, "after": None})
            made = Change(**{**change.__dict__, "before": None, "unsent": ()})
            return [*self.messages(gone), *self.messages(made)]
        operation = "r" if change.is_read else "d" if after is None else "u" if before else "c"
        sequence = [None if change.commit is None else str(change.commit), str(change.place)]
        source = {
            **{
                "version": "3.2.3.Final",
                "connector": "postgresql",
                "name": "shop",
                "ts_ms": 1_700_000_000_000,
            },
            **{"snapshot": "true" if change.is_read else "false", "db": "shop", "schema": "public"},
            **{"table": "orders", "sequence": json.dumps(sequence), "txId": 7, "lsn": change.place},
        }
        # With the default replica identity, an update has no before-image, and a delete only the key.
        keys = before and {name: before[name] if name in ("region", "id") else None for name in COLUMNS}
        value = {
            "before": keys if operation == "d" else None,
            "after": after and self.encoded(after, change.unsent),
            **{"source": source, "op": operation, "ts_ms": 1_700_000_000_001, "transaction": None},
        }
        return [value, None] if operation == "d" else [value]

    def encoded(self, row: Row, unsent: tuple[str, ...]) -> Row:
        made = {
            **row,
            "amount": None if row["amount"] is None else unscaled(row["amount"]),
            "at": None if row["at"] is None else (row["at"] - EPOCH) // timedelta(microseconds=1),
            "day": None if row["day"] is None else (row["day"] - EPOCH.date()).days,
        }
        return {**made, **dict.fromkeys(unsent, UNSENT)}

    def others(self) -> list[Any]:
        begin = {"status": "BEGIN", "id": "571:5", "event_count": None, "data_collections": None, "ts_ms": 5}
        return [{"ts_ms": 1_700_000_000_000}, begin]


class MySql(Postgres):
    """Debezium's connector for MySQL, JSON with schemas, with complete before-images."""

    settings: ClassVar[dict[str, Any]] = {"format": "debezium"}
    _types: ClassVar[dict[str, Any]] = {
        "amount": {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
        "at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        "day": {"type": "int32", "name": "io.debezium.time.Date"},
    }

    def messages(self, change: Change) -> list[Any]:
        operation = "r" if change.is_read else "d" if not change.after else "u" if change.before else "c"
        source = {
            **{"version": "3.2.3.Final", "connector": "mysql", "name": "shop", "ts_ms": 1_700_000_000_000},
            **{"snapshot": "true" if change.is_read else "false", "db": "shop", "table": "orders"},
            **{"server_id": 1, "gtid": None, "file": f"binlog.{1 + change.place // 150:06}"},
            **{"pos": change.place % 150, "row": 0, "thread": 9, "query": None},
        }
        payload = {
            "before": change.before and self.encoded(change.before, ()),
            "after": change.after and self.encoded(change.after, ()),
            **{"source": source, "op": operation, "ts_ms": 1_700_000_000_001, "transaction": None},
        }
        fields = [{"type": "string", "optional": True, **self._types.get(c, {}), "field": c} for c in COLUMNS]
        rows = [
            {"type": "struct", "fields": fields, "optional": True, "name": "shop.Value", "field": side}
            for side in ("before", "after")
        ]
        schema = {"type": "struct", "fields": rows, "optional": False, "name": "shop.Envelope", "version": 2}
        value = {"schema": schema, "payload": payload}
        return [value, None] if operation == "d" else [value]

    def others(self) -> list[Any]:
        payload = {"source": {}, "databaseName": "shop", "ddl": "ALTER TABLE orders ..", "tableChanges": []}
        return [{"schema": {}, "payload": {"ts_ms": 5}}, {"schema": {}, "payload": payload}]


class Maxwell:
    settings: ClassVar[dict[str, Any]] = {"format": "maxwell", "table": "shop.orders"}
    is_ordered = True

    def messages(self, change: Change) -> list[Any]:
        row = self.encoded(change.after or change.before or {})
        kind = "delete" if change.after is None else "update" if change.before else "insert"
        value = {
            **{"database": "shop", "table": "orders", "type": kind, "ts": 1_700_000_000, "xid": 23},
            **({"commit": True} if change.last else {"xoffset": change.offset}),
            # The rows of one event have one position.
            "position": f"binlog.{1 + (change.commit or 0) // 150:06}:{(change.commit or 0) % 150}",
            "data": row,
        }
        if kind == "update":
            old = self.encoded(change.before or {})
            value["old"] = {name: old[name] for name in old if old[name] != row[name]}
        return [value]

    def encoded(self, row: Row) -> Row:
        made = {
            name: str(value) if name in ("at", "day") and value is not None else value
            for name, value in row.items()
        }
        return {**made, "amount": None if row["amount"] is None else float(row["amount"])}

    def others(self) -> list[Any]:
        other = {"database": "shop", "table": "items", "type": "insert", "ts": 1, "data": {"id": 1}}
        ddl = {"type": "table-alter", "database": "shop", "table": "orders", "def": {}, "ts": 1, "sql": ".."}
        return [other, ddl]


class Canal:
    """Canal's flat messages: all values are strings, and there is no position in the binlog."""

    settings: ClassVar[dict[str, Any]] = {"format": "canal", "table": "shop.orders"}
    is_ordered = False

    def messages(self, change: Change) -> list[Any]:
        row = self.encoded(change.after or change.before or {})
        kind = "DELETE" if change.after is None else "UPDATE" if change.before else "INSERT"
        old = self.encoded(change.before or {})
        changed = {name: old[name] for name in old if old[name] != row[name]} if kind == "UPDATE" else {}
        # Seconds, as in the binlog: many transactions have the same one.
        seconds = (1_700_000_000 + change.place // 200) * 1000
        value = {
            **{"data": [row], "database": "shop", "es": seconds, "gtid": "", "id": 3, "isDdl": False},
            **{"mysqlType": {"id": "bigint"}, "old": [changed] if kind == "UPDATE" else None},
            **{"pkNames": ["region", "id"], "sql": "", "sqlType": {"id": -5}, "table": "orders"},
            **{"ts": seconds + 1, "type": kind},
        }
        return [value]

    def encoded(self, row: Row) -> Row:
        flags = {True: "1", False: "0"}
        return {
            name: None if value is None else flags[value] if name == "flag" else str(value)
            for name, value in row.items()
        }

    def others(self) -> list[Any]:
        ddl = {
            "data": None,
            "database": "shop",
            "es": 1,
            "id": 3,
            "isDdl": True,
            "old": None,
            "sql": "ALTER ..",
        }
        return [{**ddl, "table": "orders", "ts": 2, "type": "ALTER"}]


def key_of(row: Row) -> Key:
    return row["region"], row["id"]
