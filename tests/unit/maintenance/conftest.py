"""Keyed tables as values: their logs are given commit by commit, without a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import CatalogColumn, Snapshot, TableState, ViewState
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.maintenance.inventory import Inventory

COLUMNS = (Column("id", "bigint"), Column("amount", "int"))
SYSTEM = (
    CatalogColumn("_action", "string"),
    CatalogColumn("_offset", "bigint"),
    CatalogColumn("_txn", "bigint"),
)


def commits(*texts: str, first_ms: int = 1000, start: int = 1) -> tuple[Snapshot, ...]:
    """Oldest first, a second apart. ``b`` the first commit, ``a7`` appends the transaction 7, ``m7,8`` merges
    two, ``d`` drops whole files, ``r`` rewrites files, ``x`` is of another program; ``.`` is an expired
    commit.
    """
    made = []
    operations = {
        "b": "append",
        "a": "append",
        "m": "overwrite",
        "d": "delete",
        "r": "replace",
        "x": "append",
    }
    for at, text in enumerate(texts):
        kind, rest = text[0], text[1:]
        if kind == ".":
            continue
        summary: dict[str, str] = {"added-records": "1"}
        if kind == "b":
            summary["arctic.run"] = "invocation:model.orders"
        if kind == "a":
            summary["arctic.txn"] = rest
        if kind == "m":
            summary["arctic.merged"] = f"[{rest}]"
        parent = None if at == 0 else start + at - 1
        made.append(Snapshot(start + at, parent, at + 1, first_ms + at * 1000, operations[kind], summary))
    return tuple(made)


def state(
    name: str,
    snapshots: tuple[Snapshot, ...] = (),
    properties: Mapping[str, str] | None = None,
    **changes: Any,
) -> TableState:
    current = snapshots[-1].snapshot_id if snapshots else None
    branches = {} if current is None else {"main": current}
    columns = tuple(CatalogColumn(column.name, column.type) for column in COLUMNS)
    made = TableState("shop", name, f"/{name}", properties or {}, columns, snapshots, current, branches)
    return replace(made, **changes)


class Orders:
    """A keyed table ``orders`` of a generation, its sides and its view."""

    def __init__(self, generation: int = 1, previous: int | None = None) -> None:
        self.table = KeyedTable(
            name=Name("lake", "shop", "orders"),
            generation=Generation(generation, f"base-{generation}", f"change-{generation}"),
            key=("id",),
            layout=Layout(2, "id", (), ("id",)),
            columns=COLUMNS,
            previous=Generation(previous, f"base-{previous}", f"change-{previous}") if previous else None,
            root="orders",
        )

    @property
    def view(self) -> ViewState:
        columns = tuple(CatalogColumn(column.name, column.type) for column in COLUMNS)
        return ViewState("shop", "orders", self.table.to_properties(), columns, merge_on_read(self.table))

    def side(self, role: str, generation: int, *log: str, created_ms: int = 0, **changes: Any) -> TableState:
        properties = {
            "arctic.of": "lake.shop.orders",
            "arctic.id": f"{role}-{generation}",
            "arctic.created-ms": str(created_ms),
            **self.table.side_properties(),
        }
        made = state(f"orders__{role}_{generation}", commits(*(log or ("b",))), properties, **changes)
        return made if role == "base" else replace(made, columns=(*made.columns, *SYSTEM))

    def sides(self, *generations: int, created_ms: int = 0) -> list[TableState]:
        return [
            self.side(role, number, created_ms=created_ms)
            for number in generations
            for role in ("base", "change")
        ]

    def inventory(self, *tables: TableState, shown: bool = True, **changes: Any) -> Inventory:
        made = Inventory(
            catalog="lake",
            schema="shop",
            tables={table.name: table for table in tables},
            views={"orders": self.view} if shown else {},
            damaged_tables={},
            damaged_views={},
            keyed={"orders": self.table} if shown else {},
            invalid_views={},
        )
        return replace(made, **changes)


@pytest.fixture
def orders() -> Orders:
    return Orders()
