"""Changes of whole transactions, from the messages of PostgreSQL's output plugin. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.databases.pgoutput import (
    LoggedTable,
    Message,
    RowChange,
    TransactionBegin,
    TransactionEnd,
    Truncated,
    Values,
)
from dbt_arctic.databases.postgres_values import ValueType, as_json
from dbt_arctic.databases.table_versions import shape_of


def logged_changes(
    messages: Iterable[tuple[int, Message | None]],
    types: Mapping[int, ValueType],
    names: Mapping[int, str] | None = None,
) -> tuple[list[LoggedChange], int]:
    """The changes of transactions that ended, in their order, and the position after the last of these.

    A transaction that has changed nothing of interest counts, too.

    :param messages: with their positions in the log.
    :param types: of the database, by oid.
    :param names: what tables are called now, by oid. Others have the name from the time of the change.
    """
    called = names or {}
    found: list[LoggedChange] = []
    begin, waiting, last = TransactionBegin(0, 0), list[LoggedChange](), 0
    for position, message in messages:
        # Transactions are in the order in which they committed. Their changes alternate in the log.
        place = f"{begin.commit:020}.{position:020}"
        at_ms = begin.at_us // 1000
        match message:
            case TransactionBegin():
                begin, waiting = message, []
            case TransactionEnd(end):
                found += [one._replace(end=end, transaction=begin.transaction) for one in waiting]
                last = end
            case Truncated(tables):
                waiting += [
                    LoggedChange(0, position, place, called.get(table.oid, table.name), "truncate", at_ms)
                    for table in tables
                ]
            case RowChange(kind, table, old, new):
                before = None if old is None else _row(table, old, types)
                after, unsent = (None, ()) if new is None else _new_row(table, new, before, types)
                name, shape = called.get(table.oid, table.name), shape_of(table.columns)
                waiting.append(
                    LoggedChange(0, position, place, name, kind, at_ms, before, after, unsent, shape=shape)
                )
    return found, last


def _row(table: LoggedTable, values: Values, types: Mapping[int, ValueType]) -> dict[str, Any]:
    kinds = dict(zip(table.columns, table.types, strict=True))
    return {
        name: None if text is None else as_json(text, types.get(kinds[name], ValueType(kinds[name])))
        for name, text in values.items()
    }


def _new_row(
    table: LoggedTable, values: Values, before: Mapping[str, Any] | None, types: Mapping[int, ValueType]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A new row, and the columns that were not sent.

    A value that was not sent is that of the old row, if this was sent as a whole. It cannot be NULL.
    """
    row, known = _row(table, values, types), before or {}
    missing = [name for name in table.columns if name not in row]
    row |= {name: known[name] for name in missing if known.get(name) is not None}
    return row, tuple(name for name in missing if name not in row)


__all__ = ["logged_changes"]
