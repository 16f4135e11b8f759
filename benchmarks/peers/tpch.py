"""TPC-H on tables that change: orders and line items, three queries, rounds of changes. Pure text.

Both tables have a ``version`` in addition to TPC-H's columns. A round takes 1 % of the orders: of ten, eight
change with all their line items, one goes with them, and one comes again under a new key.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.table import Table
from benchmarks.peers.workload import DELETED

LINEITEM = (
    *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount"),
    *("l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate"),
    *("l_shipinstruct", "l_shipmode", "l_comment", "version"),
)
ORDERS = (
    *("o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority"),
    *("o_clerk", "o_shippriority", "o_comment", "version"),
)
NAMES = ("lineitem", "orders")
NEW_KEYS = 2**33
"""Above all keys of a scale factor below 1,000."""


def tables(buckets: int) -> dict[str, Table]:
    """Bucketed alike, where a peer has buckets, so that they can be joined where they lie."""
    return {
        "lineitem": Table("lineitem", ("l_orderkey", "l_linenumber"), LINEITEM, buckets, "l_orderkey"),
        "orders": Table("orders", ("o_orderkey",), ORDERS, buckets, "o_orderkey"),
    }


@dataclass(frozen=True)
class _Changed:
    key: str
    values: dict[str, str]


_CHANGES = {
    "lineitem": _Changed(
        "l_orderkey",
        {
            "l_quantity": "CAST(l_quantity % 50 + 1 AS DECIMAL(15,2))",
            "l_discount": "CAST((l_discount * 100 + 1) % 10 * 0.01 AS DECIMAL(15,2))",
            "l_shipmode": "CASE WHEN l_shipmode = 'MAIL' THEN 'AIR' ELSE 'MAIL' END",
        },
    ),
    "orders": _Changed(
        "o_orderkey",
        {
            "o_totalprice": "CAST(o_totalprice + 1 AS DECIMAL(15,2))",
            "o_orderpriority": "CASE WHEN o_orderpriority = '1-URGENT' THEN '5-LOW' ELSE '1-URGENT' END",
        },
    ),
}


def initial_sql(table: str, source: str) -> str:
    return f"SELECT *, CAST(0 AS INTEGER) AS version FROM {source}"


def changes_sql(table: str, source: str, number: int) -> str:
    """A round's changes, of the rows as they are then, in DuckDB."""
    changed = _CHANGES[table]
    key, columns = changed.key, tables(1)[table].columns
    values = {
        **changed.values,
        key: f"CASE WHEN kind = 9 THEN {NEW_KEYS * number} + {key} ELSE {key} END",
        "version": f"CAST({number} AS INTEGER)",
    }
    listed = ", ".join(f"{values[column]} AS {column}" if column in values else column for column in columns)
    return f"""SELECT {listed}, kind = 8 AS {DELETED}
FROM (SELECT *, ({key} * 31 + {number}) % 10 AS kind FROM {source}
  WHERE {key} < {NEW_KEYS} AND ({key} * 7919 + {number} * 104729) % 1000 < 10) AS chosen"""


def queries(lineitem: str, orders: str) -> dict[str, str]:
    return {
        "q01": f"""SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
  sum(l_extendedprice) AS sum_base_price, sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
  avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
FROM {lineitem} WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
        "q06": f"""SELECT sum(l_extendedprice * l_discount) AS revenue FROM {lineitem}
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        "q12": f"""SELECT l_shipmode,
  sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END)
    AS high_line_count,
  sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END)
    AS low_line_count
FROM {orders} JOIN {lineitem} ON o_orderkey = l_orderkey
WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode ORDER BY l_shipmode""",
    }


COMPARED = {
    # Averages are the sums over the counts, and each engine rounds them in its way.
    "q01": "l_returnflag, l_linestatus, sum_qty, sum_base_price, sum_disc_price, sum_charge, count_order",
    "q06": "revenue",
    "q12": "l_shipmode, high_line_count, low_line_count",
}


def compared(lineitem: str, orders: str) -> dict[str, str]:
    """The queries without what engines round differently."""
    return {
        name: f"SELECT {COMPARED[name]} FROM ({sql}) AS found ORDER BY {COMPARED[name]}"
        for name, sql in queries(lineitem, orders).items()
    }
