"""Which versions of a table are needed: by consumers in every catalog, and by what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import CatalogReader, RelationEntry, Snapshot, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.catalog.once import Once
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Consumed, encode_consumed
from dbt_arctic.maintenance import overview
from dbt_arctic.maintenance.claims import Claim, find_claims
from dbt_arctic.maintenance.consumers import can_continue, find_consumers
from dbt_arctic.maintenance.expire_plan import plan_plain

OF_ORDERS = Consumed("change-1", "1.5.5")
ORDERS = KeyedTable(
    Name("lake", "shop", "orders"),
    Generation(1, "base-1", "change-1"),
    ("id",),
    Layout(2, ("id",)),
    (Column("id", "bigint"),),
)


@dataclass
class Catalog(OneCatalog):
    """Plain tables in the schema ``shop``, each with what its only commit has consumed, and views of clones.

    :param problem: why nothing of it can be read.
    """

    consumed: dict[str, dict[str, Consumed]] = field(default_factory=dict)
    clones: dict[str, ViewState] = field(default_factory=dict)
    problem: str = ""

    def list_schemas(self) -> list[str]:
        if self.problem:
            raise CatalogUnavailable("the catalog is down", where="db", why=self.problem, fix="")
        return ["shop"]

    def list_names(self, schema: str) -> list[RelationEntry]:
        tables = [RelationEntry(schema, name, "table") for name in self.consumed]
        return [*tables, *(RelationEntry(schema, name, "view") for name in self.clones)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        if name not in self.consumed:
            return None
        commit = Snapshot(1, None, 1, 1, "append", {"arctic.consumed": encode_consumed(self.consumed[name])})
        return TableState(schema, name, f"file:/{name}", {}, (), (commit,), 1, {"main": 1})

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.clones.get(name)


@pytest.fixture
def lake() -> Catalog:
    return Catalog(consumed={"near": {"lake.shop.orders": OF_ORDERS}})


@pytest.fixture
def archive() -> Catalog:
    # Its project calls the catalog of the upstream otherwise; the id of the table is the same.
    read = {"theirs.shop.orders": OF_ORDERS}
    return Catalog(consumed={"far": read, "near": {"theirs.shop.other": Consumed("change-9", "1.1.1")}})


@pytest.fixture
def catalog(lake: Catalog, archive: Catalog) -> CatalogReader:
    return together({"lake": lake, "Archive": archive})  # type: ignore[dict-item]


def clone_of(source: str, properties: Mapping[str, str] | None = None) -> ViewState:
    made = {**(properties or {}), "arctic.clone": f'["lake", "shop", "{source}"]'}
    return ViewState("shop", "view", made, (), "SELECT 1")


def test_consumers_in_other_catalogs_hold_versions(catalog: CatalogReader) -> None:
    near, far = Claim("lake.shop.near", OF_ORDERS), Claim("Archive.shop.far", OF_ORDERS)
    for reader in (catalog, Once(catalog)):
        assert find_claims(reader, "lake").of("change-1") == [near, far]
        assert find_claims(reader, "Archive").of("change-1") == [far, near]
    released = frozenset({"Archive.shop.far"})
    assert find_claims(catalog, "lake").of("change-1", released) == [near]


def test_with_one_catalog_only_that_one_is_read(lake: Catalog) -> None:
    assert list(find_claims(lake, "lake").by_id) == ["change-1"]  # type: ignore[arg-type]


def test_a_catalog_that_cannot_be_read_holds_every_version(
    catalog: CatalogReader, lake: Catalog, archive: Catalog
) -> None:
    archive.problem = "connection refused"
    claims = find_claims(catalog, "lake")
    assert claims.unknown == {"the catalog Archive": "connection refused"}
    state = lake.load_table("shop", "near")
    assert state is not None
    plan = plan_plain(Name("lake", "shop", "near"), state, claims, before_ms=10)
    assert plan.expired == 0
    assert plan.holds[0].holder == "the catalog Archive"
    with pytest.raises(CatalogUnavailable, match="the catalog is down"):
        find_claims(catalog, "Archive")


def test_copies_of_rows_are_found_in_other_catalogs(catalog: CatalogReader, archive: Catalog) -> None:
    assert [one.name for one in find_consumers(catalog, ORDERS)] == ["Archive.shop.far", "lake.shop.near"]
    archive.problem = "connection refused"
    unknown, known = sorted(find_consumers(catalog, ORDERS), key=lambda one: one.name, reverse=True)
    assert unknown.name == "the catalog Archive"
    assert unknown.why == "it cannot be read: connection refused"
    assert known.name == "lake.shop.near"


def test_clones_of_clones_hold_copies_before_and_after_their_first_write() -> None:
    """A keyed table keeps the property of the clone in whose place it is; another source is another table."""
    written = replace(ORDERS, name=Name("lake", "shop", "written")).to_properties()
    clones = {
        "shown": clone_of("orders"),
        "written": clone_of("shown", written),
        "again": clone_of("written"),
        "other": clone_of("near"),
        "circle": clone_of("circle"),
    }
    found = find_consumers(Catalog(consumed={}, clones=clones), ORDERS)
    assert [(one.name, one.is_clone, one.began_as_clone, bool(one.why)) for one in found] == [
        ("lake.shop.again", True, False, False),
        ("lake.shop.shown", True, False, False),
        ("lake.shop.written", False, True, True),
    ]
    assert all(can_continue(Catalog(), ORDERS, one) for one in found)


def test_tables_of_several_catalogs_are_looked_at_in_their_own(
    catalog: CatalogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[tuple[str, tuple[str, ...], frozenset[Name]]] = []

    def overview_of(
        of: Any, catalog_name: str, schemas: Sequence[str], now: int, settings: Any, *more: Any
    ) -> Any:
        looked.append((catalog_name, tuple(schemas), more[0]))
        return [overview.TableOverview(name, problem="") for name in sorted(more[0])]

    monkeypatch.setattr(overview, "overview_of", overview_of)
    far, near, other = (
        Name(*text.split(".")) for text in ("Archive.shop.far", "lake.shop.near", "lake.a.near")
    )
    found = overview.overview_of_tables(catalog, frozenset({near, far, other}), 0, lambda *_: None)  # type: ignore[arg-type,return-value]
    assert [seen.name for seen in found] == [far, other, near]
    assert looked == [
        ("Archive", ("shop",), frozenset({far})),
        ("lake", ("a", "shop"), frozenset({near, other})),
    ]
