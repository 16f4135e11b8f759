"""`verify` on real tables: no findings if only dbt-arctic has written, and findings of manual damage."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.target_session import size_of
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.compaction.rebucket import rebucket
from dbt_arctic.keyed.table import side_name
from dbt_arctic.maintenance.catalog_checks import check_catalog_file
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.orphans import DAY_MS, find_orphans, remove_orphans
from dbt_arctic.maintenance.restore import restore_table
from dbt_arctic.maintenance.verify import verify_schema

Verify = Callable[..., dict[str, list[Finding]]]
ROWS = [{"id": number, "amount": number} for number in range(6)]


@pytest.fixture
def verify(shop: Any, schema: str, warehouse: Path) -> Verify:
    """The findings of the schema by the table's name; with ``data``, of its rows too."""

    def run(data: bool = False, later_ms: int = 0) -> dict[str, list[Finding]]:
        session = shop.main
        catalog = session.catalog
        if isinstance(catalog, EmbeddedCatalog):
            catalog = EmbeddedCatalog("lake", warehouse)  # which has seen no file before it was damaged
        inventory = take_inventory(catalog, "lake", schema)
        now = session.context.now_ms() + later_ms
        query = session.query if data else None
        found: dict[str, list[Finding]] = {}
        for finding in verify_schema(catalog, inventory, now, shop.size_of, query):
            found.setdefault(finding.table.rpartition(".")[2], []).append(finding)
        return found

    return run


