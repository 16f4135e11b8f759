"""Commands about all tables leave out those that another client calls otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.cli import clean, expire
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.maintenance.inventory import Inventory
from dbt_arctic.maintenance.leftovers import Leftovers, Removal, Retention


def keyed(catalog: str, name: str) -> KeyedTable:
    name_parts, columns = Name(catalog, "shop", name), (Column("id", "bigint"),)
    return KeyedTable(name_parts, Generation(2, "b", "c"), ("id",), Layout(2, ("id",)), columns)


OWN, THEIRS = keyed("archive", "own"), keyed("archive", "theirs")


def inventory_of(catalog: str) -> Inventory:
    views = {
        "own": ViewState("shop", "own", {}, (), merge_on_read(OWN)),
        "theirs": ViewState("shop", "theirs", {}, (), merge_on_read(keyed("lake", "theirs"))),
    }
    return Inventory(catalog, "shop", {}, views, {}, {}, {"own": OWN, "theirs": THEIRS}, {})


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    catalog = together({"lake": cast(Any, OneCatalog()), "archive": cast(Any, OneCatalog())})
    for command in (clean, expire):
        monkeypatch.setattr(command, "take_inventory", lambda of, name, schema: inventory_of(name))
    monkeypatch.setattr(expire, "chosen_schemas", lambda *chosen: ["shop"])
    return SimpleNamespace(
        catalog=catalog,
        context=SimpleNamespace(now_ms=lambda: 0),
        models={},
        name=lambda text: Name("archive", "shop", text),
    )


def test_clean_removes_nothing_of_them(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    removals = [Removal("previous", side, "") for table in (OWN, THEIRS) for side in table.side_tables]
    monkeypatch.setattr(clean, "find_leftovers", lambda *given: Leftovers(removals))
    found = clean._find(session, "archive", ["shop"], Retention())
    assert [one.target for one in found.removals] == list(OWN.side_tables)


def test_expire_leaves_them_out(session: Any) -> None:
    assert expire._chosen(session, (), (), everything=False) == [OWN.name]
