"""A table of MariaDB that transactions and statements change, and that a model follows by the binary log."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pymysql

from tests.dbt.keyed.database_servers import Server, run
from tests.dbt.sources.open_transactions import Key, OpenTransactions

COLUMNS = {
    **{"region": "varchar(9)", "id": "int", "name": "varchar(40)", "other": "varchar(40)"},
    **{"amount": "decimal(12,2)", "n": "int", "day": "date", "body": "mediumtext"},
}
ADDED = {"extra": "int", "more": "varchar(40)"}
_TABLE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

_LOCKED = (1205, 1213)


@dataclass
class FollowedMariaDb(OpenTransactions):
    """The table, and transactions that have not ended."""

    chance: random.Random
    server: Server
    name: str = field(default_factory=lambda: f"cdc_{uuid.uuid4().hex[:8]}")
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    ddl: int = 0
    _open: list[tuple[Any, set[Key]]] = field(default_factory=list)
    _numbers: int = 0

    has_unsent: ClassVar[bool] = False
    begin_with: ClassVar[tuple[str, ...]] = (
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "BEGIN",
    )
    settings: ClassVar[dict[str, Any]] = {"format": "captured"}
    acts: ClassVar[tuple[str, ...]] = (
        *("begin", "write", "write", "write", "write", "end", "end", "single", "single"),
        *("truncate", "alter", "elsewhere"),
    )

    def __post_init__(self) -> None:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())
        self.server.sql(f"CREATE TABLE {self.name} ({listed}, PRIMARY KEY (region, id)) {_TABLE}")

    @property
    def declared(self) -> dict[str, str]:
        return self.columns

    @property
    def followed(self) -> dict[str, Any]:
        return {"from": "mariadb", "url": self.server.url, "table": self.name}

    def begin_to_follow(self) -> None:
        for _ in range(12):
            self.single()

    def close(self) -> None:
        for connection, _ in self._open:
            connection.close()
        self.server.sql(f"DROP TABLE {self.name}")

    def rows(self, columns: list[str]) -> list[tuple[Any, ...]]:
        """The table as it is, as texts."""
        listed = ", ".join(f"CAST(`{one}` AS CHAR)" for one in columns)
        return sorted(self.server.sql(f"SELECT {listed} FROM {self.name}"), key=repr)

    # Statements

    def elsewhere(self) -> None:
        """What has nothing to do with the table, or changes neither rows nor columns."""
        copy = f"{self.name}_copy"
        chosen = [
            ["FLUSH BINARY LOGS"],
            [f"CREATE TABLE {copy} LIKE {self.name}", f"INSERT INTO {copy} (region, id) VALUES ('a', 1)"],
        ]
        if not self._open:
            chosen += [
                [f"CREATE TEMPORARY TABLE {copy} AS SELECT * FROM {self.name}"],
                [f"ALTER TABLE {self.name} COMMENT 'x'"],
                [f"ANALYZE TABLE {self.name}"],
            ]
        statements = self.chance.choice(chosen)
        self.server.sql(f"DROP TABLE IF EXISTS {copy}", *statements, f"DROP TABLE IF EXISTS {copy}")

    def truncate(self) -> None:
        """Take all rows away, or put another table in the place of this one."""
        if self._open or self.chance.random() > 0.2:
            return
        new, old = f"{self.name}_new", f"{self.name}_old"
        self.server.sql(
            *self.chance.choice(
                [
                    [f"TRUNCATE {self.name}"],
                    [
                        f"CREATE TABLE {new} LIKE {self.name}",
                        f"INSERT INTO {new} SELECT * FROM {self.name} WHERE id > 2",
                        f"RENAME TABLE {self.name} TO {old}, {new} TO {self.name}",
                        f"DROP TABLE {old}",
                    ],
                    ["SET SESSION binlog_format = 'STATEMENT'", f"DELETE FROM {self.name} WHERE id < 2"],
                ]
            )
        )

    def alter(self) -> None:
        if self._open or self.chance.random() < 0.3:
            return
        acts: list[Callable[[], str]] = [self._add_or_drop, self._swap, self._convert]
        self.server.sql(f"ALTER TABLE {self.name} {self.chance.choice(acts)()}")
        self.ddl += 1

    def _add_or_drop(self) -> str:
        name = self.chance.choice(sorted(ADDED))
        if name in self.columns:
            del self.columns[name]
            return f"DROP COLUMN {name}"
        self.columns[name] = ADDED[name]
        default = " DEFAULT 5" if self.chance.random() < 0.5 else ""
        place = self.chance.choice(["", " AFTER id", " AFTER amount"])
        return f"ADD COLUMN {name} {ADDED[name]}{default}{place}"

    def _swap(self) -> str:
        return "RENAME COLUMN name TO other, RENAME COLUMN other TO name"

    def _convert(self) -> str:
        # Iceberg cannot promote an integer to a decimal.
        kinds = {"n": ("int", "bigint"), "amount": ("decimal(12,2)", "decimal(16,2)")}
        name = self.chance.choice(sorted(kinds))
        self.columns[name] = self.chance.choice(kinds[name])
        return f"MODIFY {name} {self.columns[name]}"

    def _statement(self, locked: set[Key], own: set[Key]) -> str:
        draw, key = self.chance, self._key()
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
            return f"UPDATE IGNORE {self.name} SET region = '{moved[0]}', id = {moved[1]} {where}"
        values = {name: one for name, one in self._values().items() if name in self.columns}
        if draw.random() < 0.4:
            values = {name: values[name] for name in draw.sample(sorted(values), k=2)}
        if draw.random() < 0.3:
            return f"UPDATE {self.name} SET {', '.join(f'{n} = {v}' for n, v in values.items())} {where}"
        updated = ", ".join(f"{name} = VALUES({name})" for name in values)
        return (
            f"INSERT INTO {self.name} (region, id, {', '.join(values)}) "
            f"VALUES ('{key[0]}', {key[1]}, {', '.join(values.values())}) ON DUPLICATE KEY UPDATE {updated}"
        )

    def _change(self, connection: Any, statement: str) -> None:
        """Also other rows, or the place between two rows, may be locked by an open transaction."""
        run(connection, "SET SESSION innodb_lock_wait_timeout = 1")
        try:
            run(connection, statement)
        except pymysql.OperationalError as error:
            if error.args[0] not in _LOCKED:
                raise

    def _key(self) -> Key:
        return self.chance.choice("ab"), self.chance.randrange(6)

    def _values(self) -> dict[str, str]:
        draw = self.chance
        self._numbers += 1
        texts = ["NULL", "''", "'Öl | ''x'''", "'null'", "'😀'", f"'n{self._numbers}'"]
        return {
            "name": draw.choice(texts),
            "other": draw.choice(texts),
            "amount": draw.choice(["NULL", f"{draw.randrange(-(10**9), 10**9) / 100:.2f}", "0"]),
            "n": draw.choice(["NULL", str(draw.randrange(-(2**31), 2**31))]),
            "day": draw.choice(["NULL", f"'20{draw.randrange(10, 40)}-0{draw.randrange(1, 10)}-11'"]),
            "body": draw.choice(["NULL", "'short'", f"repeat('{self._numbers}x', 1500)"]),
            "extra": str(draw.randrange(99)),
            "more": f"'v{draw.randrange(99)}'",
        }


__all__ = ["FollowedMariaDb"]
