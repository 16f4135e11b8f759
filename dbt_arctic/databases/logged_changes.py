"""Changes of whole transactions, from the messages of PostgreSQL's output plugin. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.databases.pgoutput import (
    ChangeKind,
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
    begin, waiting, last = TransactionBegin(0, 0), list[_OpenChange](), 0
    converted: dict[LoggedTable, Mapping[str, ValueType]] = {}
    for position, message in messages:
        match message:
            case TransactionBegin():
                begin, waiting = message, []
            case TransactionEnd(end):
                # Transactions are in the order in which they committed. Their changes alternate in the log.
                prefix, at_ms = f"{begin.commit:020}.", begin.at_us // 1000
                found += [
                    LoggedChange(
                        end,
                        one.position,
                        f"{prefix}{one.position:020}",
                        called.get(one.table.oid, one.table.name),
                        one.operation,
                        at_ms,
                        one.before,
                        one.after,
                        one.unsent,
                        begin.transaction,
                        one.shape,
                        str(one.table.oid),
                    )
                    for one in waiting
                ]
                last = end
            case Truncated(tables):
                waiting += [_OpenChange(position, table, "truncate") for table in tables]
            case RowChange(kind, table, old, new):
                if table not in converted:
                    converted[table] = _converted(table, types)
                before = None if old is None else _row(old, converted[table])
                after, unsent = (None, ()) if new is None else _new_row(table, new, before, converted[table])
                shape = shape_of(table.columns, None if kind == "insert" else table.identity)
                waiting.append(_OpenChange(position, table, kind, before, after, unsent, shape))
    return found, last


class _OpenChange(NamedTuple):
    """A change of a transaction whose end was not read yet."""

    position: int
    table: LoggedTable
    operation: ChangeKind | Literal["truncate"]
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    unsent: Sequence[str] = ()
    shape: str = ""


def _converted(table: LoggedTable, types: Mapping[int, ValueType]) -> dict[str, ValueType]:
    """The columns with values that are not their text."""
    kinds = {
        name: types.get(oid, ValueType(oid)) for name, oid in zip(table.columns, table.types, strict=True)
    }
    return {name: kind for name, kind in kinds.items() if not kind.is_text}


def _row(values: Values, converted: Mapping[str, ValueType]) -> dict[str, Any]:
    row: dict[str, Any] = {**values}
    for name, kind in converted.items():
        if (text := row.get(name)) is not None:
            row[name] = as_json(text, kind)
    return row


def _new_row(
    table: LoggedTable, values: Values, before: Mapping[str, Any] | None, converted: Mapping[str, ValueType]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A new row, and the columns that were not sent.

    A value that was not sent is that of the old row, if this was sent as a whole. It cannot be NULL.
    """
    row, known = _row(values, converted), before or {}
    if len(row) == len(table.columns):
        return row, ()
    missing = [name for name in table.columns if name not in row]
    row |= {name: known[name] for name in missing if known.get(name) is not None}
    return row, tuple(name for name in missing if name not in row)


__all__ = ["logged_changes"]
