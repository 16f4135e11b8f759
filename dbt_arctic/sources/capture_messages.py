"""The messages of captured changes, and their counts. Pure.

A message is a JSON object with ``operation`` (``insert``, ``update``, ``delete`` or ``truncate``), ``table``,
``at_ms`` (when the transaction committed), ``place`` (text that sorts like the changes), ``before`` and
``after`` (values by column, or null).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from dbt_arctic.databases.api import LoggedChange
from dbt_arctic.sources.capture_settings import UNSENT


class TableChanges(NamedTuple):
    """The changes of one table.

    :param number: how many there are.
    :param oldest_ms: when the oldest was committed in the database; ``None`` without changes.
    :param newest_ms: the same of the newest.
    """

    number: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None

    def plus(self, other: TableChanges) -> TableChanges:
        """Both together."""
        return TableChanges(
            self.number + other.number,
            min((at for at in (self.oldest_ms, other.oldest_ms) if at is not None), default=None),
            max((at for at in (self.newest_ms, other.newest_ms) if at is not None), default=None),
        )


def changes_by_table(changes: Iterable[LoggedChange]) -> dict[str, TableChanges]:
    """The changes of each table."""
    found: dict[str, TableChanges] = {}
    for one in changes:
        found[one.table] = found.get(one.table, TableChanges()).plus(TableChanges(1, one.at_ms, one.at_ms))
    return found


def message_of(change: LoggedChange) -> str:
    """The message of a change."""
    after = change.after
    if after is not None and change.unsent:
        after = {**after, **dict.fromkeys(change.unsent, UNSENT)}
    event = {
        **{"operation": change.operation, "table": change.table, "at_ms": change.at_ms},
        **{"place": change.place, "before": change.before, "after": after},
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


__all__ = ["TableChanges", "changes_by_table", "message_of"]
