"""One round of changes: new orders and orders that go (TPC-H's RF1 and RF2), updates, moves, returns.

A round takes orders (the newest by key, or any), and changes them with their line items: a tenth is
deleted, a tenth is new (half of these under keys that were deleted a round before), the rest is updated:
orders, lines, or both; some move to another customer or supplier. Every so many rounds other tables change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.tpch.data import KEYS, config
from benchmarks.tpch.lake import Lake
from dbt_arctic.refresh.upsert import upsert

PRIORITIES = "array('1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW')"
MODES = "array('AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK')"
SEGMENTS = "array('AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY')"


@dataclass
class Changes:
    """:param recent: whether the newest orders change, or any.
    :param changed: the share of orders that a round changes.
    :param dimensions: the other tables change every so many rounds; 0: never.
    """

    lake: Lake
    buckets: int
    changed: float
    recent: bool
    dimensions: int
    seed: int
    next_key: int = field(init=False, default=0)

    def begin(self) -> None:
        self.next_key = self.lake.value("SELECT max(o_orderkey) FROM orders") + 1
        self.lake.run(
            "CREATE TABLE IF NOT EXISTS gone USING iceberg AS "
            "SELECT o_orderkey AS key, 0 AS place FROM orders LIMIT 0"
        )

    def round(self, number: int) -> int:
        """Change the tables; returns how many rows of orders and line items are written."""
        seed = self.seed * 1000 + number
        self._pick(seed)
        rows = self._upsert("orders", self._orders(seed)) + self._upsert("lineitem", self._lines(seed))
        self.lake.run(
            "INSERT OVERWRITE gone SELECT key, row_number() OVER (ORDER BY key) FROM picked WHERE kind = 'D'"
        )
        if self.dimensions and number % self.dimensions == 0:
            self._change_dimensions(seed, nations=number % (5 * self.dimensions) == 0)
        return rows

    def _pick(self, seed: int) -> None:
        count = max(20, round(self.lake.value("SELECT count(1) FROM orders") * self.changed))
        tenth = count // 10
        order = "o_orderkey DESC" if self.recent else f"xxhash64(o_orderkey, {seed})"
        self.lake.run(f"""CREATE OR REPLACE TABLE picked USING iceberg AS
SELECT p.key, p.place,
  CASE WHEN p.place <= {tenth} THEN 'D' WHEN p.place <= {2 * tenth} THEN 'I' ELSE 'U' END AS kind,
  CASE WHEN p.place BETWEEN {tenth + 1} AND {2 * tenth}
    THEN coalesce(g.key, {self.next_key} + p.place - {tenth}) END AS new_key
