"""Views of several catalogs: which names in their texts mean what, and what is read in place of a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.clone_api import CloneApi
from dbt_arctic.adapter.other_catalog_reads import OtherReads
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.auto import inputs
from dbt_arctic.catalog.api import CatalogColumn, CatalogReader, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.other_catalogs import require_same_name, with_relation_texts
from dbt_arctic.store.view_support import require_views

COLUMNS = (CatalogColumn("id", "bigint"),)


@dataclass
class Catalog(OneCatalog):
    """Views by name in the schema ``shop``, and one plain table ``plain``."""

    views: dict[str, ViewState] = field(default_factory=dict)

    def has_views(self) -> bool:
        return True

    def view(self, name: str, sql: str, namespace: str = "shop", catalog: str = "") -> None:
        self.views[name] = ViewState("shop", name, {}, COLUMNS, sql, namespace=namespace, catalog=catalog)

    def keyed(self, name: str, written_in: str) -> None:
        """A keyed table, built by a project that has this name for the catalog."""
        table = keyed(written_in, name)
        text = merge_on_read(table.visible)
        self.views[name] = ViewState("shop", name, table.to_properties(), COLUMNS, text)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.views.get(name) if schema == "shop" else None

    def load_table(self, schema: str, name: str) -> TableState | None:
        if name != "plain":
            return None
        return TableState(schema, name, f"file:/{id(self)}", {}, COLUMNS, (), None, {})


def keyed(catalog: str, name: str = "orders") -> KeyedTable:
    return KeyedTable(
        Name(catalog, "shop", name),
        Generation(1, "b", "c"),
        ("id",),
        Layout(2, ("id",)),
        (Column("id", "bigint"), Column("inside", "bigint")),
        hidden=("inside",),
    )


@pytest.fixture
def lake() -> Catalog:
    return Catalog()


@pytest.fixture
def archive() -> Catalog:
    return Catalog()


@pytest.fixture
def catalog(lake: Catalog, archive: Catalog) -> CatalogReader:
    return together({"lake": lake, "archive": archive})  # type: ignore[dict-item]


@pytest.fixture
def reads(catalog: CatalogReader) -> OtherReads:
    return OtherReads(catalog, "lake")


def there(name: str) -> Name:
    return Name("archive", "shop", name)


def here(name: str) -> Name:
    return Name("lake", "shop", name)


def test_a_keyed_table_is_read_under_the_name_that_its_catalog_has_here(
    reads: OtherReads, archive: Catalog
) -> None:
    archive.keyed("orders", "lake")
    assert reads.text_of(there("orders")) == f"(\n{merge_on_read(keyed('archive').visible)}\n)"
    archive.keyed("orders", "archive")
    assert reads.text_of(there("orders")) is None
    assert reads.text_of(there("plain")) is None
    assert reads.text_of(Name("cold", "shop", "orders")) is None, "only Spark knows it"


def test_the_own_catalog_may_have_had_another_name_as_well(reads: OtherReads, lake: Catalog) -> None:
    lake.keyed("orders", "archive")
    assert reads.text_of(here("orders")) == f"(\n{merge_on_read(keyed('lake').visible)}\n)"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM lake.shop.orders",
        "SELECT id FROM shop.plain WHERE id IN (SELECT id FROM `lake`.`shop`.`orders`)",
        "WITH o AS (SELECT * FROM cold.shop.orders) SELECT id FROM o",
    ],
)
def test_a_view_of_others_that_names_further_catalogs_is_refused(
    reads: OtherReads, archive: Catalog, sql: str
) -> None:
    archive.view("shown", sql)
    with pytest.raises(ConfigError, match=r"archive\.shop\.shown reads (lake|cold)\.shop\.orders"):
        reads.text_of(there("shown"))
    archive.view("over", "SELECT id FROM shown")
    with pytest.raises(ConfigError, match=r"archive\.shop\.shown reads"):
        reads.text_of(there("over"))


def test_a_view_of_others_over_their_own_tables_is_read(reads: OtherReads, archive: Catalog) -> None:
    archive.keyed("orders", "archive")
    archive.view(
        "shown", "SELECT id FROM plain JOIN archive.shop.orders USING (id) JOIN ARCHIVE.shop.x USING (id)"
    )
    assert reads.text_of(there("shown")) is None
    archive.view("shown", "SELECT id FROM things", catalog="lake")
    with pytest.raises(ConfigError, match=r"reads lake\.shop\.things"):
        reads.text_of(there("shown"))
    for sql in ("SELECT FROM WHERE (", "SELECT snapshot_id FROM lake.shop.orders.snapshots"):
        archive.view("shown", sql)
        with pytest.raises(ConfigError, match="cannot be read"):
            reads.text_of(there("shown"))


def test_a_view_over_a_keyed_table_of_another_name_is_refused(
    reads: OtherReads, lake: Catalog, archive: Catalog
) -> None:
    lake.view("shown", "SELECT id FROM archive.shop.orders JOIN lake.shop.shown USING (id)")
    archive.keyed("orders", "archive")
    assert reads.text_of(here("shown")) is None, "this project may name all its catalogs"
    archive.keyed("orders", "lake")
    with pytest.raises(ConfigError, match=r"archive\.shop\.orders has another name for its catalog"):
        reads.text_of(here("shown"))


def test_a_name_in_a_model_is_refused_and_a_source_is_not(reads: OtherReads, archive: Catalog) -> None:
    archive.keyed("orders", "lake")
    text = reads.text_of(there("orders"))
    reads.refuse_names(f"SELECT * FROM {text} AS o JOIN lake.shop.orders USING (id)", "shop", "m", "")
    snapshots = "SELECT * FROM lake.shop.orders.snapshots CROSS JOIN"
    with pytest.raises(ConfigError, match="write source"):
        reads.refuse_names(f"{snapshots} archive.shop.orders", "shop", "m", "write source()")


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT id FROM lake.shop.plain", r"would name lake\.shop\.plain"),
        ("SELECT id FROM cold.shop.plain", r"would name cold\.shop\.plain"),
        ("SELECT id FROM plain", r"would name lake\.shop\.plain"),
        ("SELECT id FROM archive.shop.plain JOIN dev.plain USING (id)", r"would name lake\.dev\.plain"),
        ("SELECT FROM WHERE (", "unknown which catalogs"),
    ],
)
def test_a_view_in_another_catalog_names_only_that_one(reads: OtherReads, sql: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        reads.refuse_foreign_names(there("shown"), sql, "shop", "shown")
    reads.refuse_foreign_names(here("shown"), sql, "shop", "shown")
    own = "WITH o AS (SELECT * FROM archive.shop.orders) SELECT id FROM o JOIN ARCHIVE.more.plain USING (id)"
    reads.refuse_foreign_names(there("shown"), own, "shop", "shown")


def test_a_keyed_table_that_others_call_otherwise_is_not_written(
    catalog: CatalogReader, lake: Catalog, archive: Catalog
) -> None:
    archive.keyed("orders", "theirs")
    archive.keyed("own", "archive")
    archive.view("shown", "SELECT id FROM theirs.shop.plain")
    lake.keyed("orders", "old_name")
    require_same_name(catalog, here("orders"), "m")  # the next build corrects it
    for name in ("own", "shown", "plain", "missing"):
        require_same_name(catalog, there(name), "m")
    context = Context(catalog, lambda *_: None, lambda _: [], lambda _: [])
    with pytest.raises(ConfigError, match=r"archive\.shop\.orders has the name theirs for its catalog"):
        require_views(context, there("orders"), "m")


def test_a_command_does_not_write_to_a_keyed_table_that_others_call_otherwise(
    catalog: CatalogReader, archive: Catalog
) -> None:
    archive.keyed("orders", "theirs")
    archive.keyed("own", "archive")
    credentials = SimpleNamespace(schema="shop", database="lake", catalog_names=["lake", "archive"])
    target = Target(Path(), "dev", credentials, Path())  # type: ignore[arg-type]
    session = TargetSession.__new__(TargetSession)
    session._target, session.catalog = target, catalog
    ran: list[str] = []
    cursor = SimpleNamespace(execute=ran.append, known_rows=0, close=lambda: None)
    session._cursor = lambda: cursor  # type: ignore[method-assign,assignment,return-value]

    assert session.to_write("archive.shop.own") == there("own")
    assert session.to_write("orders") == here("orders")
    assert session.compaction_of(there("own"), is_keyed=True).trigger is not None
    assert session.compaction_of(there("orders"), is_keyed=True).trigger is None
    assert session.name("archive.shop.orders") == there("orders"), "it can be read"
    with pytest.raises(ConfigError, match="has the name theirs"):
        session.to_write("archive.shop.orders")
    session._run("step", "own", keyed("archive", "own"))
    session._run("step", "without a table")
    with pytest.raises(ConfigError, match="has the name theirs"):
        session._run("step", "theirs", keyed("archive"))
    assert ran == ["own", "without a table"]


def test_a_text_becomes_the_name_again_and_the_name_the_text(reads: OtherReads, archive: Catalog) -> None:
    archive.keyed("orders", "lake")
    pins.begin_others(reads)
    try:
        text = pins.text_of(there("orders"))
        assert text is not None
        sql = f"SELECT * FROM {text} AS o"
        assert pins.unpinned(sql) == "SELECT * FROM `archive`.`shop`.`orders` AS o"
        assert pins.texts_of(sql) == {there("orders"): text}
        assert pins.texts_of("SELECT 1") == {}
        ran: list[str] = []
        context = Context(
            None,  # type: ignore[arg-type] # nothing is read
            lambda step, sql, table=None: ran.append(sql),
            lambda sql: ran.append(sql) or [],  # type: ignore[func-returns-value]
            lambda sql: ran.append(sql) or [],  # type: ignore[func-returns-value]
        )
        there_again = with_relation_texts(context, pins.texts_of(sql))
        there_again.run("step", pins.unpinned(sql))
        there_again.query_schema(pins.unpinned(sql))
        there_again.query(pins.unpinned(sql))
        assert ran == [sql] * 3
        assert with_relation_texts(context, {}) is context
    finally:
        pins.begin_others(None)
    assert pins.unpinned(sql) == sql


def test_an_automatic_model_pins_each_catalog_by_its_own_name(
    catalog: CatalogReader, archive: Catalog
) -> None:
    sql = "SELECT a.id FROM archive.shop.plain AS a JOIN lake.shop.plain AS b ON a.id = b.id"
    model_inputs = inputs.find_inputs(catalog, here("m"), sql, {}, settings="")
    assert model_inputs.reason is None
    consumed = {one.name.dotted: one.consumed.table_id for one in model_inputs.upstreams.values()}
    assert len(set(consumed.values())) == 2
    assert sorted(consumed) == ["archive.shop.plain", "lake.shop.plain"]

    archive.view("shown", "SELECT id FROM lake.shop.plain")
    with pytest.raises(ConfigError, match=r"archive\.shop\.shown reads lake\.shop\.plain"):
        inputs.find_inputs(catalog, here("m"), "SELECT id FROM archive.shop.shown", {}, settings="")
    # Even if the query reads that relation itself.
    with pytest.raises(ConfigError, match=r"archive\.shop\.shown reads lake\.shop\.plain"):
        inputs.find_inputs(
            catalog,
            here("m"),
            "SELECT id FROM lake.shop.plain JOIN archive.shop.shown USING (id)",
            {},
            settings="",
        )
    unknown = inputs.find_inputs(catalog, here("m"), "SELECT id FROM cold.shop.plain", {}, settings="").reason
    assert unknown is not None
    assert unknown.code == "unknown-relation"


def test_with_one_catalog_a_name_of_another_one_is_unknown(lake: Catalog) -> None:
    unknown = inputs.find_inputs(lake, here("m"), "SELECT id FROM archive.shop.plain", {}, settings="").reason  # type: ignore[arg-type]
    assert unknown is not None
    assert unknown.code == "unknown-relation"


def test_a_name_without_a_catalog_is_spark_s_to_complete(catalog: CatalogReader) -> None:
    """Spark completes it by the profile's own catalog, also for a model that is in another one."""
    for sql in ("SELECT id FROM plain", "SELECT id FROM shop.plain"):
        assert inputs.find_inputs(catalog, here("m"), sql, {}, settings="").reason is None
        unknown = inputs.find_inputs(catalog, there("m"), sql, {}, settings="").reason
        assert unknown is not None
        assert unknown.code == "unknown-relation"
    named = inputs.find_inputs(catalog, there("m"), "SELECT id FROM lake.shop.plain", {}, settings="")
    assert [one.name for one in named.upstreams.values()] == [here("plain")]


def test_a_clone_in_another_catalog_is_over_that_catalog() -> None:
    adapter = SimpleNamespace(config=SimpleNamespace(credentials=SimpleNamespace(database="lake")))

    def clone(source: str, target: str) -> None:
        source_name = Name(source, "prod", "orders")
        CloneApi._refuse_across(adapter, source_name, {"name": "orders", "database": target})  # type: ignore[arg-type]

    for source, target in (("lake", "lake"), ("archive", "lake"), ("archive", "archive")):
        clone(source, target)
    for source in ("lake", "cold"):
        with pytest.raises(ConfigError, match=rf"{source}\.prod\.orders cannot be cloned into the catalog"):
            clone(source, "archive")
