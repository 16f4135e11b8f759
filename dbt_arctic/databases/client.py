"""A transaction on a table through a Python client of its database."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dbt_arctic.databases import sql
from dbt_arctic.databases.api import Column, Table, UnseenTransactions, Window
from dbt_arctic.databases.sql import Dialect
from dbt_arctic.errors import ArcticError, ConfigError, PackageMissing, ServerUnreachable

_PART = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^."`]+)')


def parts_of(table: str, where: str) -> list[str]:
    """The parts of the name of a table: its schema, if it is given, and its name.

    >>> parts_of('public."odd ""name"', "")
    ['public', 'odd "name']

    :raises ConfigError: it is no such name.
    """
    found, at = [], 0
    while at < len(table):
        part = _PART.match(table, at)
        if part is None:
            break
        found.append(
            part[1].replace('""', '"') if part[1] else part[2].replace("``", "`") if part[2] else part[3]
        )
        at = part.end()
        if at == len(table) and len(found) <= 2:
            return found
        if table[at : at + 1] != ".":
            break
        at += 1
    raise ConfigError(
        f"{table!r} is not the name of a table",
        where=where,
        fix="write table: schema.name, with a part in double quotes if it contains a dot: 'shop.\"a.b\"'",
    )


@dataclass(frozen=True)
class Failures:
    """Turns errors of a client into those of this package.

    :param kind: the name of the database.
    :param shown: its address.
    :param error: the class of the client's errors.
    """

    kind: str
    shown: str
    where: str
    error: type[Exception]

    @contextlib.contextmanager
    def explained(self, action: str) -> Iterator[None]:
        """Explain the errors of the block."""
        try:
            yield
        except ArcticError:
            raise
        except (self.error, OSError, RuntimeError) as error:  # PyMySQL needs another package to log in
            why = " ".join(str(part) for part in getattr(error, "args", ()) if part) or str(error)
            raise ServerUnreachable(
                f"{self.kind} at {self.shown} cannot be {action}",
                where=self.where,
                why=" ".join(why.split()),
                fix="check url in the source's meta.arctic or after --jdbc, and jdbc in the profile; run "
                "again. Nothing was written",
            ) from error


class Run(Protocol):
    """Runs a statement, with values for its parameters if it has any, and returns its rows."""

    def __call__(self, text: str, values: Sequence[Any] | None = None, /) -> list[Any]: ...


@dataclass(frozen=True)
class Connection:
    """A connection to a database.

    :param failures: explains the client's errors.
    :param end: closes the connection.
    """

    failures: Failures
    run: Run
    end: Callable[[], None]

    def close(self) -> None:
        """Close the connection. A connection that was lost has ended its transaction."""
        with contextlib.suppress(Exception):
            self.end()

    def run_explained(self, explain: Callable[[Exception], ArcticError | None]) -> Run:
        """A ``run`` whose errors are explained.

        :param explain: gives the error of this package for one of the client; ``None`` for the usual one.
        """

        def run(text: str, values: Sequence[Any] | None = None, /) -> list[Any]:
            with self.failures.explained("read"):
                try:
                    return self.run(text, values)
                except Exception as error:
                    explained = explain(error)
                    if explained is None:
                        raise
                    raise explained from error

        return run

    @contextlib.contextmanager
    def reading(self, begin: Sequence[str]) -> Iterator[Run]:
        """Begin a transaction, and explain the errors of the block. They close the connection.

        :param begin: the statements that begin the transaction.
        """
        try:
            with self.failures.explained("read"):
                for statement in begin:
                    self.run(statement)
                yield self.run
        except BaseException:
            self.close()
            raise


@dataclass
class ClientTransaction:
    """A transaction that reads a table with the SQL of a dialect.

    :param connection: in a transaction.
    :param name: the quoted name of the table.
    :param export: gives the transaction a name for other connections.
    :param others: gives the transactions that this one does not see.
    :param clock: SQL of the time.
    """

    dialect: Dialect
    connection: Connection
    table: Table
    name: str
    export: Callable[[], str]
    others: Callable[[], UnseenTransactions]
    clock: str

    def newest(self, cursor: Column) -> str | None:
        ((found,),) = self._query(sql.newest(self.dialect, cursor, self.name))
        return None if found is None else str(found)

    def has_null(self, column: Column) -> bool:
        return bool(self._query(sql.has_null(self.dialect, column, self.name)))

    def fingerprint(self, columns: Sequence[Column], window: Window | None) -> str:
        ((rows, hashes),) = self._query(sql.fingerprint(self.dialect, columns, window, self.name))
        return f"{rows}:{hashes}"

    def extremes(self, column: Column) -> tuple[int, int] | None:
        ((low, high),) = self._query(sql.extremes(self.dialect, column, self.name))
        return None if low is None else (int(low), int(high))

    def count(self, window: Window) -> int:
        ((rows,),) = self._query(sql.count(self.dialect, window, self.name))
        return int(rows)

    def unseen(self) -> UnseenTransactions:
        with self.connection.failures.explained("read"):
            return self.others()

    def time(self) -> str:
        ((found,),) = self._query(self.clock)
        return str(found)

    def share(self) -> str:
        with self.connection.failures.explained("read"):
            return self.export()

    def close(self) -> None:
        self.connection.close()

    def _query(self, text: str) -> Sequence[Sequence[Any]]:
        with self.connection.failures.explained("read"):
            return self.connection.run(text)


def package_missing(package: str, extra: str, databases: str, where: str) -> PackageMissing:
    """The error if the Python client of a database is not installed."""
    return PackageMissing(
        f"the package {package} is not installed",
        where=where,
        why=f"tables of {databases} are read with it",
        fix=f"pip install 'dbt-arctic[{extra}]'",
    )


__all__ = ["ClientTransaction", "Connection", "Failures", "Run", "package_missing", "parts_of"]
