"""The shop's state between rounds of changes: what each order, line, part or customer is now.

Generated tables stay in Arrow; only rows that a round touches become Python values, so that
the cost of a round follows its changes. This module does not decide what changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]


class Rows:
    """The rows of one table, grouped by one column; changed groups lie over the generated ones."""

    def __init__(self, generated: pa.Table, group_by: str) -> None:
        self._generated = generated
        self._group_by = group_by
        self._changed: dict[int, list[Row]] = {}

    def groups(self) -> list[int]:
        """Every value of the grouping column in the generated table, ascending."""
        return sorted(pc.unique(self._generated[self._group_by]).to_pylist())

    def read(self, values: Iterable[int]) -> dict[int, list[Row]]:
        """The current rows of each requested group; a group without rows is an empty list."""
        wanted = list(values)
        found: dict[int, list[Row]] = {value: [] for value in wanted}
        unchanged = pa.array([value for value in wanted if value not in self._changed], pa.int64())
        matching = self._generated.filter(pc.is_in(self._generated[self._group_by], value_set=unchanged))
        for row in matching.to_pylist():
            found[row[self._group_by]].append(row)
        for value in wanted:
            if value in self._changed:
                found[value] = [dict(row) for row in self._changed[value]]
        return found

    def write(self, value: int, rows: Sequence[Row]) -> None:
        """Make ``rows`` the present rows of a group."""
        self._changed[value] = [dict(row) for row in rows]


class Shop:
    """Everything the source systems hold now."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self.orders = Rows(tables["orders"], "o_orderkey")
        self.lines = Rows(tables["lineitem"], "l_orderkey")
        self.customers = Rows(tables["customer"], "c_custkey")
        self.suppliers = Rows(tables["supplier"], "s_suppkey")
        self.parts = Rows(tables["part"], "p_partkey")
        self.part_supplies = Rows(tables["partsupp"], "ps_partkey")
        by_date = tables["orders"].sort_by([("o_orderdate", "ascending"), ("o_orderkey", "ascending")])
        self.live: dict[int, None] = dict.fromkeys(by_date["o_orderkey"].to_pylist())
        """Keys of the orders that exist, the oldest first, then in order of arrival."""
        self.cancelled: dict[int, tuple[Row, list[Row]]] = {}
        """Deleted orders with their lines, as they were."""
        self.orders_made = 0
