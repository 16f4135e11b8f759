"""Decodes the messages of PostgreSQL's output plugin ``pgoutput``, protocol version 1.

PostgreSQL's documentation describes them in "Logical Replication Message Formats". They come from a
replication slot, transaction by transaction in the order of the commits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal, NamedTuple

Values = dict[str, "str | None"]
"""The text of each value by column. A value that was not sent is not in it."""

ChangeKind = Literal["insert", "update", "delete"]
_ROWS: Mapping[bytes, ChangeKind] = {b"I": "insert", b"U": "update", b"D": "delete"}

_COUNT, _SIZE = struct.Struct(">H"), struct.Struct(">I")
_FULL = b"f"
"""The replica identity of a table whose old rows are sent as a whole."""
_TEXT, _NULL, _NOT_SENT = b"tnu"
"""The kinds of values. The slot sends no binary ones."""

_WITHOUT_ROWS = b"OYM"
"""Kinds of messages with an origin, a type, or text of a program."""

_EPOCH_US = int(datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp()) * 10**6
"""The beginning of PostgreSQL's time, in microseconds since that of Unix."""


class LoggedTable(NamedTuple):
    """A table as a message describes it, at the time of the change.

    :param name: ``schema.table``.
    :param types: the oid of the type of each column.
    :param oid: of the table.
    :param identity: the columns whose old values are sent; ``None`` for all. A partition may send fewer than
        its table is described with.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    oid: int = 0
    identity: tuple[str, ...] | None = None


class TransactionBegin(NamedTuple):
    """The beginning of a transaction.

    :param commit: the position of its commit in the log.
    :param at_us: when it committed, in microseconds since the epoch.
    :param transaction: its id.
    """

    commit: int
    at_us: int
    transaction: int = 0


class RowChange(NamedTuple):
    """A row that was inserted, updated or deleted.

    :param old: the key before, or the whole row with ``REPLICA IDENTITY FULL``; ``None`` if it was not sent.
    """

    kind: ChangeKind
    table: LoggedTable
    old: Values | None
    new: Values | None


class Truncated(NamedTuple):
    """Tables that were truncated."""

    tables: tuple[LoggedTable, ...]


class TransactionEnd(NamedTuple):
    """The end of a transaction.

    :param end: the position after its commit.
    """

    end: int


Message = TransactionBegin | RowChange | Truncated | TransactionEnd


@dataclass
class Decoder:
    """Decodes the messages of a slot. It remembers the columns of each table, which are sent once.

    A change of a partition is sent as one of its table. Before the first one, the table is described, and
    then the partition, which logs old values by its own identity.

    :param partitions: the descriptions of the partitions of a table, by oid.
    :param described: the tables that were described since the last other message.
    """

    tables: dict[int, LoggedTable] = field(default_factory=dict)
    partitions: dict[int, dict[int, LoggedTable]] = field(default_factory=dict)
    described: list[int] = field(default_factory=list)

    def decode(self, data: bytes) -> Message | None:
        """A message; ``None`` for one that changes no row, such as the description of a table."""
        kind, read = data[:1], _Reader(data, 1)
        if kind in _ROWS:
            return self._row(read, _ROWS[kind])
        if kind != b"R":
            self.described.clear()
        match kind:
            case b"B":
                return TransactionBegin(read.number(8), read.number(8) + _EPOCH_US, read.number(4))
            case b"C":
                read.take(9)
                return TransactionEnd(read.number(8))
            case b"R":
                self._describe(read)
            case b"T":
                count = read.number(4)
                read.take(1)
                return Truncated(tuple(self.tables[read.number(4)] for _ in range(count)))
            case _ if kind not in _WITHOUT_ROWS:
                raise ValueError(f"a message of the kind {kind!r}")
        return None

    def _describe(self, read: _Reader) -> None:
        relation = read.number(4)
        schema, name = read.text(), read.text()
        is_full = read.take(1) == _FULL
        columns, types, identity = [], [], []
        for _ in range(read.number(2)):
            is_sent = read.take(1) == b"\1"
            columns.append(read.text())
            identity += [columns[-1]] if is_sent else []
            types.append(read.number(4))
            read.take(4)
        # An empty schema stands for pg_catalog.
        dotted = f"{schema or 'pg_catalog'}.{name}"
        sent = None if is_full else tuple(identity)
        self.tables[relation] = LoggedTable(dotted, tuple(columns), tuple(types), relation, sent)
        self.described.append(relation)

    def _row(self, read: _Reader, kind: ChangeKind) -> RowChange:
        table = self._table(read.number(4))
        old: Values | None = None
        new: Values | None = None
        while not read.is_done:
            part = read.take(1)
            values = read.values(table.columns)
            if part == b"N":
                new = values
            elif part == b"O":
                old = values
            else:  # of a key, which is never NULL; the other columns were not sent
                old = {name: text for name, text in values.items() if text is not None}
        return RowChange(kind, table, old, new)

    def _table(self, oid: int) -> LoggedTable:
        """The table of a change, with the old values that each of its partitions sends."""
        if self.described:
            partition = self.described[-1]
            if partition != oid:
                self.partitions.setdefault(oid, {})[partition] = self.tables[partition]
            if oid in self.partitions:
                self.tables[oid] = _partitioned(self.tables[oid], self.partitions[oid].values())
            self.described.clear()
        return self.tables[oid]


def _partitioned(table: LoggedTable, partitions: Iterable[LoggedTable]) -> LoggedTable:
    sent = set(table.columns)
    for one in partitions:
        sent &= sent if one.identity is None else set(one.identity)
    return table._replace(identity=tuple(name for name in table.columns if name in sent))


@dataclass(slots=True)
class _Reader:
    data: bytes
    at: int = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.data)

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self) -> str:
        end = self.data.index(0, self.at)
        made = self.data[self.at : end].decode()
        self.at = end + 1
        return made

    def values(self, columns: tuple[str, ...]) -> Values:
        # Most of the time of a large capture is here, so this does not take part by part.
        data, at, found = self.data, self.at + _COUNT.size, Values()
        (count,) = _COUNT.unpack_from(data, self.at)
        for name in columns[:count]:
            kind = data[at]
            at += 1
            if kind == _TEXT:
                begin = at + _SIZE.size
                at = begin + _SIZE.unpack_from(data, at)[0]
                found[name] = data[begin:at].decode()
            elif kind == _NULL:
                found[name] = None
            elif kind != _NOT_SENT:
                raise ValueError(f"a value of the kind {chr(kind)!r}")
        self.at = at
        return found


__all__ = [
    "ChangeKind",
    "Decoder",
    "LoggedTable",
    "Message",
    "RowChange",
    "TransactionBegin",
    "TransactionEnd",
    "Truncated",
    "Values",
]
