"""The capture table of a source: the changes that were taken from a database's log, and which these are.

Columns: ``transaction_end`` BIGINT and ``position`` BIGINT (positions in the database's log),
``transaction_id`` BIGINT (of 32 bits), ``table_name`` STRING, ``message`` STRING (JSON, see
``capture_messages``), ``captured_on`` DATE (UTC). Each commit records the range of the log that the table
has, so rows and range become visible together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from operator import attrgetter

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.log import consumed_versions, rows_added
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.version import SLOT, Consumed
from dbt_arctic.sources.capture_messages import TableChanges, changes_by_table, message_of
from dbt_arctic.sources.column_changes import RecordedTable

COLUMNS = ("transaction_end", "transaction_id", "position", "table_name", "message")
PROPERTY_CAPTURES = "arctic.captures"
"""On the table: the source whose changes it has."""
PROPERTY_TABLES = "arctic.captured"
"""On a commit: ``TableChanges`` by table of the database, as JSON."""

_ROW_GROUP_BYTES = 512 * 1024
"""About 10,000 changes."""
_COST_OF_ROW_GROUP = 64 * 1024
"""What Iceberg counts at least for a row group when it fills tasks. With the default of 4 MB, each task would
have a few, and read the file's footer again."""

LOG_BEGAN_AGAIN = "the log has begun again, or it is that of a restored server"
_ENTRY = "slot"
"""The name under which a commit records the range."""


@dataclass(frozen=True)
class CapturedRange:
    """The part of a database's log that a capture table has.

    :param identity: of the log.
    :param start: the position after which it has all changes, apart from those that were removed.
    :param end: the position up to which it has them.
    :param oldest: the day of the oldest rows, or a day before it.
    :param removed: by table, the position up to which changes were removed because of their age, or were
        not captured because the table was not followed.
    :param tables: those whose changes are captured up to ``end``.
    :param mark: of ``ChangeLog.mark`` for ``end``.
    :param origin: differs after the capture has begun again, because changes were lost; empty before.
    :param at_ms: a time before which no later change is made; 0 if the times in the log do not go back.
    """

    identity: str
    start: int
    end: int
    oldest: date
    removed: Mapping[str, int] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    mark: str = ""
    origin: str = ""
    at_ms: int = 0

    def consumed(self) -> Consumed:
        """The form in which a commit of the capture table records the range."""
        parts = {
            "start": self.start,
            "end": self.end,
            "oldest": self.oldest.isoformat(),
            "removed": dict(sorted(self.removed.items())),
            "tables": sorted(self.tables),
            "mark": self.mark,
            "origin": self.origin,
            **({"at_ms": self.at_ms} if self.at_ms else {}),
        }
        return Consumed(SLOT + self.identity, json.dumps(parts))

    @classmethod
    def of(cls, consumed: Consumed) -> CapturedRange:
        """The range that a commit of a capture table has recorded."""
        parts = json.loads(consumed.version)
        return cls(
            consumed.table_id.removeprefix(SLOT),
            parts["start"],
            parts["end"],
            date.fromisoformat(parts["oldest"]),
            parts["removed"],
            frozenset(parts["tables"]),
            parts["mark"],
            parts.get("origin", ""),
            parts.get("at_ms", 0),
        )

    def following(self, tables: Iterable[str]) -> CapturedRange:
        """The range of which the next commit has the changes of these tables.

        Earlier changes of a table that was not followed before are missing.
        """
        followed = frozenset(tables)
        missing = {} if self.end == self.start else dict.fromkeys(followed - self.tables, self.end)
        return replace(self, tables=followed, removed={**self.removed, **missing})

    def without(self, cutoff: date, removed: Mapping[str, int]) -> CapturedRange:
        """The range without the rows of the days before ``cutoff``."""
        return replace(self, oldest=cutoff, removed={**self.removed, **removed})

    def at(self, position: int, table: str, table_id: str, recorded: RecordedTable | None = None) -> Consumed:
        """What a model has consumed that has read a table up to a position.

        :param table: ``schema.table``.
        :param table_id: differs for another table of the same name.
        :param recorded: the table as the model has read it.
        """
        columns = None if recorded is None else recorded.as_json()
        parts = [position, columns, *([self.origin] if self.origin else [])]
        version = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        return Consumed(f"{self.table_key(table)}{table_id}", version)

    def table_key(self, table: str) -> str:
        """The beginning of the id of what a model has consumed of a table."""
        return f"{SLOT}{self.identity}/{table}/"


