"""A table of MariaDB, and what Debezium, Maxwell or Canal write about the statements that change it.

The events follow from the statements, because MariaDB gives its log to replicas only. The table itself is the
truth.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from tests.dbt.keyed.database_servers import Server
from tests.dbt.sources.postgres_log import Keyed
from tests.spark.keyed.change_feed import COLUMNS, Canal, Change, Database, Maxwell, MySql, key_of

KEY = ("region", "id")
TYPES = {
    **{"region": "varchar(9)", "id": "bigint", "name": "varchar(40)", "amount": "decimal(12,2)"},
    **{"at": "datetime(6)", "day": "date", "flag": "boolean", "body": "text"},
}
TOOLS: Mapping[str, Any] = {"debezium": MySql(), "maxwell": Maxwell(), "canal": Canal()}


@dataclass
class MariaDbLog:
    """The table, and the events that were not delivered yet.

    :param format: of the tool that writes the events.
    """

    chance: random.Random
    server: Server
    format: str
    name: str = field(default_factory=lambda: f"cdc_{uuid.uuid4().hex[:8]}")
    ddl: int = 0
    has_unsent: bool = False
    sends_all: bool = True
    _events: list[Keyed] = field(default_factory=list)

    acts: ClassVar[tuple[str, ...]] = ("transaction",) * 9 + ("truncate",)

    def __post_init__(self) -> None:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in TYPES.items())
        collated = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        self.server.sql(f"CREATE TABLE {self.name} ({listed}, PRIMARY KEY (region, id)) {collated}")
        self._database = Database(self.chance)
        self._tool = TOOLS[self.format]

    @property
    def settings(self) -> dict[str, Any]:
        return {**self._tool.settings, "key": list(KEY)}

    @property
    def declared(self) -> dict[str, str]:
        return dict(COLUMNS)

    def start(self) -> list[Keyed]:
        self.transaction()
        return self.read()

    def close(self) -> None:
        self.server.sql(f"DROP TABLE {self.name}")

    def transaction(self) -> None:
        changes = self._database.transaction()
        self.server.sql("BEGIN", *(self._statement(one) for one in changes), "COMMIT")
        for change in changes:
            row = change.after or change.before
            assert row is not None
            self._events += [(json.dumps(key_of(row)), one) for one in self._tool.messages(change)]

    def truncate(self) -> None:
        """Maxwell does not write it, but it does write that a table was dropped."""
        if self.chance.random() > 0.3:
            return
        self.server.sql(f"TRUNCATE {self.name}")
        self._database.rows.clear()
        self._database.place += 1
        row = self._database.row(self._database.key())
        made = Change(row, None, self._database.place, self._database.place, 0, True)
        # The next transaction has a later position.
        self._database.place += 1
        self._database.commit = self._database.place
        (event, *_) = self._tool.messages(made)
        kind: dict[str, Any] = {
            "maxwell": {"type": "table-drop"},
            "canal": {"type": "TRUNCATE", "data": None, "old": None, "isDdl": True},
        }.get(self.format, {})
        if self.format == "debezium":
            event["payload"] |= {"op": "t", "before": None, "after": None}
        self._events.append(("", {**event, **kind}))

    def alter(self) -> None:
        """Not a part of these stories."""

    def quiet(self) -> None:
        """No transaction stays open."""

    def read(self) -> list[Keyed]:
        found, self._events = self._events, []
        return found

    def snapshot_again(self) -> list[Keyed]:
        return []

    def rows(self, columns: list[str]) -> list[tuple[Any, ...]]:
        """The table as it is, as texts."""
        names = [
            "IF(flag, 'true', IF(flag = 0, 'false', NULL))" if one == "flag" else f"`{one}`"
            for one in columns
        ]
        found = self.server.sql(f"SELECT {', '.join(names)} FROM {self.name}")
        return sorted((tuple(map(_text, row)) for row in found), key=repr)

    def _statement(self, change: Change) -> str:
        def value(one: Any) -> str:
            if one is None:
                return "NULL"
            if isinstance(one, bool | int):
                return str(int(one))
            return "'" + str(one).replace("\\", "\\\\").replace("'", "''") + "'"

        def where(row: dict[str, Any]) -> str:
            return f"WHERE region = {value(row['region'])} AND id = {row['id']}"

        if change.after is None:
            assert change.before is not None
            return f"DELETE FROM {self.name} {where(change.before)}"
        values = {f"`{name}`": value(one) for name, one in change.after.items()}
        if change.before is None:
            return f"INSERT INTO {self.name} ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        updated = ", ".join(f"{name} = {one}" for name, one in values.items())
        return f"UPDATE {self.name} SET {updated} {where(change.before)}"


def _text(value: Any) -> str | None:
    """A value as Spark writes it."""
    text = None if value is None else str(value)
    return text.rstrip("0").rstrip(".") if isinstance(value, datetime) and text and "." in text else text


__all__ = ["MariaDbLog"]
