"""The strategy ``history``: a table with the intervals in which each state of a key was valid.

A row of the table is an interval. Its key is the key of the model and the sequence of the event that opened
it. ``history_sql`` computes the intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.checks import raise_error_sql, shown_row
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.table import KeyedTable

PROPERTY_SETTINGS = "history.settings"
"""On the base table of a history: JSON of the settings that its rows were computed with. A build from stored
rows copies it, as it copies the properties that a model sets."""

ADDED_BY_SOURCES = "_source_"
"""Columns that a source adds begin with it. Two deliveries of one event may differ in them."""
VERSION = "_arctic_version"
"""BIGINT: how often the row was written. It is the ``sequence_by`` of the table, so that rows that are not
shown are remembered like the deletes of any table with a sequence."""
DELETED = "_arctic_deleted"
"""BOOLEAN: whether the event of the row is a delete."""
LAST = "_arctic_last"
"""The sequence of the latest event that left the tracked columns as they are; NULL if there is none."""
CLOSED = "_arctic_closed"
"""The sequence of the delete that closed the interval; NULL if no delete did."""
_FIRST = "_arctic_first_"
"""With the name of an ignored column: its value in the event that opened the interval, if ``LAST`` is set."""


@dataclass(frozen=True)
class MetaColumns:
    """The names of the columns that describe an interval, as those of a dbt snapshot."""

    scd_id: str = "dbt_scd_id"
    updated_at: str = "dbt_updated_at"
    valid_from: str = "dbt_valid_from"
    valid_to: str = "dbt_valid_to"
    is_deleted: str = "dbt_is_deleted"


@dataclass(frozen=True)
class History:
    """How events become intervals.

    :param key: the columns that identify what has a history.
    :param sequence: the column that orders the events of a key.
    :param time: the column with the times of the intervals. May be the same column.
    :param columns: Spark type by column name, of all columns of an event, in the order of the table.
    :param tracked: the columns whose changes begin an interval.
    :param ignored: the other columns, which show their latest value within the interval.
    :param records_deletes: whether a deleted key has a row that says so.
    :param open_until: SQL of ``valid_to`` in an interval that is not closed.
    :param scd_id: SQL of the id of an interval, over the columns of the key and the sequence.
    :param deduplicate_by: SQL expressions; of several events of a key with one sequence, the greatest wins.
    """

    model: str
    key: tuple[str, ...]
    sequence: str
    time: str
    columns: Mapping[str, str]
    tracked: tuple[str, ...]
    ignored: tuple[str, ...]
    scd_id: str
    meta: MetaColumns = field(default_factory=MetaColumns)
    records_deletes: bool = False
    open_until: str = "NULL"
    deduplicate_by: tuple[str, ...] = ()

    @property
    def row_key(self) -> tuple[str, ...]:
        """The key of the table."""
        return (*self.key, self.sequence)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns of the table that readers do not see."""
        closed = () if self.records_deletes else (CLOSED,)
        return (VERSION, DELETED, LAST, *closed, *(first_of(name) for name in self.ignored))

    @property
    def described(self) -> tuple[str, ...]:
        """The columns that describe an interval."""
        meta = self.meta
        always = (meta.scd_id, meta.updated_at, meta.valid_from, meta.valid_to)
        return (*always, meta.is_deleted) if self.records_deletes else always

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """All columns of the table, in order."""
        return (*self.columns, *self.described, *self.hidden)

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of an event other than its key, sequence and time."""
        return tuple(name for name in self.columns if name in {*self.tracked, *self.ignored})


def first_of(column: str) -> str:
    """The hidden column with the first value of an ignored column."""
    return f"{_FIRST}{column}"


def is_history(table: KeyedTable) -> bool:
    """Whether a table has the intervals of the strategy ``history``."""
    return table.sequence_by == VERSION


def refuse_history(table: KeyedTable, where: str, what: str) -> None:
    """Refuse to write rows that are not events to a history.

    :raises ConfigError: the table is a history.
    """
    if is_history(table):
        raise ConfigError(
            f"{table.name} is a history, {what}",
            where=where,
            why="its intervals follow from events, and each row remembers some of them",
            fix="let the model return an event, for instance one that corrects the key; erase a key with "
            f"dbt-arctic erase {table.name.identifier} --where ..",
        )


def events_sql(history: History, batch: Batch) -> str:
    """SQL of the events in a batch: the columns of the model and ``DELETED``.

    Values have the types of the table, because they are compared and united with stored ones. The statement
    fails if a sequence or a time is NULL.
    """
    selected = []
    for name in history.columns:
        value = batch.in_stored_type(name, quote(name))
        if name in (history.sequence, history.time):
            value = _required(history, name, value)
        selected.append(value if value == quote(name) else f"{value} AS {quote(name)}")
    deleted = f"{batch.action_sql} = 'D'" if batch.can_delete else "false"
    return f"SELECT {', '.join(selected)}, {deleted} AS {quote(DELETED)}\nFROM (\n{batch.sql}\n)"


def _required(history: History, name: str, value: str) -> str:
    setting = "sequence_by" if name == history.sequence else "updated_at"
    error = raise_error_sql(
        "AR-309",
        f"an event has NULL in {name}: ",
        shown_row(history.key),
        history.model,
        f"{setting} decides where the event belongs in the history of its key",
        "filter these rows out in the model, or give them a value with coalesce()",
    )
    return f"CASE WHEN {quote(name)} IS NULL THEN {error} ELSE {value} END"


def affected_keys_sql(history: History, new: str, ranges: Sequence[str] = ()) -> str:
    """SQL of the keys of new events, which may be repeated: it is the right side of a semi-join.

    :param ranges: conditions that all of these keys meet, with which scans of the table skip files.
    """
    where = f"\nWHERE {' AND '.join(ranges)}" if ranges else ""
    return f"SELECT {quote_all(history.key)}\nFROM {new}{where}"
