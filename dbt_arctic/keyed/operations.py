"""SQL for the operations table, which records each compaction with its cost and benefit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.names import Name, literal, quote, quote_all

OPERATIONS = "arctic_operations"
"""The name of the table, in the schema of the target."""

COLUMNS = {
    "at": "timestamp",
    "run": "string",
    "kind": "string",
    "table_name": "string",
    "scope": "string",
    "why": "string",
    "outcome": "string",
    "detail": "string",
    "estimated_s": "double",
    "seconds": "double",
    "read_cost_before": "double",
    "read_cost_after": "double",
    "files_before": "bigint",
    "files_after": "bigint",
    "bytes_before": "bigint",
    "bytes_after": "bigint",
}


@dataclass(frozen=True)
class Record:
    """One operation.

    Times are in milliseconds since the epoch and in seconds, sizes are those of the whole table in bytes.

    ``read_cost`` is the cost of a read relative to fresh files.
    """

    at_ms: int
    run: str
    kind: str
    table_name: str
    scope: str
    why: str
    outcome: str
    detail: str
    estimated_s: float
    seconds: float
    read_cost_before: float
    read_cost_after: float
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int

    def values(self) -> str:
        """The SQL literals of the record, in the order of the columns."""
        texts = (self.run, self.kind, self.table_name, self.scope, self.why, self.outcome, self.detail)
        numbers = (self.estimated_s, self.seconds, self.read_cost_before, self.read_cost_after)
        counts = (self.files_before, self.files_after, self.bytes_before, self.bytes_after)
        listed = (
            f"timestamp_millis({self.at_ms})",
            *(literal(text) for text in texts),
            *(f"CAST({number:.3f} AS DOUBLE)" for number in numbers),
            *(f"CAST({count} AS BIGINT)" for count in counts),
        )
        return f"({', '.join(listed)})"


def create_table(name: Name) -> str:
    """The statement that creates the operations table."""
    columns = ",\n  ".join(f"{quote(column)} {type_}" for column, type_ in COLUMNS.items())
    # Each commit writes a metadata file, and there are many commits.
    kept = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
    }
    listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in kept.items())
    return f"CREATE TABLE IF NOT EXISTS {name.sql} (\n  {columns}\n)\nUSING iceberg\nTBLPROPERTIES ({listed})"


def insert(name: Name, records: Sequence[Record]) -> str:
    """The statement that inserts all operations of a run in one commit."""
    rows = ",\n  ".join(record.values() for record in records)
    return f"INSERT INTO {name.sql} ({quote_all(COLUMNS)})\nVALUES\n  {rows}"


def forget_before(name: Name, time_ms: int) -> str:
    """Delete records before a point in time."""
    return f"DELETE FROM {name.sql}\nWHERE {quote('at')} < timestamp_millis({time_ms})"