FROM (
  SELECT o_orderkey AS key, row_number() OVER (ORDER BY xxhash64(o_orderkey, {seed + 7})) AS place
  FROM (SELECT o_orderkey FROM orders ORDER BY {order} LIMIT {count})
) AS p
LEFT JOIN gone AS g ON g.place = p.place - {tenth} AND g.place <= {tenth // 2}""")
        self.next_key += tenth + 1

    def _orders(self, seed: int) -> str:
        customers = self.lake.value("SELECT max(c_custkey) FROM customer")
        changed = {
            "o_orderkey": "coalesce(p.new_key, o_orderkey)",
            "o_custkey": _when(
                "place % 7 = 0", f"1 + pmod(o_custkey * 31 + {seed}, {customers})", "o_custkey"
            ),
            "o_orderstatus": _when("place % 3 = 0", "if(o_orderstatus = 'O', 'F', 'O')", "o_orderstatus"),
            "o_totalprice": "CAST(o_totalprice + place % 997 / 100 AS DECIMAL(15,2))",
            "o_orderdate": "CASE WHEN kind = 'I' OR kind = 'U' AND place % 11 = 0 "
            "THEN date_add(o_orderdate, CAST(place % 90 - 45 AS INT)) ELSE o_orderdate END",
            "o_orderpriority": _when(
                "place % 2 = 0", _one_of(PRIORITIES, f"place + {seed}"), "o_orderpriority"
            ),
            "o_comment": _when("place % 13 = 0", "concat('special requests ', place)", "o_comment"),
        }
        return f"""SELECT {self._listed("orders", changed)}, if(kind = 'D', 'D', 'U') AS _action
FROM orders JOIN picked AS p ON o_orderkey = p.key
WHERE NOT (kind = 'U' AND place % 5 = 0)"""

    def _lines(self, seed: int) -> str:
        suppliers = self.lake.value("SELECT max(s_suppkey) FROM supplier")
        drawn = f"pmod(xxhash64(l_orderkey, l_linenumber, {seed}), 9973)"
        days = f"CAST({drawn} % 120 - 60 AS INT)"
        at = "(place + l_linenumber)"
        changed = {
            "l_orderkey": "coalesce(p.new_key, l_orderkey)",
            "l_suppkey": _when(
                f"{at} % 17 = 0", f"1 + pmod(l_suppkey * 7 + {seed}, {suppliers})", "l_suppkey"
            ),
            "l_quantity": _when(f"{at} % 3 = 0", f"CAST(1 + {drawn} % 50 AS DECIMAL(15,2))", "l_quantity"),
            "l_extendedprice": f"CAST(l_extendedprice + {drawn} / 100 AS DECIMAL(15,2))",
            "l_discount": _when(f"{at} % 4 = 0", f"CAST({drawn} % 11 / 100 AS DECIMAL(15,2))", "l_discount"),
            "l_returnflag": _when(f"{at} % 5 = 0", _one_of("array('A', 'N', 'R')", drawn), "l_returnflag"),
            "l_linestatus": _when(f"{at} % 6 = 0", "if(l_linestatus = 'O', 'F', 'O')", "l_linestatus"),
            "l_shipdate": _when(f"{at} % 7 = 0", f"date_add(l_shipdate, {days})", "l_shipdate"),
            "l_receiptdate": _when(f"{at} % 8 = 0", f"date_add(l_receiptdate, {days})", "l_receiptdate"),
            "l_shipmode": _when(f"{at} % 9 = 0", _one_of(MODES, drawn), "l_shipmode"),
        }
        return f"""SELECT {self._listed("lineitem", changed)},
  if(kind = 'D' OR kind = 'U' AND (place * 7 + l_linenumber) % 10 = 0, 'D', 'U') AS _action
FROM lineitem JOIN picked AS p ON l_orderkey = p.key
WHERE NOT (kind = 'U' AND place % 5 = 1)"""

    def _change_dimensions(self, seed: int, nations: bool) -> None:
        changed = {
            "customer": {
                "c_acctbal": "CAST(c_acctbal + drawn % 2000 - 1000 AS DECIMAL(15,2))",
                "c_nationkey": "if(drawn % 3 = 0, CAST(drawn % 25 AS BIGINT), c_nationkey)",
                "c_phone": "if(drawn % 3 = 0, concat(10 + drawn % 25, substring(c_phone, 3)), c_phone)",
                "c_mktsegment": f"if(drawn % 2 = 0, {_one_of(SEGMENTS, 'drawn')}, c_mktsegment)",
            },
            "supplier": {
                "s_acctbal": "CAST(s_acctbal + drawn % 2000 - 1000 AS DECIMAL(15,2))",
                "s_nationkey": "if(drawn % 2 = 0, CAST(drawn % 25 AS BIGINT), s_nationkey)",
                "s_comment": "if(drawn % 3 = 0, 'Customer has Complaints', s_comment)",
            },
            "part": {
                "p_size": "CAST(1 + drawn % 50 AS INT)",
                "p_brand": "if(drawn % 2 = 0, concat('Brand#', 1 + drawn % 5, 1 + drawn % 4), p_brand)",
                "p_name": "if(drawn % 3 = 0, concat('forest green ', drawn), p_name)",
                "p_type": "if(drawn % 4 = 0, 'PROMO PLATED BRASS', p_type)",
            },
            "partsupp": {
                "ps_supplycost": "CAST(1 + drawn % 1000 AS DECIMAL(15,2))",
                "ps_availqty": "CAST(drawn AS INT)",
            },
        }
        for table, expressions in changed.items():
            key = ", ".join(KEYS[table])
            rows = self.lake.value(f"SELECT count(1) FROM {table}")
            every = max(1, rows // max(4, round(rows * self.changed / 4)))
            action = "if(drawn % 4 = 0, 'D', 'U')" if table == "partsupp" else "'U'"
            back = (
                f" UNION ALL SELECT *, 'U' FROM source_{table} ANTI JOIN {table} USING ({key}) "
                f"WHERE pmod(xxhash64({key}, {seed}), 2) = 0"
                if table == "partsupp"
                else ""
            )
            self._upsert(
                table,
                f"SELECT {self._listed(table, expressions)}, {action} AS _action FROM (SELECT *, "
                f"pmod(xxhash64({key}, {seed + 1}), 9973) AS drawn FROM {table} "
                f"WHERE pmod(xxhash64({key}, {seed}), {every}) = 0){back}",
            )
        if nations:
            self.lake.run(
                f"UPDATE nation SET n_regionkey = (n_regionkey + 1) % 5 WHERE n_nationkey = {seed % 25}"
            )

    def _listed(self, table: str, expressions: dict[str, str]) -> str:
        state = self.lake.catalog.load_view(self.lake.name(table).schema, table)
        assert state is not None
        names = [column.name for column in state.columns]
        return ", ".join(f"{expressions.get(name, name)} AS {name}" for name in names)

    def _upsert(self, table: str, sql: str) -> int:
        return upsert(self.lake.context, self.lake.name(table), config(table, self.buckets), sql).rows


def _when(condition: str, then: str, otherwise: str) -> str:
    return f"CASE WHEN kind = 'U' AND {condition} THEN {then} ELSE {otherwise} END"


def _one_of(values: str, number: str) -> str:
    return f"element_at({values}, CAST(1 + ({number}) % size({values}) AS INT))"
