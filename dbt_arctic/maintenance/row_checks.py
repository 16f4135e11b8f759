"""Checks on rows: NULL keys and duplicate keys, with one statement per table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dbt_arctic.keyed.checks import shown_row
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, TXN, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.finding import Finding, rebuild_command


def check_statement(table: KeyedTable, version: Version, known: ColumnsAt) -> str:
    """SQL that returns one row per kind of damage: its name, the number of keys or rows, and an example.

    :param known: the columns of the version's snapshots.
    """
    base, change = table.base.at(version.base_snapshot), table.change.at(version.change_snapshot)
    key = quote_all(table.key)
    shown = f"min({shown_row(table.key)})"
    null = " OR ".join(f"{quote(column)} IS NULL" for column in table.key)
    no_marker = f"{quote(TXN)} <> {MARKER_TXN}"
    return f"""\
SELECT 'duplicate-key', count(*), {shown}
FROM (SELECT {key} FROM {base} GROUP BY {key} HAVING count(*) > 1)
UNION ALL
SELECT 'null-key', count(*), {shown} FROM {base} WHERE {null}
UNION ALL
SELECT 'duplicate-change', count(*), {shown}
FROM (
  SELECT {key} FROM {change} WHERE {quote(ACTION)} <> '-U'
  GROUP BY {quote(TXN)}, {key} HAVING count(*) > 1
)
UNION ALL
SELECT 'null-change', count(*), {shown} FROM {change} WHERE ({null}) AND {no_marker}
UNION ALL
SELECT 'unknown-action', count(*), {shown} FROM {change}
WHERE {quote(ACTION)} IS NULL OR {quote(ACTION)} NOT IN ('U', 'D', '-U')
UNION ALL
SELECT 'duplicate-row', count(*), {shown}
FROM (SELECT {key} FROM ({merge_on_read(table, version, known)}) GROUP BY {key} HAVING count(*) > 1)"""


def check_rows(table: KeyedTable, rows: Sequence[Sequence[Any]]) -> Iterator[Finding]:
    """Findings from the result of the check statement.

    :param rows: what the statement returned.
    """
    problems = {
        "duplicate-key": (table.base, "keys are duplicated in the base"),
        "null-key": (table.base, "rows of the base have NULL in their key"),
        "duplicate-change": (table.change, "keys are duplicated in one commit"),
        "null-change": (table.change, "changes have NULL in their key"),
        "duplicate-row": (table.name, "keys are duplicated in the merged rows"),
        "unknown-action": (table.change, "changes are neither an upsert nor a delete"),
    }
    for kind, count, example in rows:
        if count:
            side, what = problems[str(kind)]
            yield Finding(
                str(kind),
                table.name.dotted,
                f"{count} {what}, for instance {example}",
                side.dotted,
                "rows were written manually or by another program; dbt-arctic checks each batch",
                rebuild_command(table.name),
            )
