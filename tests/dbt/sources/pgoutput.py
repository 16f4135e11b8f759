"""Reads the messages of PostgreSQL's output plugin ``pgoutput``, protocol version 1.

PostgreSQL's documentation describes them in "Logical Replication Message Formats". They come from a slot
with ``pg_logical_slot_get_binary_changes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Tuple = dict[str, "str | None"]
"""The text of each value by column. A value that was not sent is not in it."""


@dataclass(frozen=True)
class RowChange:
    """A row that was inserted, updated or deleted.

    :param old: the key before, or the whole row with ``REPLICA IDENTITY FULL``; ``None`` if it was not sent.
    """

    kind: Literal["insert", "update", "delete"]
    table: str
    old: Tuple | None
    new: Tuple | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Truncated:
    """Tables that were truncated."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class Committed:
    """The end of a transaction, and the position after it."""

    end: int


Message = RowChange | Truncated | Committed


@dataclass
class Decoder:
    """Decodes the messages of a slot. It remembers the columns of each table, which are sent once."""

    tables: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def decode(self, data: bytes) -> Message | None:
        """A message; ``None`` for one that changes no row, such as the begin of a transaction."""
        read = _Reader(data)
        kind = read.char()
        if kind == "R":
            self._describe(read)
        elif kind == "I":
            return self._row(read, "insert")
        elif kind == "U":
            return self._row(read, "update")
        elif kind == "D":
            return self._row(read, "delete")
        elif kind == "T":
            count = read.number(4)
            read.number(1)
            return Truncated(tuple(self.tables[read.number(4)][0] for _ in range(count)))
        elif kind == "C":
            read.number(1)
            read.number(8)
            return Committed(read.number(8))
        return None

    def _describe(self, read: _Reader) -> None:
        relation = read.number(4)
        schema, name = read.text(), read.text()
        read.number(1)
        columns = []
        for _ in range(read.number(2)):
            read.number(1)
            columns.append(read.text())
            read.number(8)
        self.tables[relation] = f"{schema}.{name}", tuple(columns)

    def _row(self, read: _Reader, kind: Literal["insert", "update", "delete"]) -> RowChange:
        name, columns = self.tables[read.number(4)]
        old: Tuple | None = None
        new: Tuple | None = None
        while not read.is_done:
            part = read.char()
            values = read.tuple(columns)
            if part == "N":
                new = values
            else:
                old = values
        return RowChange(kind, name, old, new, columns)


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.data)

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def char(self) -> str:
        return self.take(1).decode()

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        end = self.data.index(0, self.at)
        made = self.data[self.at : end].decode()
        self.at = end + 1
        return made

    def tuple(self, columns: tuple[str, ...]) -> Tuple:
        found: Tuple = {}
        for name in columns[: self.number(2)]:
            kind = self.char()
            if kind == "n":
                found[name] = None
            elif kind == "t":
                found[name] = self.take(self.number(4)).decode()
            elif kind != "u":
                raise ValueError(f"a value of the kind {kind}")
        return found


__all__ = ["Committed", "Decoder", "Message", "RowChange", "Truncated"]
