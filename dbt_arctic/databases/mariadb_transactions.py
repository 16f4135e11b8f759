"""Changes of whole transactions, from the events of MariaDB's log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.change_log import ALTERED, ChangeBatch, LoggedChange
from dbt_arctic.databases.mariadb_statements import SqlMode, effect_on, words_of
from dbt_arctic.databases.table_versions import shape_of

_MOST_WORDS = 200
_OFFSETS = 2**32
ANY_WORD = "*"
"""In place of the words of a long statement."""


class Group(NamedTuple):
    """The beginning of a transaction, or of a statement outside of one.

    :param is_statement: whether it consists of one statement.
    """

    is_statement: bool


class LoggedRow(NamedTuple):
    """A row before or after a change, as texts.

    :param unsent: the columns that the log does not have.
    """

    values: Mapping[str, Any]
    unsent: tuple[str, ...] = ()


class RowsChanged(NamedTuple):
    """Changed rows of a table.

    :param columns: the names of all columns of the table.
    :param rows: before and after.
    """

    kind: Literal["insert", "update", "delete"]
    table: TableName
    columns: tuple[str, ...]
    rows: Sequence[tuple[LoggedRow | None, LoggedRow | None]]


class Statement(NamedTuple):
    """The text of a statement, with its default database, and the form of its quotes."""

    text: str
    database: str
    mode: SqlMode = SqlMode()


class Committed(NamedTuple):
    """The end of a transaction."""


class Prepared(NamedTuple):
    """The end of a transaction that another statement commits later."""


Event = Group | RowsChanged | Statement | Committed | Prepared


class _PreparedTransaction(NamedTuple):
    """Changes that another statement commits or rolls back.

    :param since: the position before them.
    """

    changes: list[LoggedChange]
    since: int


@dataclass
class TransactionReader:
    """Puts events together to changes of transactions.

    :param tables: those that are followed.
    :param since: the position where the events begin.
    """

    tables: Iterable[TableName]
    since: int = 0
    _ended: list[LoggedChange] = field(default_factory=list)
    _end: int = 0
    _waiting: list[LoggedChange] = field(default_factory=list)
    _is_statement: bool = False
    _savepoints: dict[str, int] = field(default_factory=dict)
    _xid: str = ""
    _prepared: dict[str, _PreparedTransaction] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """How many changes of ended transactions there are; 0 while earlier ones are prepared."""
        return 0 if self._prepared else len(self._ended)

    def batch(self, until: int | None) -> ChangeBatch:
        """The changes of transactions that have ended, before the first prepared one.

        :param until: the position up to which everything was read; ``None`` for the last transaction.
        """
        end = max(self._end, until or 0)
        held = min((one.since for one in self._prepared.values()), default=end)
        found = [one for one in self._ended if one.end <= held]
        return ChangeBatch(found, min(end, held), until is not None)

    def read(self, position: int, at_ms: int, event: Event) -> None:
        """Take the next event.

        :param position: after the event.
        :param at_ms: when it was written.
        """
        match event:
            case Group(is_statement):
                self._waiting, self._is_statement = [], is_statement
                self._savepoints.clear()
            case RowsChanged(kind, table, columns, rows):
                for before, after in rows:
                    self._add(kind, table, at_ms, before, after, shape_of(columns))
            case Statement():
                self._statement(position, at_ms, event)
            case Committed():
                self._finish(position, at_ms)
            case Prepared():
                if self._waiting:
                    self._prepared[self._xid] = _PreparedTransaction(self._waiting, self._end or self.since)
                self._waiting = []
                self._finish(position, at_ms)

    def _statement(self, position: int, at_ms: int, statement: Statement) -> None:
        text, database, mode = statement
        words = words_of(text, mode)
        first, second, *_ = [*words[:2], "", ""]
        to_savepoint = first == "rollback" and "to" in words[1:3]
        if first == "xa":
            self._end_prepared(second, text.split(None, 2)[-1])
        elif first == "savepoint":
            self._savepoints[second] = len(self._waiting)
        elif to_savepoint:
            # It is in the log if the transaction has also changed a table that cannot be rolled back.
            del self._waiting[self._savepoints.get(words[-1], 0) :]
        elif first == "rollback":
            self._waiting = []
        for table in self.tables:
            effect = effect_on(text, database, table, mode)
            if effect == "alter":
                self._add("alter", table, at_ms, shape=ALTERED + " ".join(_named_in(words)))
            elif effect == "replace":
                self._add("truncate", table, at_ms)
        if self._is_statement or (first in ("commit", "rollback") and not to_savepoint):
            self._finish(position, at_ms)

    def _end_prepared(self, verb: str, xid: str) -> None:
        self._xid = xid
        if verb in ("commit", "rollback") and xid in self._prepared:
            prepared = self._prepared.pop(xid).changes
            self._waiting = prepared if verb == "commit" else []

    def _add(
        self,
        operation: Literal["insert", "update", "delete", "truncate", "alter"],
        table: TableName,
        at_ms: int,
        before: LoggedRow | None = None,
        after: LoggedRow | None = None,
        shape: str = "",
    ) -> None:
        unsent = () if after is None else after.unsent
        values = None if after is None else after.values
        old = None if before is None else before.values
        self._waiting.append(
            LoggedChange(0, 0, "", table.dotted, operation, at_ms, old, values, unsent, shape=shape)
        )

    def _finish(self, position: int, at_ms: int) -> None:
        self._ended += [
            one._replace(end=position, position=position, place=f"{position:020}.{at:020}", at_ms=at_ms)
            for at, one in enumerate(self._waiting)
        ]
        self._waiting, self._end = [], position


def log_position(file: str, offset: int) -> int:
    """A position in the log as a number.

    >>> log_position("mariadb-bin.000002", 4) == 2 * 2**32 + 4
    True
    """
    return int(file.rpartition(".")[2]) * _OFFSETS + offset


def file_and_offset(position: int) -> tuple[int, int]:
    """The number of a file of the log, and the bytes in it; the inverse of ``log_position``."""
    return divmod(position, _OFFSETS)


def _named_in(listed: Sequence[str]) -> list[str]:
    # ADD COLUMN .. AFTER names a column that stays.
    words = sorted({word for at, word in enumerate(listed) if listed[at - 1 : at] != ["after"]})
    return words if len(words) <= _MOST_WORDS else [ANY_WORD]


__all__ = [
    "ANY_WORD",
    "Committed",
    "Event",
    "Group",
    "LoggedRow",
    "Prepared",
    "RowsChanged",
    "Statement",
    "TransactionReader",
    "file_and_offset",
    "log_position",
]
