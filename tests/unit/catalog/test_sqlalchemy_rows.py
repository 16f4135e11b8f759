"""A JDBC catalog in a database server: read as the embedded one, whose rows are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_arctic.catalog.api import CatalogReader, RelationEntry
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.jdbc import JdbcCatalog
from dbt_arctic.catalog.jdbc_rows import JdbcRows, Row
from dbt_arctic.catalog.sqlalchemy_rows import SqlAlchemyRows
from dbt_arctic.errors import CatalogUnavailable
from tests.unit.catalog.conftest import HandmadeWarehouse


def in_database(file: Path, *, wants_views: bool = True) -> JdbcCatalog:
    """SQLAlchemy reads SQLite as it reads a server."""
    return JdbcCatalog("lake", SqlAlchemyRows("lake", f"sqlite:///{file}", wants_views=wants_views))


@pytest.fixture
def readers(handmade: HandmadeWarehouse) -> list[CatalogReader]:
    return [EmbeddedCatalog("lake", handmade.folder), in_database(handmade.file)]


def test_both_readers_find_the_same(handmade: HandmadeWarehouse, readers: list[CatalogReader]) -> None:
    handmade.schema("empty")
    handmade.table("a", "t", properties={"n": "1"})
    handmade.table("a", "u")
    handmade.table("b", "t")
    handmade.view("a", "v")
    handmade.register("a", "old", str(handmade.folder / "none.json"), None)
    for ask in (
        lambda one: one.list_schemas(),
        lambda one: one.list_names("a"),
        lambda one: one.list_relations("a"),
        lambda one: one.list_names("missing"),
        lambda one: one.load_table("a", "t"),
        lambda one: one.load_table("a", "v"),
        lambda one: one.load_view("a", "v"),
        lambda one: one.load_view("a", "t"),
        lambda one: one.load_table("a", "missing"),
        lambda one: one.has_views(),
    ):
        found, same = map(ask, readers)
        assert found == same
    assert [one.name for one in readers[1].list_names("a")] == ["old", "t", "u", "v"]
    for one in readers:
        with pytest.raises(CatalogUnavailable, match="metadata of the table"):
            one.load_table("a", "old")


def test_a_commit_is_seen_at_once(handmade: HandmadeWarehouse) -> None:
    catalog = in_database(handmade.file)
    for value in ("1", "2"):
        handmade.table("a", "t", properties={"n": value})
        table = catalog.load_table("a", "t")
        assert table is not None
        assert table.properties["n"] == value


def test_a_database_without_the_tables_of_a_catalog_is_an_empty_one(tmp_path: Path) -> None:
    made = HandmadeWarehouse(tmp_path)
    catalog = in_database(made.file)
    assert (catalog.list_schemas(), catalog.list_names("a"), catalog.load_table("a", "t")) == ([], [], None)
    made.create()
    made.schema("a")
    made.table("a", "t")
    assert (catalog.list_schemas(), catalog.load_table("a", "t") is None) == (["a"], False)


def test_a_catalog_from_before_there_were_views_has_tables_only(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "t")
    handmade.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    catalog = in_database(handmade.file, wants_views=False)
    assert [(one.name, one.kind) for one in catalog.list_names("a")] == [("t", "table")]
    assert not catalog.has_views()
    # Another program has opened it with views since.
    handmade.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
    handmade.view("a", "v")
    assert [(one.name, one.kind) for one in catalog.list_names("a")] == [("t", "table"), ("v", "view")]
    assert catalog.has_views()


@pytest.mark.parametrize(
    "uri", ["sqlite:////missing/folder/x.db", "postgresql+psycopg://ada:pw@127.0.0.1:1/lake"]
)
def test_a_database_that_does_not_answer_is_an_error_without_its_password(uri: str) -> None:
    with pytest.raises(CatalogUnavailable, match="did not answer") as caught:
        JdbcCatalog("lake", SqlAlchemyRows("lake", uri, wants_views=True)).list_schemas()
    assert "pw" not in caught.value.where
    assert caught.value.why.startswith("OperationalError: ")
    assert "sqlalche.me" not in caught.value.why
    assert "\n" not in caught.value.why


def test_a_listing_is_loaded_with_one_query(
    handmade: HandmadeWarehouse, readers: list[CatalogReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    handmade.table("a", "t")
    handmade.view("a", "v")
    handmade.table("a", "broken").write_bytes(b"{")
    asked: list[str | None] = []
    right = JdbcRows.relations

    def counted(self: JdbcRows, schema: str, name: str | None = None) -> list[Row]:
        asked.append(name)
        return right(self, schema, name)

    monkeypatch.setattr(JdbcRows, "relations", counted)
    for catalog in readers:
        listed = [
            *catalog.list_names("a"),
            RelationEntry("a", "gone", "view"),
            RelationEntry("a", "v", "table"),
        ]
        asked.clear()
        broken, *others = catalog.load_all("a", listed)
        assert asked == [None, "broken"], (
            "a damaged one is looked up again, because it may have been replaced"
        )
        assert isinstance(broken, CatalogUnavailable)
        assert others == [catalog.load_table("a", "t"), catalog.load_view("a", "v"), None, None]
