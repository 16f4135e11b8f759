"""Where the rows of a clone are, and what stands under a name while a swap is cut off."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dbt_arctic.catalog.api import (
    CatalogColumn,
    DataFile,
    RelationEntry,
    Snapshot,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.errors import ConfigError, UnknownRelation
from dbt_arctic.keyed.clone_origin import PROPERTY_CLONE, began_as
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.adopt import find_unfinished
from dbt_arctic.refresh import clone, replacement

CONSUMED = '{"lake.prod.orders": ["an-id", "7"]}'


@dataclass
class Catalog(OneCatalog):
    """Names and what they are: a table's snapshot, or a view's properties."""

    tables: dict[tuple[str, str], int] = field(default_factory=dict)
    views: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def list_schemas(self) -> list[str]:
        return sorted({schema for schema, _ in [*self.tables, *self.views]})

    def list_names(self, schema: str) -> list[RelationEntry]:
        tables = [RelationEntry(at, name, "table") for at, name in self.tables if at == schema]
        return [*tables, *(RelationEntry(at, name, "view") for at, name in self.views if at == schema)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        snapshot = self.tables.get((schema, name))
        if snapshot is None:
            return None
        made = Snapshot(snapshot, None, 1, 0, "append", {"arctic.consumed": CONSUMED})
        columns = (CatalogColumn("id", "bigint"), CatalogColumn("a`b", "string"))
        return TableState(schema, name, "file:/t", {}, columns, (made,), snapshot, {"main": snapshot})

    def load_view(self, schema: str, name: str) -> ViewState | None:
        properties = self.views.get((schema, name))
        return None if properties is None else ViewState(schema, name, properties, (), "")

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        return {"id": CatalogColumn("id", "bigint"), "a`b": CatalogColumn("a`b", "string")}

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        return []


def name(schema: str, identifier: str = "orders") -> Name:
    return Name("lake", schema, identifier)


def cloned_from(schema: str) -> dict[str, str]:
    return {PROPERTY_CLONE: f'["lake", "{schema}", "orders"]', "arctic.protocol": ""}


def test_a_clone_of_a_table_is_marked_and_one_of_a_view_is_an_ordinary_view() -> None:
    catalog = Catalog({("prod", "orders"): 7}, {("prod", "seen"): {}, ("ci", "orders"): cloned_from("prod")})
    assert clone.property_for(catalog, name("prod"), "m") == '["lake", "prod", "orders"]'
    assert clone.property_for(catalog, name("ci"), "m") == '["lake", "ci", "orders"]'
    assert clone.property_for(catalog, name("prod", "seen"), "m") == ""
    with pytest.raises(UnknownRelation, match=r"lake\.prod\.gone does not exist"):
        clone.property_for(catalog, name("prod", "gone"), "m")


def test_a_clone_of_a_clone_leads_to_the_table() -> None:
    catalog = Catalog(
        {("prod", "orders"): 7},
        {("ci", "orders"): cloned_from("prod"), ("mine", "orders"): cloned_from("ci")},
    )
    assert clone.origin(catalog, name("mine")) == name("prod")
    assert clone.origin(catalog, name("prod")) == name("prod")
    rows = clone.cloned_rows(catalog, name("mine"), "orders")
    assert rows.sql == "SELECT `id`, `a``b`\nFROM `lake`.`prod`.`orders` VERSION AS OF 7"
    assert rows.consumed["lake.prod.orders"].version == "7"


def test_a_clone_whose_source_is_gone_says_so() -> None:
    catalog = Catalog({}, {("ci", "orders"): cloned_from("prod")})
    with pytest.raises(UnknownRelation, match="--full-refresh --select orders"):
        clone.cloned_rows(catalog, name("ci"), "orders")


def test_clones_in_a_circle_are_an_error() -> None:
    catalog = Catalog({}, {("a", "orders"): cloned_from("b"), ("b", "orders"): cloned_from("a")})
    with pytest.raises(UnknownRelation, match="a clone of itself"):
        clone.origin(catalog, name("a"))


def test_a_keyed_table_that_began_as_a_clone_is_none_any_more() -> None:
    properties = {**cloned_from("prod"), "arctic.protocol": "1"}
    assert not clone.is_clone(properties)
    assert began_as(properties) == name("prod")


def test_a_pull_from_another_table_than_the_last_one_is_refused() -> None:
    rows = clone.ClonedRows(name("prod"), "", {})
    clone.reject_other_upstreams(rows, [], "orders")
    with pytest.raises(ConfigError, match=r"the changes in lake\.raw\.orders"):
        clone.reject_other_upstreams(rows, [name("raw")], "orders")


def test_what_an_interrupted_swap_left_stands_for_a_name_that_is_free() -> None:
    new, old = f"orders__arctic_new_{1:019}", f"orders__arctic_old_{2:019}"
    of_a_user = "orders__arctic_new_0"
    catalog = Catalog({("ci", of_a_user): 1, ("ci", new): 1}, {("ci", old): {}})
    assert replacement.standing(catalog, name("ci")) == name("ci", new)
    assert replacement.standing_kind(catalog, name("ci")) == "table"
    catalog.views["ci", "orders"] = cloned_from("prod")
    assert replacement.standing(catalog, name("ci")) == name("ci")
    assert replacement.kind_of(catalog, name("ci")) == "clone"
    assert replacement.standing_kind(catalog, name("ci")) == "clone"
    assert replacement.standing(catalog, name("ci", "other")) == name("ci", "other")
    assert replacement.standing_kind(catalog, name("ci", "other")) is None


def test_a_name_is_read_once_as_a_table_and_once_as_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model asks in each run, and a catalog that is not local answers each read by a request."""
    catalog = Catalog(views={("ci", "orders"): cloned_from("prod")})
    reads: list[str] = []
    for kind in ("load_table", "load_view"):
        read = getattr(catalog, kind)
        monkeypatch.setattr(
            catalog, kind, lambda *at, kind=kind, read=read: (reads.append(kind), read(*at))[1]
        )
    assert replacement.standing_kind(catalog, name("ci")) == "clone"
    assert reads == ["load_table", "load_view"]
    reads.clear()
    assert find_unfinished(catalog, name("ci")) is None
    assert reads == ["load_table", "load_view"]


