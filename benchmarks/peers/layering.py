"""Three ways to maintain the layers: from a change feed with replaced rows, by a watermark, and by a full
rebuild.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.layers import SUMS, Pipeline, customers_table, dwd_sql, dwd_table, dws_sql, dws_table
from benchmarks.peers.peer import Peer
from benchmarks.peers.rounds import orders
from benchmarks.peers.workload import DELETED

GONE = "is_gone"


class _Layers:
    """What the ways have in common: the tables, and how they are built."""

    def __init__(self, peer: Peer, buckets: int) -> None:
        self.peer = peer
        self.orders = orders("ods", buckets)
        self.dwd_table, self.dws_table = dwd_table(buckets), dws_table()
        self._customers = customers_table()

    @property
    def customers(self) -> str:
        return self.peer.relation(self._customers)

    @property
    def current_orders(self) -> str:
        return self.peer.relation(self.orders)

    def build(self, rows: str, customers: str) -> None:
        peer = self.peer
        peer.load(self._customers, customers)
        peer.load(self.orders, rows)
        peer.load(self.dwd_table, peer.view("dwd_rows", dwd_sql(self.current_orders, self.customers)))
        sums = peer.view("dws_rows", dws_sql(peer.relation(self.dwd_table)))
        peer.load_sums(self.dws_table, sums, SUMS)

    def relations(self) -> tuple[str, str]:
        return self.peer.relation(self.dwd_table), self.peer.sums(self.dws_table)


class Feed(_Layers):
    """Changes flow from table to table; sums take away what rows were, and add what they are."""

    def ods(self, changes: str) -> None:
        self._orders_before = self.peer.mark(self.orders)
        self.peer.write(self.orders, changes)

    def dwd(self) -> None:
        peer = self.peer
        self._dwd_before = peer.mark(self.dwd_table)
        changed = peer.changes(self.orders, self._orders_before)
        enriched = dwd_sql(changed, self.customers, f", o.{DELETED}")
        peer.write(self.dwd_table, peer.staged("dwd_changes", enriched))

    def dws(self) -> None:
        signed = self.peer.signed(self.dwd_table, self._dwd_before)
        self.peer.add_up(self.dws_table, self.peer.staged("dws_changes", dws_sql(signed, "sign")), SUMS)


class Watermark(_Layers):
    """No feed reports deletes: ODS keeps deleted rows with a flag, DWD reads rows that are newer than its
    newest row, and the changed sums are unknown, so all sums are recomputed.
    """

    def __init__(self, peer: Peer, buckets: int) -> None:
        super().__init__(peer, buckets)
        self.orders = replace(self.orders, columns=(*self.orders.columns, GONE))

    @property
    def current_orders(self) -> str:
        return f"(SELECT * FROM {self.peer.relation(self.orders)} WHERE NOT {GONE})"

    def build(self, rows: str, customers: str) -> None:
        super().build(self.peer.view("ods_rows", f"SELECT *, false AS {GONE} FROM {rows}"), customers)

    def ods(self, changes: str) -> None:
        columns = ", ".join(column for column in self.orders.columns if column != GONE)
        kept = f"SELECT {columns}, {DELETED} AS {GONE}, false AS {DELETED} FROM {changes}"
        self.peer.write(self.orders, self.peer.view("ods_changes", kept))

    def dwd(self) -> None:
        peer = self.peer
        newest = f"(SELECT max(version) FROM {peer.relation(self.dwd_table)})"
        changed = f"(SELECT * FROM {peer.relation(self.orders)} WHERE version > {newest})"
        enriched = dwd_sql(changed, self.customers, f", o.{GONE} AS {DELETED}")
        peer.write(self.dwd_table, peer.view("dwd_changes", enriched))

    def dws(self) -> None:
        self.peer.replace(self.dws_table, dws_sql(self.peer.relation(self.dwd_table)))


class FullRebuild(_Layers):
    """Every layer from the one before it, in full."""

    def ods(self, changes: str) -> None:
        self.peer.write(self.orders, changes)

    def dwd(self) -> None:
        self.peer.replace(self.dwd_table, dwd_sql(self.current_orders, self.customers))

    def dws(self) -> None:
        self.peer.replace(self.dws_table, dws_sql(self.peer.relation(self.dwd_table)))


def pipeline(peer: Peer, buckets: int) -> Pipeline:
    if peer.layering == "models":
        from benchmarks.peers.arctic import Arctic
        from benchmarks.peers.arctic_layers import Models

        assert isinstance(peer, Arctic)
        return Models(peer, buckets)
    ways: dict[str, type[Feed | Watermark | FullRebuild]] = {
        "feed": Feed,
        "watermark": Watermark,
        "anew": FullRebuild,
    }
    return ways[peer.layering](peer, buckets)
