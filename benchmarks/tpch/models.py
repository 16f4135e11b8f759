"""One query of TPC-H as an automatic model: built, refreshed, refreshed in full, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.tpch.lake import Lake
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.refresh_outcome import Outcome


@dataclass(frozen=True)
class Refreshed:
    """:param reason: the code of a full refresh, or how an incremental one went if not by keys.
    :param read: bytes; ``None`` if unknown.
    """

    strategy: str
    reason: str
    keys: int | None
    rows: int
    seconds: float
    statements: int
    read: int | None
    full_seconds: float | None = None
    full_read: int | None = None
    differences: int = 0


@dataclass
class Model:
    query: str
    sql: str
    config: KeyedConfig
    is_query: bool = True
    """Of TPC-H; else of the example project."""
    rounds: list[Refreshed] = field(default_factory=list)

    def build(self, lake: Lake) -> None:
        self._run(lake, lake.name(self.query))

    def refresh(self, lake: Lake, full: str) -> Refreshed:
        """:param full: ``keyed`` and ``plain`` also time a full refresh: that of the model itself, or that of
        a model with ``materialized='table'``.
        """
        outcome, seconds, statements, read = self._timed(lake, lake.name(self.query))
        choice = outcome.choice
        assert choice is not None
        full_seconds = full_read = None
        beside = f"SELECT * FROM {lake.name(f'{self.query}_full').sql}"
        if full == "keyed":
            _, full_seconds, _, full_read = self._timed(lake, lake.name(f"{self.query}_full"))
        elif full == "plain":
            before, began = lake.bytes_read(), lake.clock()
            lake.run(f"CREATE OR REPLACE TABLE {self.query}_full USING iceberg AS {self.sql}")
            full_seconds = lake.clock() - began
            full_read = _since(lake, before)
        else:
            beside = self.sql
        refreshed = Refreshed(
            choice.strategy,
            choice.reason or choice.how,
            choice.keys,
            outcome.rows,
            seconds,
            statements,
            read,
            full_seconds,
            full_read,
            self._differences(lake, beside),
        )
        self.rounds.append(refreshed)
        return refreshed

    def _timed(self, lake: Lake, name: Name) -> tuple[Outcome, float, int, int | None]:
        read, ran, began = lake.bytes_read(), lake.statements, lake.clock()
        outcome = self._run(lake, name)
        return outcome, lake.clock() - began, lake.statements - ran, _since(lake, read)

    def _run(self, lake: Lake, name: Name) -> Outcome:
        """Refreshed as by the adapter; a name that ends in ``_full`` is always rebuilt."""
        rebuild = name.identifier != self.query
        plan = plan_refresh(
            lake.context.catalog, name, self.config, self.sql, lake.context.query_schema, rebuild=rebuild
        )
        return run_refresh(lake.context, name, self.config, plan, owner="benchmark")

    def _differences(self, lake: Lake, expected: str) -> int:
        """How often rows are in one of the two and not in the other."""
        view = lake.catalog.load_view(lake.name(self.query).schema, self.query)
        assert view is not None
        names = [column.name for column in view.columns]
        kept, wanted = (
            lake.query(_fingerprint(names, rows))
            for rows in (f"SELECT * FROM {lake.name(self.query).sql}", expected)
        )
        # To bring all rows of a large table together takes longer than the rest of a round.
        return 0 if kept == wanted else lake.value(self._differing(lake, quote_all(names), expected))

    def _differing(self, lake: Lake, columns: str, expected: str) -> str:
        return f"""SELECT sum(abs(times)) FROM (
SELECT sum(side) AS times FROM (
  SELECT {columns}, 1 AS side FROM {lake.name(self.query).sql}
  UNION ALL SELECT {columns}, -1 AS side FROM ({expected})
) GROUP BY {columns})"""


def _fingerprint(columns: Sequence[str], rows: str) -> str:
    """How many rows there are, and sums of their hashes, which do not depend on an order. A hash ignores
    NULL, so NULLs are counted.
    """
    listed = quote_all(columns)
    nulls = ", ".join(f"{quote(column)} IS NULL" for column in columns)
    sums = ", ".join(
        f"sum(CAST({function}({listed}, {nulls}) AS DECIMAL(20, 0)))" for function in ("xxhash64", "hash")
    )
    return f"SELECT count(*), {sums} FROM ({rows})"


def _since(lake: Lake, before: int | None) -> int | None:
    after = lake.bytes_read()
    return None if after is None or before is None else after - before
