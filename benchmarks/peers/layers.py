"""Three layers: ODS (orders as they come), DWD (with each customer's region), DWS (sums by region and day).

Pure text, and the interface of a pipeline of them. ``layering.py`` has the code that users of each product
would write.
"""

from __future__ import annotations

from typing import Protocol

from benchmarks.peers.table import Table
from benchmarks.peers.workload import CUSTOMERS

REGIONS = 25
DWD = ("id", "customer", "region", "ordered_on", "quantity", "amount", "version")
SUMS = {"amount": "DECIMAL(28,2)", "quantity": "BIGINT", "orders": "BIGINT"}
DWS_KEY = ("region", "ordered_on")


class Pipeline(Protocol):
    """Built once, then refreshed layer by layer after each round."""

    def build(self, rows: str, customers: str) -> None: ...

    def ods(self, changes: str) -> None: ...

    def dwd(self) -> None: ...

    def dws(self) -> None: ...

    def relations(self) -> tuple[str, str]:
        """DWD and DWS, to be read."""
        ...


def dwd_table(buckets: int) -> Table:
    return Table("dwd", ("id",), DWD, buckets, "id", images=True)


def dws_table() -> Table:
    """Thousands of rows: in one bucket, as every product that has buckets advises."""
    return Table("dws", DWS_KEY, (*DWS_KEY, *SUMS), 1, "region")


def customers_table() -> Table:
    return Table("customers", ("customer",), ("customer", "region", "version"), 1, "customer")


def customers_rows() -> str:
    return f"""SELECT id AS customer, CAST(id % {REGIONS} AS INTEGER) AS region, CAST(0 AS INTEGER) AS version
FROM range(0, {CUSTOMERS}) AS ids(id)"""


def dwd_sql(orders: str, customers: str, more: str = "") -> str:
    """:param more: additional columns of the orders."""
    return f"""SELECT o.id, o.customer, c.region, o.ordered_on, o.quantity,
  CAST(o.price * o.quantity AS DECIMAL(18,2)) AS amount, o.version{more}
FROM {orders} AS o JOIN {customers} AS c ON o.customer = c.customer"""


def dws_sql(dwd: str, sign: str = "") -> str:
    """:param sign: a column that says whether a row comes or goes: 1 or -1."""
    times = f"{sign} * " if sign else ""
    count = f"sum({sign})" if sign else "count(*)"
    return f"""SELECT region, ordered_on, sum({times}amount) AS amount, sum({times}quantity) AS quantity,
  {count} AS orders FROM {dwd} GROUP BY region, ordered_on"""


def checks(dwd: str, dws: str) -> dict[str, str]:
    return {
        "dwd": f"SELECT count(*), sum(id), sum(amount), sum(region), sum(quantity) FROM {dwd} AS found",
        "dws": f"SELECT count(*), sum(amount), sum(quantity), sum(orders), sum(region * orders) "
        f"FROM {dws} AS found",
    }
