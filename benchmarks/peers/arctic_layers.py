"""The layers as models of dbt-arctic: ODS by `upsert`, DWD and DWS as automatic models."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.arctic import Arctic
from benchmarks.peers.layers import customers_table, dwd_sql, dwd_table, dws_sql, dws_table
from benchmarks.peers.rounds import orders
from benchmarks.peers.table import Table
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh


class Models:
    def __init__(self, peer: Arctic, buckets: int) -> None:
        self.peer = peer
        self.orders, self.customers = orders("ods", buckets), customers_table()
        self.dwd_table, self.dws_table = dwd_table(buckets), dws_table()

    def build(self, rows: str, customers: str) -> None:
        self.peer.load(self.customers, customers)
        self.peer.load(self.orders, rows)
        self.dwd()
        self.dws()

    def ods(self, changes: str) -> None:
        self.peer.write(self.orders, changes)

    def dwd(self) -> None:
        orders_now, customers = self.peer.relation(self.orders), self.peer.relation(self.customers)
        self._refresh(self.dwd_table, dwd_sql(orders_now, customers))

    def dws(self) -> None:
        self._refresh(self.dws_table, dws_sql(self.peer.relation(self.dwd_table)))

    def relations(self) -> tuple[str, str]:
        return self.peer.relation(self.dwd_table), self.peer.relation(self.dws_table)

    def _refresh(self, table: Table, sql: str) -> None:
        context, name = self.peer.context, self.peer.name(table)
        # According to dbt's graph, DWS reads DWD.
        config = replace(self.peer.config(table), before_images=table is self.dwd_table)
        plan = plan_refresh(context.catalog, name, config, sql, context.query_schema)
        outcome = run_refresh(context, name, config, plan, owner="benchmark")
        self.peer.note(f"{table.name}: {outcome.choice}")
