"""The messages of captured changes, and their counts. Pure.

A message is a JSON object with ``operation`` (``insert``, ``update``, ``delete`` or ``truncate``), ``table``,
``at_ms`` (when the transaction committed), ``place`` (text that sorts like the changes), ``before`` and
``after`` (values by column, or null), ``unsent`` (the columns that ``after`` lacks because they did not
change), ``shape`` (of the columns of the table at that time, see ``shape_of``), and ``table_id``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dbt_arctic.databases.change_log import LoggedChange

_ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class TableChanges(NamedTuple):
    """The changes of one table.

    :param number: how many there are.
    :param oldest_ms: when the oldest was committed in the database; ``None`` without changes.
    :param newest_ms: the same of the newest.
    :param truncated_at: the place of the last truncation; empty for none.
    :param shapes: ``shape_of`` the columns that the table had, sorted.
    :param table_ids: of the tables that had the name, sorted.
    """

    number: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    truncated_at: str = ""
    shapes: tuple[str, ...] = ()
    table_ids: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, made: Sequence[Any]) -> TableChanges:
        """What a commit has recorded, which is JSON of this tuple."""
        found = cls(*made)
        return found._replace(shapes=tuple(found.shapes), table_ids=tuple(found.table_ids))

    def plus(self, other: TableChanges) -> TableChanges:
        """Both together."""
        return TableChanges(
            self.number + other.number,
            min((at for at in (self.oldest_ms, other.oldest_ms) if at is not None), default=None),
            max((at for at in (self.newest_ms, other.newest_ms) if at is not None), default=None),
            max(self.truncated_at, other.truncated_at),
            tuple(sorted({*self.shapes, *other.shapes})),
            tuple(sorted({*self.table_ids, *other.table_ids})),
        )


def changes_by_table(changes: Iterable[LoggedChange]) -> dict[str, TableChanges]:
    """The changes of each table."""
    own: dict[str, list[LoggedChange]] = {}
    for one in changes:
        own.setdefault(one.table, []).append(one)
    return {table: _together(of_table) for table, of_table in own.items()}


def _together(changes: Sequence[LoggedChange]) -> TableChanges:
    times = [one.at_ms for one in changes]
    truncated_at = max((one.place for one in changes if one.operation == "truncate"), default="")
    shapes = sorted({one.shape for one in changes if one.shape})
    ids = sorted({one.table_id for one in changes if one.table_id})
    return TableChanges(len(changes), min(times), max(times), truncated_at, tuple(shapes), tuple(ids))


def message_of(change: LoggedChange) -> str:
    """The message of a change."""
    event: dict[str, Any] = {
        "operation": change.operation,
        "table": change.table,
        "at_ms": change.at_ms,
        "place": change.place,
        "before": change.before,
        "after": change.after,
    }
    if change.unsent:
        event["unsent"] = change.unsent
    if change.shape:
        event["shape"] = change.shape
    if change.table_id:
        event["table_id"] = change.table_id
    return _ENCODED(event)


__all__ = ["TableChanges", "changes_by_table", "message_of"]
