"""Readers of several catalogs: a name is looked up in its own catalog, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.multi_catalog import together
from dbt_arctic.catalog.once import Once
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from tests.unit.catalog.conftest import HandmadeWarehouse

PACKAGE = Path(__file__).parents[3] / "dbt_arctic"
READS = {
    *("list_schemas", "list_relations", "list_names", "load_table", "load_view", "columns_at", "read_rows"),
    *("data_files", "stored_files", "placed_files", "has_views", "needs_spark"),
}


def test_a_name_is_read_in_its_own_catalog(handmade: HandmadeWarehouse, tmp_path: Path) -> None:
    handmade.table("a", "orders")
    full, empty = EmbeddedCatalog("lake", handmade.folder), EmbeddedCatalog("archive", tmp_path / "none")
    catalog = together({"lake": full, "archive": empty})
    assert catalog.load_table("a", "orders") is not None, "the first one is that of names without a catalog"
    for reader in (catalog, catalog.of(Name("archive", "a", "orders")), Once(catalog)):
        assert reader.of(Name("lake", "a", "orders")).load_table("a", "orders") is not None
        assert reader.of(Name("LAKE", "a", "orders")).load_table("a", "orders") is not None
        assert reader.of(Name("archive", "a", "orders")).load_table("a", "orders") is None
        with pytest.raises(ConfigError, match="no catalog other"):
            reader.of(Name("other", "a", "orders"))


def test_the_only_catalog_is_that_of_every_name(handmade: HandmadeWarehouse) -> None:
    only = EmbeddedCatalog("lake", handmade.folder)
    assert together({"lake": only}) is only
    assert only.of(Name("other", "a", "orders")) is only


def test_a_snapshot_of_the_catalogs_reads_each_once(handmade: HandmadeWarehouse, tmp_path: Path) -> None:
    handmade.table("a", "orders")
    catalogs = {
        "archive": EmbeddedCatalog("archive", tmp_path),
        "lake": EmbeddedCatalog("lake", handmade.folder),
    }
    look = Once(together(catalogs))
    lake = Name("lake", "a", "orders")
    assert look.of(lake) is look.of(lake) is look.of(Name("archive", "a", "b")).of(lake)
    assert look.of(Name("archive", "a", "b")) is look
    before = look.of(lake).load_table("a", "orders")
    handmade.table("a", "orders", location="/elsewhere")
    assert look.of(lake).load_table("a", "orders") is before is not None


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE / "catalog"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_module_reads_without_choosing_the_catalog(path: Path) -> None:
    found = list(_without_choice(ast.parse(path.read_text(encoding="utf-8"))))
    assert not found, (
        f"lines {found}: write catalog.of(name).load_table(..) in place of catalog.load_table(..)"
    )


def test_the_rule_sees_a_read_without_a_choice() -> None:
    bad = "catalog.load_table(a, b)\ncontext.catalog.needs_spark\nself._catalog.load_view(a, b)"
    good = "catalog.of(name).load_table(a, b)\nreader.load_view(a, b)\ncatalog.list_files(folder)"
    assert sorted(_without_choice(ast.parse(bad))) == [1, 2, 3]
    assert list(_without_choice(ast.parse(good))) == []


def _without_choice(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in READS:
            of = node.value
            name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
            if name in ("catalog", "_catalog"):
                yield node.lineno