class UnderTwoNames:
    """A catalog that the profile has under a second name."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def names_with(self, name: Any) -> list[str]:
        return ["lake", "other"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def kinds(found: list[Finding]) -> set[str]:
    return {finding.kind for finding in found}


def test_nothing_is_found_where_only_dbt_arctic_was_at_work(shop: Any, verify: Verify) -> None:
    orders = shop.table()
    orders.build(ROWS)
    assert verify(data=True) == {}
    orders.apply([{"id": 1, "amount": 10}], [{"id": 2}])
    orders.compact(grace=1000)  # merged, and still in the change table
    orders.upsert([{"id": 3, "amount": 30}])
    assert verify(data=True) == {}
    orders.compact()
    orders.upsert([])
    wide = {
        "ïd": "decimal(10,2)",
        "day": "date",
        "at": "timestamp",
        "tiny": "tinyint",
        "tags": "array<string>",
    }
    strange = shop.table("strange", wide, unique_key=["ïd", "day"], partition_by=["months(day)"])
    row = {"ïd": "1.50", "day": "2026-01-31", "at": "2026-01-31T12:00:00Z", "tiny": 1, "tags": ["a"]}
    strange.build([row])
    strange.upsert([{**row, "tiny": 2}])
    strange.compact()
    orders.build(ROWS[:2])
    evolved = orders.with_types({**orders.types, "note": "string"}).configured(
        on_schema_change="append_new_columns"
    )
    evolved.upsert([{"id": 9, "amount": 9, "note": "x"}])
    assert verify(data=True) == {}


@pytest.mark.modelled
def test_side_tables_dropped_recreated_or_altered_by_hand(shop: Any, verify: Verify) -> None:
    query = shop.main.query
    names = ("dropped", "made_again", "emptied", "altered", "edited", "trimmed")
    tables = {name: shop.table(name) for name in names}
    for table in tables.values():
        table.build(ROWS[:2])
    keyed = {name: orders.table for name, orders in tables.items()}
    query(f"DROP TABLE {keyed['dropped'].change.sql}")
    query(f"DROP TABLE {keyed['made_again'].base.sql}")
    query(f"CREATE TABLE {keyed['made_again'].base.sql} (id BIGINT, amount INT) USING iceberg")
    query(f"CREATE OR REPLACE TABLE {keyed['emptied'].base.sql} (id BIGINT, amount INT) USING iceberg")
    query(f"ALTER TABLE {keyed['altered'].base.sql} RENAME COLUMN amount TO price")
    query(f"INSERT INTO {keyed['edited'].base.sql} VALUES (1, 7), (NULL, 8)")
    tables["trimmed"].upsert([{"id": 5, "amount": 5}])
    query(f"DELETE FROM {keyed['trimmed'].change.sql} WHERE true")

    found = verify(data=True)
    assert {name: kinds(findings) for name, findings in found.items()} == {
        "dropped": {"side-missing"},
        "made_again": {"side-replaced"},
        "emptied": {"side-emptied"},
        "altered": {"columns"},
        "edited": {"by-hand", "duplicate-key", "duplicate-row", "null-key"},
        "trimmed": {"trimmed-unmerged", "markers"},
    }
    for finding in (one for findings in found.values() for one in findings):
        assert all((finding.what, finding.where, finding.why, finding.fix)), finding


@pytest.mark.modelled
def test_a_view_dropped_replaced_or_cut_off_by_hand(shop: Any, verify: Verify, schema: str) -> None:
    query = shop.main.query
    tables = {name: shop.table(name) for name in ("dropped", "replaced", "plain", "undescribed")}
    for table in tables.values():
        table.build(ROWS[:2])
    query(f"DROP VIEW {tables['dropped'].name.sql}")
    query(f"CREATE OR REPLACE VIEW {tables['replaced'].name.sql} AS SELECT 1 AS one")
    query(f"DROP VIEW {tables['plain'].name.sql}")
    query(f"CREATE VIEW {tables['plain'].name.sql} AS SELECT 1 AS one")
    query(f"ALTER VIEW {tables['undescribed'].name.sql} SET TBLPROPERTIES ('arctic.layout' = '{{')")
    found = verify()
    assert {name: kinds(findings) for name, findings in found.items() if name != "replaced"} == {
        "undescribed": {"view-properties"},
        # The tables of an unreadable view are unknown, so no table is reported as unused.
    }
    assert "view-replaced" in kinds(found["replaced"])
    query(f"DROP VIEW {tables['undescribed'].name.sql}")
    found = verify()
    for name in ("dropped", "plain", "undescribed"):
        assert kinds(found[name]) == {"view-missing"}
        assert "dbt-arctic restore" in found[name][0].fix


@pytest.mark.modelled
@pytest.mark.parametrize("has_views", [False], indirect=True)
def test_a_record_dropped_replaced_or_cut_off_by_hand(shop: Any, verify: Verify) -> None:
    query = shop.main.query
    tables = {name: shop.table(name) for name in ("dropped", "replaced", "undescribed")}
    for table in tables.values():
        table.build(ROWS[:2])
    records = {name: table.table.described_by.sql for name, table in tables.items()}
    query(f"DROP TABLE {records['dropped']}")
    query(f"DROP TABLE {records['replaced']}")
    query(f"CREATE TABLE {records['replaced']} (one INT) USING iceberg")
    query(f"ALTER TABLE {records['undescribed']} SET TBLPROPERTIES ('arctic.layout' = '{{')")
    assert {name: kinds(findings) for name, findings in verify().items()} == {
        "undescribed": {"view-properties"},
    }
    query(f"DROP TABLE {records['undescribed']}")
    found = verify()
    for name in ("dropped", "undescribed"):
        assert kinds(found[name]) == {"view-missing"}
        restore_table(shop.main.context, tables[name].name)
        assert tables[name].rows() == ROWS[:2]


def test_files_that_are_gone_or_cut_short(shop: Any, verify: Verify, schema: str) -> None:
    orders, others = shop.table(), shop.table("others")
    for table in (orders, others):
        table.build(ROWS)
        table.apply([{"id": 1, "amount": 10}], [{"id": 2}])
        table.compact()
    catalog = shop.main.catalog

    def files(side: Any) -> list[Path]:
        state = catalog.load_table(side.schema, side.identifier)
        stored = catalog.stored_files(side.schema, side.identifier, state.current_snapshot_id)
        assert all(size_of(file.path) == file.size_bytes for file in stored)
        return sorted((Path(file.path) for file in stored), key=lambda path: path.suffix)

    parquet, *_, vector = files(orders.table.base)
    assert (parquet.suffix, vector.suffix) == (".parquet", ".puffin")
    vector.unlink()
    parquet.write_bytes(parquet.read_bytes()[:100])
    state = catalog.load_table(schema, others.table.base.identifier)
    metadata = max((Path(state.location) / "metadata").glob("*.metadata.json*"), key=lambda path: path.name)
    metadata.write_bytes(metadata.read_bytes()[:100])
    assert kinds(verify()["orders"]) == {"file-missing", "file-damaged"}
    assert kinds(verify()["others"]) == {"metadata"}


@pytest.mark.modelled
def test_what_was_left_behind(shop: Any, verify: Verify, schema: str) -> None:
    orders = shop.table()
    orders.build(ROWS[:1])
    session = shop.main
    of, base = orders.name, orders.table.base
    session.query(f"ALTER TABLE {base.sql} CREATE BRANCH arctic_{session.context.new_txn()}")
    session.query(
        f"CREATE TABLE {of.sibling(f'x__pull_{session.context.new_txn()}').sql} (id INT) USING iceberg"
    )
    abandoned = side_name(of, "base", 2)
    created = f"'arctic.of' = '{of.dotted}', 'arctic.created-ms' = '{session.context.now_ms()}'"
    session.query(f"CREATE TABLE {abandoned.sql} (id INT) USING iceberg TBLPROPERTIES ({created})")
    assert verify() == {}, "all of it may belong to a run at work"
    found = verify(later_ms=25 * 3600 * 1000)
    assert {kind for findings in found.values() for kind in kinds(findings)} == {
        "leftover-branch",
        "leftover-staging",
        "leftover-generation",
    }


def test_a_layout_or_property_that_was_changed_by_hand(shop: Any, verify: Verify) -> None:
    query = shop.main.query
    names = ("split", "other", "sorted", "blind", "silent", "stale", "newer", "half")
    tables = {name: shop.table(name) for name in names}
    for table in tables.values():
        table.build(ROWS[:2])
    keyed = {name: orders.table for name, orders in tables.items()}
    query(f"ALTER TABLE {keyed['split'].change.sql} REPLACE PARTITION FIELD bucket(2, id) WITH bucket(4, id)")
    query(f"ALTER TABLE {keyed['other'].change.sql} ADD PARTITION FIELD amount")
    query(f"ALTER TABLE {keyed['sorted'].base.sql} WRITE LOCALLY ORDERED BY amount")
    metrics = "'write.metadata.metrics.column._txn'"
    query(f"ALTER TABLE {keyed['blind'].change.sql} UNSET TBLPROPERTIES ({metrics})")
    query(f"ALTER TABLE {keyed['silent'].base.sql} SET TBLPROPERTIES ('arctic.key' = '[\"amount\"]')")
    query(
        f"ALTER TABLE {keyed['stale'].change.sql} SET TBLPROPERTIES ('write.metadata.metrics.default'='none')"
    )
    query(f"ALTER VIEW {keyed['newer'].name.sql} SET TBLPROPERTIES ('arctic.protocol' = '99')")
    query(f"ALTER TABLE {keyed['half'].base.sql} CREATE TAG savepoint_opening")
    found = verify()
    assert {name: kinds(findings) for name, findings in found.items()} == {
        "split": {"layout"},
        "other": {"layout"},
        "sorted": {"layout"},
        "blind": {"properties"},
        "silent": {"properties"},
        "stale": {"properties"},
        "newer": {"newer-protocol"},
        "half": {"savepoint"},
    }
    assert found["split"][0].what.endswith(
        ".split__base_1 has 2 buckets, and " + keyed["split"].change.dotted + " 4"
    )
    assert found["split"][0].fix == f"dbt-arctic compact --kind full {shop.main.schema}.split"
    rebucket(shop.main.context, keyed["split"].name, 2)
    assert "partitioned by bucket(2, id), amount" in found["other"][0].what
    assert found["other"][0].fix == "dbt run --full-refresh --select other"
    # Every other one is repaired by the statement that its finding names.
    for name in ("sorted", "blind", "silent", "stale"):
        (finding,) = found[name]
        query(finding.fix)
    assert set(verify()) == {"other", "newer", "half"}


def test_files_that_no_version_names_go_where_the_folder_is_of_one_table(
    shop: Any, schema: str, warehouse: Path
) -> None:
    orders, context = shop.table(), shop.main.context
    orders.build(ROWS)
    base = orders.table.base
    shop.main.query(f"CREATE TABLE {orders.name.sibling('old').sql} (id BIGINT) USING iceberg")
    shop.main.query(f"ALTER TABLE {orders.name.sibling('old').sql} RENAME TO {schema}.new")
    shop.main.query(f"CREATE VIEW {orders.name.sibling('old').sql} AS SELECT 1 AS one")
    folder = warehouse / schema / base.identifier / "data"
    lost, young = folder / "lost.parquet", folder / "young.parquet"
    for path, days in ((lost, 5), (young, 0.5)):
        path.write_bytes(b"rows of a writer that was killed")
        os.utime(path, (time.time() - days * 86400,) * 2)
    found, shared = find_orphans(context, "lake", [schema], DAY_MS)
    assert [(one.table, [Path(file).name for file in one.files]) for one in found] == [(base, [lost.name])]
    assert [one.table.identifier for one in shared] == ["new"], "the metadata of a view is in its folder"
    in_both, shared_by_both = find_orphans(
        replace(context, catalog=UnderTwoNames(context.catalog)), "lake", [schema], DAY_MS
    )
    assert (in_both, len(shared_by_both) > len(shared)) == ([], True), "another catalog has the folders too"
    for one in found:
        remove_orphans(context, one, DAY_MS)
    assert (lost.exists(), young.exists()) == (False, True)
    assert [row["id"] for row in orders.rows()] == [row["id"] for row in ROWS]
    assert find_orphans(context, "lake", [schema], DAY_MS)[0] == []


def test_the_catalogs_file_is_its_users_own(shop: Any, warehouse: Path) -> None:
    shop.table().build(ROWS[:1])
    for path in warehouse.glob("catalog.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(check_catalog_file("lake", "catalog.db", 0o100660)), "a team may share it"
    (finding,) = check_catalog_file("lake", "catalog.db", 0o100644)
    assert (finding.kind, finding.fix) == ("catalog-open", "chmod o-rw 'catalog.db'")