@dataclass(frozen=True)
class Captured:
    """A capture table as of one load."""

    name: Name
    state: TableState
    range: CapturedRange

    def changes_since(self, table: str, position: int) -> TableChanges | None:
        """The changes of a table after a position, from the commits.

        ``None`` if they are not known, because old commits have expired.
        """
        found = TableChanges()
        for snapshot in self.state.history():
            own = consumed_versions([snapshot]).get(_ENTRY)
            if own is not None and CapturedRange.of(own).end <= position:
                return found
            changes = json.loads(snapshot.summary.get(PROPERTY_TABLES, "{}")).get(table)
            found = found if changes is None else found.plus(TableChanges.from_json(changes))
        return None

    def rows_since(self, position: int) -> int | None:
        """The changes of all tables after a position; ``None`` like ``changes_since``."""
        rows = 0
        for snapshot in self.state.history():
            own = consumed_versions([snapshot]).get(_ENTRY)
            if own is not None and CapturedRange.of(own).end <= position:
                return rows
            rows += rows_added(snapshot)
        return None

    def newest_ms(self, table: str) -> int | None:
        """When the newest change of a table was committed in the database; ``None`` if it is not known."""
        for snapshot in self.state.history():
            found = json.loads(snapshot.summary.get(PROPERTY_TABLES, "{}")).get(table)
            if found is not None:
                return TableChanges.from_json(found).newest_ms
        return None

    def require_unread(
        self, last: Consumed, table: str, source: str, model: str, table_id: str | None = None
    ) -> int:
        """The position up to which a model has read, if the changes since are all there.

        :param table_id: as for ``CapturedRange.at``; ``None`` if it is not known.
        :raises VersionUnavailable: some are not.
        """
        position = position_of(last)
        key = self.range.table_key(table)
        if not last.table_id.startswith(key):
            why = "the source has another table, replication slot or server than the one that was read"
        elif table_id is not None and last.table_id != key + table_id:
            why = f"the table {table} was dropped and created again, or another one has its name now"
        elif position < self.range.start:
            why = f"the changes between {position} and {self.range.start} were not captured"
        elif position > self.range.end or _origin_of(last) != self.range.origin:
            # Positions of another log may be greater, and those of this one will be greater later.
            why = LOG_BEGAN_AGAIN
        elif position < self.range.removed.get(table, 0):
            why = (
                "they were removed from the capture table before the model read them (retention), or the "
                "table was not followed for a while"
            )
        else:
            return position
        raise VersionUnavailable(
            f"changes of the source {source} that {model} has not read are lost",
            where=model,
            why=why,
            fix=f"load the table again: dbt run --full-refresh --select {model}",
        )


def _origin_of(last: Consumed) -> str:
    return str((*json.loads(last.version), "")[2])


def position_of(last: Consumed) -> int:
    """The position up to which a model has read."""
    return int(json.loads(last.version)[0])


def recorded_table(last: Consumed) -> RecordedTable | None:
    """The table as a model has read it; ``None`` if its commit does not say."""
    columns = json.loads(last.version)[1]
    return None if columns is None else RecordedTable.from_json(columns)


def capture_name(schema: Name, source: str) -> Name:
    """The name of the capture table of a source, which all of the source's tables share.

    :param schema: any name in the schema of the target.
    """
    return schema.sibling(f"{source.partition('.')[0]}__capture")


