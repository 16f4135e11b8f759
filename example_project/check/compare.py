"""Counts the rows in which the warehouse and its rebuild differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from check.rebuild import Rebuild

NOT_COMPARED = {"_action", "dbt_scd_id"}
"""``_action`` selects the operation on a row and is not stored; a snapshot's id is a hash of its key and
time.
"""


@dataclass(frozen=True)
class Comparison:
    """One relation against its rebuild; rows are counted with their multiplicity.

    :param wrong: rows that are there and should not be.
    :param missing: rows that should be there and are not.
    :param problem: why the rows could not be compared at all; empty if they could.
    """

    name: str
    rows: int
    wrong: int
    missing: int
    problem: str = ""

    @property
    def differences(self) -> int:
        return self.wrong + self.missing + (1 if self.problem else 0)


def compare(rebuild: Rebuild, exported: Path) -> list[Comparison]:
    """Compare what readers saw, exported as Parquet, with the rebuild.

    :param exported: a folder with one folder of Parquet files for each relation.
    """
    return [
        _compare_one(rebuild, definition.name, definition.relation, exported / definition.name)
        for definition in rebuild.definitions
    ]


def _compare_one(rebuild: Rebuild, name: str, relation: str, exported: Path) -> Comparison:
    run = rebuild.connection.execute
    actual = f"read_parquet('{exported}/*.parquet')"
    actual_columns = {row[0] for row in run(f"DESCRIBE SELECT * FROM {actual}").fetchall()} - NOT_COMPARED
    wanted_columns = {row[0] for row in run(f"DESCRIBE {relation}").fetchall()} - NOT_COMPARED
    (rows,) = run(f"SELECT count(*) FROM {actual}").fetchall()[0]
    if actual_columns != wanted_columns:
        differing = ", ".join(sorted(actual_columns ^ wanted_columns))
        return Comparison(name, rows, 0, 0, f"columns on one side only: {differing}")
    columns = ", ".join(f'"{column}"' for column in sorted(actual_columns))
    # EXCEPT ALL in both directions would number the rows of both sides twice.
    wrong, missing = run(f"""
        SELECT
            coalesce(sum(excess) FILTER (excess > 0), 0),
            coalesce(-sum(excess) FILTER (excess < 0), 0)
        FROM (
            SELECT sum(weight) AS excess
            FROM (
                SELECT {columns}, 1 AS weight FROM {actual}
                UNION ALL
                SELECT {columns}, -1 FROM {relation}
            )
            GROUP BY {columns}
        )""").fetchall()[0]
    return Comparison(name, rows, wrong=int(wrong), missing=int(missing))
