"""What each model must contain, in plain Python.

A `Table` computes the possible contents after a run from the content before it and from what was outside: one
if nothing happened meanwhile, and one for each state that the run may have seen. It knows nothing of dbt,
Spark or offsets in commits. A content is immutable, because a rollback returns to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.dbt.sources.outside import Delivered, Landed, State

Rows = list[tuple[Any, ...]]


class Refused(Exception):
    """The run must fail with this error, and change nothing."""


class Table(ABC):
    """A model's table.

    :ivar name: of the model.
    :ivar columns: the columns that are compared.
    """

    name: str
    columns: str

    @abstractmethod
    def after(self, before: Any, seen: State, *, skips: bool) -> Any:
        """The content after a run that reads one state.

        :param before: the content before; ``None`` for a table that does not exist, and for a full refresh.
        :param skips: whether messages that were lost are skipped.
        :raises Refused: the run must fail.
        """

    @abstractmethod
    def rows(self, content: Any) -> Rows:
        """The rows of a content, sorted."""

    def possible(self, before: Any, seen: Sequence[State], *, skips: bool) -> list[Any]:
        """The contents after a run that may have seen one of some states.

        :raises Refused: the run must fail.
        """
        return [self.after(before, state, skips=skips) for state in seen]


@dataclass(frozen=True)
class Read:
    """What was read of a topic: the next offset of each partition, and the messages."""

    offsets: tuple[int, ...] = ()
    sent: frozenset[Delivered] = frozenset()


def read_topic(before: Read | None, seen: State, *, skips: bool) -> Read:
    """The rule for topics: each message once, and none is skipped silently."""
    if before is None:
        return Read(seen.ends, frozenset(seen.sent))
    offsets = [*before.offsets, *[0] * (len(seen.ends) - len(before.offsets))]
    if not skips and any(start > at for start, at in zip(seen.starts, offsets, strict=True)):
        raise Refused("AR-403")
    new = {one for one in seen.sent if one.offset >= offsets[one.partition]}
    return Read(seen.ends, before.sent | new)


class Appended(Table):
    """A row for each message."""

    name = "appended"
    columns = "_source_partition, _source_offset, status"

    def after(self, before: Read | None, seen: State, *, skips: bool) -> Read:
        return read_topic(before, seen, skips=skips)

    def rows(self, content: Read) -> Rows:
        return by_text((one.partition, one.offset, one.status) for one in content.sent)


class ByKey(Appended):
    """The message of each key with the greatest time stamp, however late and often others came."""

    name = "by_key"
    columns = "order_id, status"

    def rows(self, content: Read) -> Rows:
        newest: dict[int, Delivered] = {}
        for one in content.sent:
            newest[one.key] = max(newest.get(one.key, one), one, key=lambda message: message.at_ms)
        return by_text((key, one.status) for key, one in newest.items() if one.status is not None)


class Once(Table):
    """Rows of files without a key. A file that has changed is not read again."""

    name = "once"
    columns = "id, city"

    def after(self, before: frozenset[Landed] | None, seen: State, *, skips: bool) -> frozenset[Landed]:
        paths = {file.path for file in before or ()}
        return frozenset(before or ()) | {file for file in seen.files if file.path not in paths}

    def rows(self, content: frozenset[Landed]) -> Rows:
        return by_text(row for file in content for row in file.rows)


@dataclass(frozen=True)
class Stored:
    """The files that were read, and the rows by key."""

    files: frozenset[Landed] = frozenset()
    by_id: tuple[tuple[int, str], ...] = ()


class Again(Table):
    """Rows of files by key. A file that has changed is read again, and replaces the rows that it has."""

    name = "again"
    columns = "id, city"

    def after(self, before: Stored | None, seen: State, *, skips: bool) -> Stored:
        before = before or Stored()
        new = set(seen.files) - before.files
        rows = {**dict(before.by_id), **dict(row for file in new for row in file.rows)}
        return Stored(before.files | new, tuple(sorted(rows.items())))

    def rows(self, content: Stored) -> Rows:
        return by_text(content.by_id)


class Accounts(Table):
    """The rows of the database's table, without those that it no longer has."""

    name = "accounts"
    columns = "id, name"

    def after(self, before: Any, seen: State, *, skips: bool) -> tuple[tuple[int, str], ...]:
        return tuple(sorted(seen.accounts.items()))

    def rows(self, content: tuple[tuple[int, str], ...]) -> Rows:
        return by_text(content)


class Both(Table):
    """Rows of a topic and of a database in one table without a key."""

    name = "both"
    columns = "kind, place"

    def after(self, before: tuple[Read, frozenset[int]] | None, seen: State, *, skips: bool) -> Any:
        read, events = before or (None, frozenset())
        return read_topic(read, seen, skips=skips), events | frozenset(seen.events)

    def possible(self, before: Any, seen: Sequence[State], *, skips: bool) -> list[Any]:
        """Each source may have been read in any of the states."""
        found = [self.after(before, state, skips=skips) for state in seen]
        return list(product([one[0] for one in found], [one[1] for one in found]))

    def rows(self, content: tuple[Read, frozenset[int]]) -> Rows:
        read, events = content
        messages = [("message", f"{one.partition}-{one.offset}") for one in read.sent]
        return by_text([*messages, *(("event", str(number)) for number in events)])


def by_text(rows: Any) -> Rows:
    return sorted((tuple(row) for row in rows), key=repr)


TABLES: tuple[Table, ...] = (Appended(), ByKey(), Once(), Again(), Accounts(), Both())

__all__ = ["TABLES", "Both", "Once", "Refused", "Rows", "Table", "by_text"]
