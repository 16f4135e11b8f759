"""A copy of the catalog and then of the warehouse is a version of every table, whenever it is made."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.followed_pages import form
from tests.pages import HOW_TO, Block, blocks

PAGE = HOW_TO / "back-up-and-restore.md"
ORDERS = """{{ config(materialized='incremental', unique_key='order_id', buckets=1) }}
select order_id, status from {{ source('raw', 'raw_orders') }}"""
TOTALS = """{{ config(materialized='materialized_view', unique_key='status', buckets=1) }}
select status, count(*) as n from {{ ref('orders') }} group by status"""
BEFORE, AFTER = [(1, "open"), (2, "open")], [(1, "open"), (2, "paid"), (3, "open")]
TABLES = ("orders", "totals")


def block(part: str) -> Block:
    (found,) = (one for one in blocks(PAGE) if part in one.text)
    return found


class Backups:
    """The copies of a warehouse, and the place from which they were made."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop, self.folder = shop, folder
        self.files = folder / "lake"
        self.catalogs: list[Path] = []
        self.script = folder / "back_up_catalog.py"
        self.script.write_text(block("import sqlite3").text, encoding="utf-8")

    def copy_catalog(self) -> None:
        self.catalogs.append(self.folder / f"catalog-{len(self.catalogs)}.db")
        self._copy(self.shop.warehouse / "catalog.db", self.catalogs[-1])

    def copy_files(self, name: str = "") -> None:
        """As ``rsync -a --exclude 'catalog.db*'``, of this project's tables."""
        shutil.copytree(self.shop.warehouse / self.shop.schema, self.files / name, dirs_exist_ok=True)

    def restore(self, catalog: Path, name: str = "") -> None:
        """Spark has the catalog's file open here, so its contents are replaced."""
        there = self.shop.warehouse / self.shop.schema
        shutil.rmtree(there)
        shutil.copytree(self.files / name, there)
        self._copy(catalog, self.shop.warehouse / "catalog.db")

    def _copy(self, source: Path, target: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(self.script), str(source), str(target)])
            runpy.run_path(str(self.script))


def test_a_warehouse_is_backed_up_while_a_run_writes_and_restored(
    shop: Shop, type_in: Terminal, tmp_path: Path
) -> None:
    shop.source("raw_orders", "select 1 as order_id, 'open' as status union all select 2, 'open'")
    shop.model("orders", ORDERS)
    shop.model("totals", TOTALS)
    shop.dbt("run")
    shop.source("raw_orders", "select 2 as order_id, 'paid' as status union all select 3, 'open'")
    backups = Backups(shop, tmp_path)
    backups.copy_files("too early")
    run = shop.script.run

    def with_backup(sql: str, execute: Any) -> None:
        backups.copy_catalog()
        run(sql, execute)

    shop.script.run = with_backup  # type: ignore[method-assign]
    shop.dbt("run")
    backups.copy_catalog()
    shop.script.run = run  # type: ignore[method-assign]
    type_in("compact", *TABLES, "--kind", "major")
    backups.copy_files()
    assert len(backups.catalogs) > 5

    def shown(table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row.values()) for row in type_in.json("show", table))

    def check() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        assert type_in.json("verify")["findings"] == []
        return shown("orders"), shown("totals")

    found = []
    for catalog in backups.catalogs:
        backups.restore(catalog)
        found.append(check())
    old, new = [("open", 2)], [("open", 2), ("paid", 1)]
    versions = [(BEFORE, old), (AFTER, old), (AFTER, new)]
    assert [one for at, one in enumerate(found) if one not in found[:at]] == versions, "in this order"

    # The next run goes on from a version in the middle.
    backups.restore(backups.catalogs[found.index(versions[1])])
    printed = type_in("verify", *TABLES[:1])
    shop.dbt("run")
    assert check() == versions[-1]
    shown_on_page = block("dbt-arctic verify").commands
    assert [form(line, numbers=False) for line in printed.splitlines()] == [
        form(shown_on_page[0].shown, numbers=False)
    ]
    columns = type_in(*shown_on_page[1].arguments).splitlines()
    assert [line.split() for line in columns[:2]] == [
        line.split() for line in shown_on_page[1].shown.splitlines()[:2]
    ]

    # In the other order, the catalog refers to files that the copy lacks.
    backups.restore(backups.catalogs[-1], "too early")
    assert type_in.json("verify", code=1)["findings"] != []
    backups.restore(backups.catalogs[0])
