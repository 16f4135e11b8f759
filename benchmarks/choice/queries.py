"""Queries as analysts write them, over the tables of TPC-H, and the key of each."""

from __future__ import annotations

_CHANNELS = """channels AS (
  SELECT l_shipmode AS channel, o_orderpriority AS priority, year(o_orderdate) AS year,
    sum(l_extendedprice) AS revenue, count(*) AS line_items
  FROM lineitem JOIN orders ON l_orderkey = o_orderkey
  GROUP BY l_shipmode, o_orderpriority, year(o_orderdate)
)"""

_WITH_KEYS: dict[str, tuple[tuple[str, ...], str]] = {
    "last_order": (
        ("o_custkey",),
        """SELECT o_custkey, o_orderkey, o_orderdate, o_totalprice FROM (
  SELECT *, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate DESC, o_orderkey DESC) AS place
  FROM orders) WHERE place = 1""",
    ),
    "days_between_orders": (
        ("o_orderkey",),
        """SELECT o_orderkey, o_custkey, datediff(o_orderdate,
  lag(o_orderdate) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey)) AS days FROM orders""",
    ),
    "running_revenue": (
        ("month",),
        """SELECT month, revenue, sum(revenue) OVER (ORDER BY month) AS so_far FROM (
  SELECT trunc(o_orderdate, 'MM') AS month, sum(o_totalprice) AS revenue FROM orders GROUP BY 1)""",
    ),
    "share_of_total": (
        ("o_orderpriority",),
        """SELECT o_orderpriority, sum(o_totalprice) AS revenue,
  sum(o_totalprice) / (SELECT sum(o_totalprice) FROM orders) AS share FROM orders GROUP BY o_orderpriority""",
    ),
    "large_customers": (
        ("o_custkey",),
        """SELECT o_custkey, sum(o_totalprice) AS revenue FROM orders GROUP BY o_custkey
HAVING sum(o_totalprice) > (SELECT sum(o_totalprice) / 5000 FROM orders)""",
    ),
    "above_average": (
        ("o_orderkey",),
        """SELECT o_orderkey, o_totalprice FROM orders
WHERE o_totalprice > (SELECT avg(o_totalprice) * 2 FROM orders)""",
    ),
    "above_average_by_status": (
        ("o_orderstatus",),
        """SELECT o_orderstatus, count(*) AS orders FROM orders
WHERE o_totalprice > (SELECT avg(o_totalprice) FROM orders) GROUP BY o_orderstatus""",
    ),
    "last_days": (
        ("o_orderpriority",),
        """SELECT o_orderpriority, count(*) AS orders, sum(o_totalprice) AS revenue FROM orders
WHERE o_orderdate > (SELECT date_sub(max(o_orderdate), 90) FROM orders) GROUP BY o_orderpriority""",
    ),
    "this_year_beside_last": (
        ("channel", "priority", "year"),
        f"""WITH {_CHANNELS}
SELECT a.channel, a.priority, a.year, a.revenue, b.revenue AS last_year, a.line_items - b.line_items AS more
FROM channels AS a LEFT JOIN channels AS b
  ON b.channel = a.channel AND b.priority = a.priority AND b.year = a.year - 1""",
    ),
    "best_channel": (
        ("year", "place"),
        f"""WITH {_CHANNELS}
SELECT year, place, channel, priority, revenue FROM (
  SELECT *, row_number() OVER (PARTITION BY year ORDER BY revenue DESC, channel, priority) AS place
  FROM channels) WHERE place <= 3""",
    ),
    "customers_by_orders": (
        ("orders",),
        """SELECT orders, count(*) AS customers, sum(revenue) AS revenue FROM (
  SELECT c_custkey, count(o_orderkey) AS orders, sum(o_totalprice) AS revenue
  FROM customer LEFT JOIN orders ON o_custkey = c_custkey GROUP BY c_custkey) GROUP BY orders""",
    ),
    "buyers_by_month": (
        ("month",),
        """SELECT trunc(o_orderdate, 'MM') AS month, count(DISTINCT o_custkey) AS buyers, count(*) AS orders
FROM orders GROUP BY 1""",
    ),
    "first_orders": (
        ("o_custkey",),
        """SELECT o_custkey, min(o_orderdate) AS first, max(o_orderdate) AS last, count(*) AS orders
FROM orders GROUP BY o_custkey""",
    ),
    "order_lines": (
        ("l_orderkey", "l_linenumber"),
        """SELECT l_orderkey, l_linenumber, o_custkey, c_name, n_name, o_orderdate, l_extendedprice
FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
LEFT JOIN nation ON c_nationkey = n_nationkey""",
    ),
    "never_ordered": (
        ("c_custkey",),
        """SELECT c_custkey, c_name FROM customer
WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)""",
    ),
    "totals_of_levels": (
        ("nation", "segment", "level"),
        """SELECT coalesce(n_name, 'all') AS nation, coalesce(c_mktsegment, 'all') AS segment,
  grouping_id() AS level, sum(o_totalprice) AS revenue, count(*) AS orders
FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey
GROUP BY ROLLUP (n_name, c_mktsegment)""",
    ),
    "top_parts": (
        ("l_partkey",),
        """SELECT l_partkey, sum(l_quantity) AS quantity FROM lineitem GROUP BY l_partkey
ORDER BY quantity DESC, l_partkey LIMIT 100""",
    ),
    "rank_in_nation": (
        ("c_custkey",),
        """SELECT c_custkey, n_name, revenue, rank() OVER (PARTITION BY n_name ORDER BY revenue DESC) AS r
FROM (SELECT c_custkey, n_name, sum(o_totalprice) AS revenue FROM customer
  JOIN nation ON c_nationkey = n_nationkey JOIN orders ON o_custkey = c_custkey GROUP BY 1, 2)""",
    ),
    "events": (
        ("kind", "id"),
        """SELECT 'order' AS kind, o_orderkey * 10 AS id, o_orderdate AS at FROM orders
UNION ALL SELECT 'line', l_orderkey * 10 + l_linenumber, l_shipdate FROM lineitem WHERE l_returnflag = 'R'""",
    ),
    "late_lines_by_supplier": (
        ("s_suppkey",),
        """SELECT s_suppkey, s_name, count(l_orderkey) AS late, coalesce(sum(l_quantity), 0) AS quantity
FROM supplier LEFT JOIN lineitem ON l_suppkey = s_suppkey AND l_receiptdate > l_commitdate
GROUP BY s_suppkey, s_name""",
    ),
}

QUERIES = {name: sql for name, (_, sql) in _WITH_KEYS.items()}
KEYS = {name: key for name, (key, _) in _WITH_KEYS.items()}