def test_a_clone_of_another_project_leads_to_nothing_of_this_one() -> None:
    ours = Catalog({("prod", "orders"): 7})
    theirs = Catalog({("prod", "orders"): 8}, {("ci", "orders"): cloned_from("prod")})
    catalog = together({"lake": ours, "archive": theirs})
    assert clone.origin(catalog, name("prod")) == name("prod")
    assert clone.origin(catalog, Name("archive", "prod", "orders")).catalog == "archive"
    with pytest.raises(ConfigError, match=r"view archive\.ci\.orders reads lake\.prod\.orders"):
        clone.origin(catalog, Name("archive", "ci", "orders"))
    # It is what they had read before, by the name that they have for their catalog.
    read = {"lake.prod.orders": Consumed("an-id", "7")}
    assert clone.cloned_from(catalog, Name("archive", "ci", "orders"), read) is None
    alone = Catalog({("prod", "orders"): 8}, {("ci", "orders"): cloned_from("prod")})
    assert clone.cloned_from(alone, name("ci"), read) == (name("prod"), read["lake.prod.orders"])
    # This project may clone what it reads.
    ours.views["ci", "orders"] = {
        PROPERTY_CLONE: '["archive", "prod", "orders"]',
        "arctic.protocol": "",
    }
    assert clone.origin(catalog, name("ci")) == Name("archive", "prod", "orders")
    assert clone.cloned_rows(catalog, name("ci"), "m").sql.endswith(
        "FROM `archive`.`prod`.`orders` VERSION AS OF 8"
    )
