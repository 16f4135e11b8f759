"""A table of PostgreSQL that transactions change at the same time, and the events that Debezium would write.

The changes come from PostgreSQL's own logical decoding, with the positions, keys and unsent values that it
has. Only their form, Debezium's JSON without schemas, is made here. ``debezium_postgres.md`` describes real
messages of Debezium, which have the same form.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from dbt_arctic.databases.pgoutput import Decoder, RowChange, TransactionEnd, Truncated
from tests.dbt.keyed.database_servers import Server
from tests.dbt.sources.open_transactions import Key, OpenTransactions
from tests.spark.keyed.change_feed import UNSENT, unscaled

Event = dict[str, Any] | None
"""A message; ``None`` is a tombstone."""
Keyed = tuple[str, Event]
"""The key of a message as text, and the message."""

KEY = ("region", "id")
EPOCH = datetime(1970, 1, 1)


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return round((moment - EPOCH).total_seconds()) * 10**6 + moment.microsecond


ENCODED: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "region": ("text", "string", str),
    "id": ("bigint", "bigint", int),
    "name": ("text", "string", str),
    "amount": ("numeric(12,2)", "decimal(12,2)", lambda text: unscaled(Decimal(text))),
    "at": ("timestamp(0)", "timestamp_ntz", micros),
    "day": ("date", "date", lambda text: (date.fromisoformat(text) - EPOCH.date()).days),
    "flag": ("boolean", "boolean", lambda text: text == "t"),
    "body": ("text", "string", str),
    "doc": ("jsonb", "string", str),
}
"""Of each column: its type in PostgreSQL, the one that is declared, and how Debezium encodes its text."""
DDL = {
    "extra": ("int", "int", int),
    "more": ("text", "string", str),
}
"""Columns that are added and dropped."""


@dataclass
class PostgresLog(OpenTransactions):
    """The table, its slot, and the events that were not delivered yet.

    :param sends_all: whether the table has ``REPLICA IDENTITY FULL``. Otherwise large values that did not
        change are not sent.
    :param moves_all: whether the key of a row changes also if it has a large value.
    :param converts: whether columns also get defaults, converted values, and each other's names. These are
        not in the log.
    """

    chance: random.Random
    server: Server
    sends_all: bool
    moves_all: bool = False
    converts: bool = False
    name: str = field(default_factory=lambda: f"cdc_{uuid.uuid4().hex[:8]}")
    columns: dict[str, tuple[str, str, Callable[[str], Any]]] = field(default_factory=lambda: dict(ENCODED))
    ddl: int = 0
    _decoder: Decoder = field(default_factory=Decoder)
    _open: list[tuple[Any, set[Key]]] = field(default_factory=list)
    _commit: int | None = None
    _numbers: int = 0

    settings: ClassVar[dict[str, Any]] = {
        "format": "debezium",
        "units": "micros",
        "decimal_handling": "precise",
        "key": list(KEY),
    }
    acts: ClassVar[tuple[str, ...]] = (
        "begin",
        "write",
        "write",
        "write",
        "write",
        "end",
        "end",
        "single",
        "single",
        "truncate",
        "alter",
    )

    def __post_init__(self) -> None:
        listed = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in self.columns.items())
        self.server.sql(
            f"CREATE TABLE {self.name} ({listed}, PRIMARY KEY (region, id))",
            # Large values are stored apart, and not sent if they have not changed.
            f"ALTER TABLE {self.name} ALTER COLUMN body SET STORAGE EXTERNAL",
            *([f"ALTER TABLE {self.name} REPLICA IDENTITY FULL"] if self.sends_all else []),
            f"CREATE PUBLICATION {self.name} FOR TABLE {self.name}",
        )

    @property
    def declared(self) -> dict[str, str]:
        return {name: kind for name, (_, kind, _) in self.columns.items()}

    @property
    def movable(self) -> str:
        """SQL: whether the key of a row may change. Debezium loses a large value that is not sent with it."""
        return "true" if self.moves_all or self.sends_all else "coalesce(length(body) < 1000, true)"

    @property
    def has_unsent(self) -> bool:
        return not self.sends_all

    def start(self) -> list[Keyed]:
        """Begin to follow the log, and read the rows while transactions go on."""
        position = self.create_slot()
        return self.snapshot(None, position)

    def create_slot(self) -> int:
        """Begin to follow the log, between some changes. Returns the position."""
        for _ in range(12):
            self.single()
        ((position,),) = self.server.sql(
            f"SELECT lsn - '0/0'::pg_lsn FROM pg_create_logical_replication_slot('{self.name}', 'pgoutput')"
        )
        for _ in range(4):
            self.single()
        return int(position)

    @property
    def followed(self) -> dict[str, Any]:
        return {"from": "postgres", "url": self.server.url, "slot": self.name, "table": self.name}

    def begin_to_follow(self) -> None:
        self.create_slot()

    def close(self) -> None:
        for connection, _ in self._open:
            connection.close()
        self.server.sql(
            f"SELECT pg_drop_replication_slot('{self.name}')",
            f"DROP PUBLICATION {self.name}",
            f"DROP TABLE {self.name}",
        )

    # Statements

    def truncate(self) -> None:
        if not self._open and self.chance.random() < 0.15:
            self.server.sql(f"TRUNCATE {self.name}")

    def alter(self) -> None:
        """Add or drop a column. Readers learn of it from the next event."""
        if self._open or self.chance.random() < (0.1 if self.converts else 0.6):
            return
        if self.converts and self.chance.random() < 0.4:
            self.convert()
            return
        name = self.chance.choice(sorted(DDL))
        if name in self.columns:
            del self.columns[name]
            self.server.sql(f"ALTER TABLE {self.name} DROP COLUMN {name}")
        else:
            self.columns[name] = DDL[name]
            default = " DEFAULT 5" if self.converts and self.chance.random() < 0.5 else ""
            self.server.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {DDL[name][0]}{default}")
        self.ddl += 1

    def convert(self) -> None:
        """Change values without changing rows, as far as the log is concerned."""
        of_table = f"ALTER TABLE {self.name}"
        swap = [("name", "other"), ("body", "name"), ("other", "body")]
        statements = self.chance.choice(
            [
                [f"{of_table} ALTER COLUMN amount TYPE numeric(12,2) USING amount + 1"],
                [f"{of_table} ALTER COLUMN name TYPE text USING name || '!'"],
                [f"{of_table} RENAME {one} TO {other}" for one, other in swap],
                [f"{of_table} ALTER COLUMN day SET DEFAULT '2026-01-01'", f"VACUUM FULL {self.name}"],
            ]
        )
        self.server.sql(*statements)
        self.ddl += 1

    def _statement(self, locked: set[Key], own: set[Key]) -> str:
        draw = self.chance
        key = self._key()
        if key in locked:
            return ""
        own.add(key)
        where = f"WHERE region = '{key[0]}' AND id = {key[1]}"
        what = draw.random()
        if what < 0.2:
            return f"DELETE FROM {self.name} {where}"
        if what < 0.35:
            moved = self._key()
            if moved in locked:
                return ""
            own.add(moved)
            place = f"region = '{moved[0]}' AND id = {moved[1]}"
            free = f"{self.movable} AND NOT EXISTS (SELECT 1 FROM {self.name} WHERE {place})"
            return f"UPDATE {self.name} SET region = '{moved[0]}', id = {moved[1]} {where} AND {free}"
        values = {name: one for name, one in self._values().items() if name in self.columns}
        if draw.random() < 0.5:  # an update that leaves the large value as it is
            values.pop("body")
        if draw.random() < 0.3:
            values = {name: values[name] for name in draw.sample(sorted(values), k=2)}
        names = ", ".join(f'"{name}"' for name in values)
        updated = ", ".join(f'"{name}" = excluded."{name}"' for name in values)
        return (
            f"INSERT INTO {self.name} (region, id, {names}) "
            f"VALUES ('{key[0]}', {key[1]}, {', '.join(values.values())}) "
            f"ON CONFLICT (region, id) DO UPDATE SET {updated}"
        )

    def _key(self) -> Key:
        return self.chance.choice("ab"), self.chance.randrange(6)

    def _values(self) -> dict[str, str]:
        draw = self.chance
        self._numbers += 1
        moment = f"20{draw.randrange(10, 40)}-0{draw.randrange(1, 10)}-11 10:11:{draw.randrange(10, 60)}"
        return {
            "name": draw.choice(["NULL", "''", "'Öl | ''x'''", "'null'", f"'n{self._numbers}'"]),
            "amount": draw.choice(["NULL", f"{draw.randrange(-(10**9), 10**9) / 100:.2f}", "0"]),
            "at": draw.choice(["NULL", f"'{moment}'"]),
            "day": draw.choice(["NULL", f"'{moment[:10]}'"]),
            "flag": draw.choice(["NULL", "true", "false"]),
            "body": draw.choice(["NULL", "'short'", f"repeat('{self._numbers}x', 1500)"]),
            "doc": draw.choice(["NULL", f"'{{\"n\": {self._numbers}.50}}'"]),
            "extra": str(draw.randrange(99)),
            "more": f"'v{draw.randrange(99)}'",
        }

    # Events

    def read(self) -> list[Keyed]:
        """The events of what was committed since the last time."""
        found: list[Keyed] = []
        rows = self.server.sql(
            "SELECT lsn - '0/0'::pg_lsn, xid::text, data FROM pg_logical_slot_get_binary_changes("
            f"'{self.name}', NULL, NULL, 'proto_version', '1', 'publication_names', '{self.name}')"
        )
        for position, transaction, data in rows:
            message = self._decoder.decode(bytes(data))
            if isinstance(message, TransactionEnd):
                self._commit = message.end
            elif isinstance(message, Truncated):
                found.append(("", self._event("t", None, None, int(position), transaction)))
            elif isinstance(message, RowChange):
                found += self._events(message, int(position), transaction)
        return found

    def snapshot(self, commit: int | None, position: int) -> list[Keyed]:
        """The rows as they are now, read at a position of the log."""
        names = ", ".join(f'"{name}"::text' for name in self.columns)
        found = []
        for row in self.server.sql(f"SELECT {names} FROM {self.name}"):
            values = dict(zip(self.columns, row, strict=True))
            # A truth value is cast to another text than the one that the log has.
            values["flag"] = values["flag"] and values["flag"][0]
            event = self._event("r", None, values, position, "1", commit)
            found.append((_key_text(values), event))
        return found

    def snapshot_again(self) -> list[Keyed]:
        """All rows once more, after what was read of the log."""
        return self.snapshot(self._commit, self._commit) if self._commit is not None else []

    def _events(self, change: RowChange, position: int, transaction: str) -> list[Keyed]:
        old, new = change.old, change.new
        if change.kind == "delete":
            assert old is not None
            return [
                (_key_text(old), self._event("d", old, None, position, transaction)),
                (_key_text(old), None),
            ]
        assert new is not None
        # The connector takes a large value that did not change from the row before, if it was sent.
        new = (
            {**{name: one for name, one in (old or {}).items() if name not in KEY}, **new}
            if self.sends_all
            else new
        )
        if change.kind == "update" and old is not None and _key_text(old) != _key_text(new):
            deleted = RowChange("delete", change.table, old, None)
            inserted = RowChange("insert", change.table, None, new)
            return [
                *self._events(deleted, position, transaction),
                *self._events(inserted, position, transaction),
            ]
        kind = "c" if change.kind == "insert" else "u"
        unsent = dict.fromkeys(set(change.table.columns) - set(new), UNSENT)
        return [(_key_text(new), self._event(kind, old, {**new, **unsent}, position, transaction))]

    def _event(
        self,
        operation: str,
        before: dict[str, str | None] | None,
        after: dict[str, str | None] | None,
        position: int,
        transaction: str,
        commit: int | None = -1,
    ) -> dict[str, Any]:
        last = self._commit if commit == -1 else commit
        sequence = [None if last is None else str(last), str(position)]
        source = {
            **{"connector": "postgresql", "db": "lake", "schema": "public", "table": self.name},
            **{"ts_ms": 1_700_000_000_000, "snapshot": str(operation == "r").lower()},
            **{"sequence": json.dumps(sequence), "lsn": position, "txId": int(transaction)},
        }
        return {
            "before": before and self._encoded(before),
            "after": after and self._encoded(after),
            **{"source": source, "op": operation, "ts_ms": 1_700_000_000_001},
        }

    def _encoded(self, row: dict[str, str | None]) -> dict[str, Any]:
        known = {**ENCODED, **DDL}
        return {
            name: text if text in (None, UNSENT) else known[name][2](str(text)) for name, text in row.items()
        }

    def rows(self, columns: list[str]) -> list[tuple[Any, ...]]:
        """The table as it is, as texts."""
        listed = ", ".join(f'"{name}"::text' for name in columns)
        return sorted(map(tuple, self.server.sql(f"SELECT {listed} FROM {self.name}")), key=repr)


def _key_text(row: dict[str, str | None]) -> str:
    return json.dumps([row[name] for name in KEY])


__all__ = ["Event", "Keyed", "PostgresLog"]
