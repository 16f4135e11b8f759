"""The interface of a database's log of changes for the rest of dbt-arctic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.table_versions import TableVersion
from dbt_arctic.errors import ConfigError

ALTERED = "alter "
"""Prefix of the ``shape`` of a statement that changed a table's columns. Its words follow."""


class LoggedChange(NamedTuple):
    """A change in the log of a database.

    :param end: the position after the commit of its transaction.
    :param place: text that sorts like the changes, in the order in which their transactions committed.
    :param table: ``schema.table``.
    :param operation: ``truncate`` also if the rows of the table were replaced in another way that the log has
        no rows of; ``alter`` if its columns were changed, which the log of MariaDB has.
    :param at_ms: when the transaction committed; in MariaDB, when its last statement began.
    :param before: the key before, or all values, as JSON has them; ``None`` if they were not sent.
    :param after: the values after; ``None`` if there is no such row.
    :param unsent: the columns whose values are not in ``after``, because they are large and did not change.
    :param transaction: the id of the transaction, of 32 bits; 0 if there is none.
    :param shape: ``shape_of`` the table's columns at the time of the change, and of those whose old values an
        update or delete has; of ``alter``, see ``ALTERED``;
        empty for a truncation.
    :param table_id: differs for another table of the same name; empty if the database has no such id.
    """

    end: int
    position: int
    place: str
    table: str
    operation: Literal["insert", "update", "delete", "truncate", "alter"]
    at_ms: int
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    unsent: Sequence[str] = ()
    transaction: int = 0
    shape: str = ""
    table_id: str = ""


class ChangeBatch(NamedTuple):
    """The next changes of a log.

    :param changes: of whole transactions.
    :param end: the position up to which these are all; 0 if it is not known.
    :param is_all: whether there are no others up to the requested position that can be read now.
    """

    changes: Sequence[LoggedChange]
    end: int
    is_all: bool


class LogState(NamedTuple):
    """A log as it is now. Positions are numbers that increase.

    :param identity: of what has the log: a server and database, and a slot if there is one.
    :param oldest: the position after which the log has all changes.
    :param current: the end of the log.
    :param begin: the position after which a first capture takes changes.
    :param kept_bytes: how much of the log the server keeps only for this reader.
    :param at_ms: the time of the server, if its log has times that may go back; 0 for other logs.
    """

    identity: str
    oldest: int
    current: int
    begin: int
    kept_bytes: int = 0
    at_ms: int = 0


class ChangeLog(Protocol):
    """The changes of followed tables, in the order of the commits."""

    @property
    def name(self) -> str:
        """The name of the log for messages."""
        ...

    def state(self) -> LogState:
        """The log as it is now.

        :raises ConfigError: it cannot be read like this.
        :raises VersionUnavailable: the server has removed a part that was not read.
        """
        ...

    def shown(self, position: int) -> str:
        """A position as the database writes it. Needs no connection."""
        ...

    def why_removed(self, end: int, oldest: int) -> str:
        """Why the log begins after a position, as a part of an error.

        :param end: up to which changes were captured.
        :param oldest: of ``state``.
        """
        ...

    def mark(self, position: int) -> str:
        """A text that differs if the log up to a position is another one; empty if the identity says so."""
        ...

    def wait_for_prepared(self) -> None:
        """Wait until transactions have ended that are prepared now, if their rows are before their commit.

        A reader that begins at the end of the log would miss them.

        :raises ConcurrentRun: one of them does not end.
        """
        ...

    def write_visible(self) -> None:
        """Let the log have each change on disk that a transaction can see."""
        ...

    def followed(self) -> frozenset[TableName]:
        """The tables of which the log has all changes."""
        ...

    def versions(self) -> Mapping[TableName, TableVersion]:
        """The columns of the followed tables as they are now."""
        ...

    def not_followed(self, table: TableName) -> ConfigError:
        """The error if the log does not have all changes of a table."""
        ...

    def changes(self, since: int, until: int, limit: int) -> ChangeBatch:
        """The changes after a position, in the order of the commits.

        :param since: not before the state's ``oldest``. There may be changes from before it.
        :param until: of all transactions that committed before this position.
        :param limit: no further transaction after about so many changes.
        """
        ...

    def advance(self, position: int) -> None:
        """Confirm that all changes up to a position are stored. The server may forget them."""
        ...

    def lock(self) -> None:
        """Wait until no other connection has locked the log, and lock it as long as this one is open.

        :raises ConcurrentRun: another connection has kept it locked for long.
        """
        ...

    def try_lock(self) -> bool:
        """Lock the log like ``lock``, unless another connection has."""
        ...


__all__ = ["ALTERED", "ChangeBatch", "ChangeLog", "LogState", "LoggedChange"]
