"""Builds the whole warehouse again in DuckDB, as it must be after some round of the feed.

The ODS layer and the snapshot are replayed from the feed's files in SQL of this module's own; the
layers above run the project's definitions.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
from feed.tables import TABLES, FeedTable

from check.definitions import Definition

CATALOG = "lake"
HISTORY_OF = {"customer_history": "customer"}
"""Which feed each snapshot keeps the history of."""


class Rebuild:
    """A DuckDB database that holds what the warehouse ought to hold."""

    def __init__(self, feed: Path, seeds: Path, definitions: list[Definition]) -> None:
        self.definitions = definitions
        self._feed = feed
        self._seeds = seeds
        self._built: int | None = None
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute(f"ATTACH ':memory:' AS {CATALOG}")
        for schema in sorted({definition.schema for definition in definitions}):
            self.connection.execute(f'CREATE SCHEMA {CATALOG}."{schema}"')

    def build(self, last_round: int) -> None:
        """Build everything from the feed's rounds up to and with ``last_round``, unless that was done."""
        if self._built == last_round:
            return
        sources = {f"ods_{table.name}": self._latest_rows(table, last_round) for table in TABLES}
        by_name = {table.name: table for table in TABLES}
        for snapshot, table in HISTORY_OF.items():
            sources[snapshot] = self._history(by_name[table], last_round)
        for definition in self.definitions:
            if definition.kind == "seed":
                sql = f"SELECT * FROM read_csv('{self._seeds / definition.name}.csv')"
            else:
                sql = sources.get(definition.name, definition.sql)
            self.connection.execute(f"CREATE OR REPLACE TABLE {definition.relation} AS {sql}")
        self._built = last_round

    def _latest_rows(self, table: FeedTable, last_round: int) -> str:
        key = ", ".join(table.key)
        return f"""
            SELECT * EXCLUDE (place)
            FROM (
                SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY change_seq DESC) AS place
                FROM {self._files(table)}
                WHERE change_round <= {last_round}
            )
            WHERE place = 1 AND change_op <> 'D'"""

    def _history(self, table: FeedTable, last_round: int) -> str:
        """One row for each state in which a round left a key, with the time in which it was valid."""
        key = ", ".join(table.key)
        return f"""
            SELECT
                * EXCLUDE (place),
                changed_at AS dbt_updated_at,
                changed_at AS dbt_valid_from,
                lead(changed_at) OVER (PARTITION BY {key} ORDER BY change_seq) AS dbt_valid_to
            FROM (
                SELECT *,
                    row_number() OVER (PARTITION BY {key}, change_round ORDER BY change_seq DESC) AS place
                FROM {self._files(table)}
                WHERE change_round <= {last_round}
            )
            WHERE place = 1"""

    def _files(self, table: FeedTable) -> str:
        return f"read_parquet('{self._feed / table.name}/round_*.parquet')"