def load_capture(
    catalog: CatalogReader, name: Name, source: str
) -> tuple[TableState, Captured | None] | None:
    """A capture table, and its range unless nothing was committed yet; ``None`` if there is no table.

    :raises ConfigError: the table of this name is another one.
    """
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        return None
    owner = source.partition(".")[0]
    if state.properties.get(PROPERTY_CAPTURES) != owner:
        raise ConfigError(
            f"the table {name} is not the capture table of the source {owner}",
            where=name.dotted,
            why=f"it has this name, but not the property {PROPERTY_CAPTURES}={owner}",
            fix="rename the table, or the source",
        )
    recorded = consumed_versions(state.history()).get(_ENTRY)
    return state, None if recorded is None else Captured(name, state, CapturedRange.of(recorded))


def create_statement(name: Name, source: str) -> str:
    """SQL that creates a capture table.

    A model reads the changes of one table. They are next to each other in a file (``as_rows``), so the model
    skips the other row groups of a large one.
    """
    owner = source.partition(".")[0]
    return (
        f"CREATE TABLE IF NOT EXISTS {name.sql} (\n  `transaction_end` BIGINT, `transaction_id` BIGINT, "
        "`position` BIGINT, `table_name` STRING, `message` STRING, `captured_on` DATE\n)\nUSING iceberg\n"
        "PARTITIONED BY (`captured_on`)\n"
        f"TBLPROPERTIES ('format-version'='3', {literal(PROPERTY_CAPTURES)}={literal(owner)}, "
        f"'write.parquet.row-group-size-bytes'='{_ROW_GROUP_BYTES}', "
        f"'read.split.open-file-cost'='{_COST_OF_ROW_GROUP}')"
    )


def append_statement(target: str, view: str, day: date) -> str:
    """SQL that appends the changes of a view with ``COLUMNS`` as strings.

    :param target: SQL of a branch of the table.
    """
    return (
        f"INSERT INTO {target} ({quote_all((*COLUMNS, 'captured_on'))})\n"
        "SELECT /*+ COALESCE(1) */ CAST(`transaction_end` AS BIGINT), CAST(`transaction_id` AS BIGINT), "
        f"CAST(`position` AS BIGINT), `table_name`, `message`, DATE'{day}'\nFROM {quote(view)}"
    )


def as_rows(changes: Sequence[LoggedChange]) -> list[tuple[int, int, int, str, str]]:
    """The rows of changes, table by table, with the columns of ``COLUMNS``."""
    return [
        (one.end, one.transaction, one.position, one.table, message_of(one))
        for one in sorted(changes, key=attrgetter("table"))
    ]


def entry(range_: CapturedRange) -> dict[str, Consumed]:
    """What a commit of a capture table records."""
    return {_ENTRY: range_.consumed()}


def tables_property(changes: Iterable[LoggedChange]) -> dict[str, str]:
    """The property of a commit with these changes."""
    found = changes_by_table(changes)
    return {PROPERTY_TABLES: json.dumps(found)} if found else {}


def removed_statement(name: Name, cutoff: date) -> str:
    """SQL of the greatest position of each table in the rows of the days before a day."""
    return (
        f"SELECT `table_name`, max(`transaction_end`)\nFROM {name.sql}\n"
        f"WHERE `captured_on` < DATE'{cutoff}'\nGROUP BY `table_name`"
    )


def remove_statements(target: str, cutoff: date | None = None) -> list[str]:
    """SQL that removes the rows of the days before a day, or all rows. There is a commit in any case."""
    days = f"\nWHERE `captured_on` < DATE'{cutoff}'" if cutoff else ""
    # A DELETE that finds no rows commits nothing.
    return [f"DELETE FROM {target}{days}", f"INSERT INTO {target}\nSELECT * FROM {target} WHERE false"]


def cutoff_of(today: date, retention_days: int) -> date:
    """The first day whose rows are kept."""
    return today - timedelta(days=retention_days)


__all__ = [
    "COLUMNS",
    "LOG_BEGAN_AGAIN",
    "PROPERTY_CAPTURES",
    "Captured",
    "CapturedRange",
    "append_statement",
    "as_rows",
    "capture_name",
    "create_statement",
    "cutoff_of",
    "entry",
    "load_capture",
    "position_of",
    "recorded_table",
    "remove_statements",
    "removed_statement",
    "tables_property",
]
