"""Transactions that are open at the same time, and change different rows of one table."""

from __future__ import annotations

import contextlib
import random
from typing import Any, ClassVar

from tests.dbt.keyed.database_servers import Server, run

Key = tuple[str, int]


class OpenTransactions:
    """Acts of a story. The rows that a transaction has changed are locked until it ends."""

    chance: random.Random
    server: Server
    _open: list[tuple[Any, set[Key]]]

    begin_with: ClassVar[tuple[str, ...]] = ("BEGIN",)

    def begin(self) -> None:
        if len(self._open) < 3:
            opened = self.server.connect()
            run(opened, *self.begin_with)
            self._open.append((opened, set()))

    def write(self) -> None:
        """A change in one of the open transactions, of a row that no other one has changed."""
        if not self._open:
            return self.single()
        connection, own = self.chance.choice(self._open)
        others = set().union(*(locked for _, locked in self._open if locked is not own))
        if statement := self._statement(others, own):
            self._change(connection, statement)
        return None

    def end(self) -> None:
        if self._open:
            connection, _ = self._open.pop(self.chance.randrange(len(self._open)))
            run(connection, "ROLLBACK" if self.chance.random() < 0.2 else "COMMIT")
            connection.close()

    def single(self) -> None:
        if statement := self._statement(set().union(*(locked for _, locked in self._open)), set()):
            with contextlib.closing(self.server.connect()) as connection:
                self._change(connection, statement)

    def quiet(self) -> None:
        while self._open:
            self.end()

    def _statement(self, locked: set[Key], own: set[Key]) -> str:
        """A statement that changes no locked row; empty for none. The keys that it changes are added."""
        raise NotImplementedError

    def _change(self, connection: Any, statement: str) -> None:
        run(connection, statement)


__all__ = ["Key", "OpenTransactions"]
