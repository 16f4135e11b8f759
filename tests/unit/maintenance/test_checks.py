"""The checks of `verify` on values: each invariant broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import CatalogColumn, DataFile, StoredFile
from dbt_arctic.errors import CatalogUnavailable, NewerProtocol, UnknownRelation
from dbt_arctic.maintenance.file_checks import Missing, check_files
from dbt_arctic.maintenance.finding import rebuild_command
from dbt_arctic.maintenance.leftover_checks import check_leftovers, check_unreadable
from dbt_arctic.maintenance.log_checks import check_commits, check_log, check_markers
from dbt_arctic.maintenance.row_checks import check_rows
from dbt_arctic.maintenance.side_checks import check_previous, check_savepoints, check_sides
from dbt_arctic.maintenance.verify import require_known
from dbt_arctic.maintenance.view_checks import check_body, check_columns
from dbt_arctic.store.other_catalogs import catalog_in_text
from tests.unit.maintenance.conftest import Orders

MARKERS = DataFile("/markers", 2, 10, None, None)


def file_of(*txns: int) -> DataFile:
    return DataFile("/f", 1, 10, min(txns), max(txns))


def kinds(found: Any) -> list[str]:
    return [finding.kind for finding in found]


def test_a_table_as_it_should_be_has_no_finding(orders: Orders) -> None:
    base, change = orders.side("base", 1, "b", "m10"), orders.side("change", 1, "b", "a10", "a20", "d")
    tables = {base.name: base, change.name: change}
    assert not list(check_body(orders.table, orders.view))
    assert not list(check_sides(orders.table, tables, {}))
    assert not list(check_columns(orders.table, base, change))
    assert not list(check_commits(orders.table, base, change))
    assert not list(check_log(orders.table, base, change, [MARKERS, file_of(20)]))
    assert not list(check_markers(orders.table, change, [MARKERS, file_of(20)]))
    assert not list(check_savepoints(orders.table, base, change))


def test_a_body_may_differ_in_white_space_only(orders: Orders) -> None:
    view = orders.view
    assert not list(check_body(orders.table, replace(view, sql=f" {view.sql}\n")))
    assert kinds(check_body(orders.table, replace(view, sql="SELECT 1"))) == ["view-replaced"]
    # Another client may have another name for the catalog.
    theirs = replace(view, sql=view.sql.replace("`lake`", "`theirs`"))
    assert catalog_in_text(orders.table, theirs) == "theirs"
    assert catalog_in_text(orders.table, replace(view, sql="SELECT 1")) is None
    assert not list(check_body(orders.table, theirs, "theirs"))
    assert kinds(check_body(orders.table, theirs)) == ["view-replaced"]
    shorter = replace(theirs, sql=theirs.sql.replace("WHERE", "WHERE false AND"))
    assert kinds(check_body(orders.table, shorter, "theirs")) == ["view-replaced"]


def test_the_side_tables_of_a_catalog_have_the_name_of_their_client(orders: Orders) -> None:
    sides = orders.sides(1)
    theirs = {
        one.name: replace(one, properties={**one.properties, "arctic.of": "theirs.shop.orders"})
        for one in sides
    }
    assert kinds(check_sides(orders.table, theirs, {})) == ["side-replaced"] * 2
    assert not list(check_sides(orders.table, theirs, {}, "theirs"))
    assert kinds(check_sides(orders.table, {one.name: one for one in sides}, {}, "theirs")) == [
        *["side-replaced"] * 2
    ]


@pytest.mark.parametrize(
    ("log", "files", "expected"),
    [
        (("b", "a10", "d"), [MARKERS], ["trimmed-unmerged"]),
        (("b", "a10"), [MARKERS, file_of(5, 15)], []),
        (("b", "a10", "a20"), [MARKERS, file_of(20)], ["trimmed-unmerged"]),
    ],
    ids=["trimmed by hand", "a rewrite mixed it with others", "one of two"],
)
def test_a_commit_is_in_the_change_table_or_merged(
    orders: Orders, log: tuple[str, ...], files: list[DataFile], expected: list[str]
) -> None:
    base, change = orders.side("base", 1), orders.side("change", 1, *log)
    assert kinds(check_log(orders.table, base, change, files)) == expected


def test_where_the_log_of_the_base_was_expired_older_commits_are_not_missed(orders: Orders) -> None:
    base = orders.side("base", 1, ".", ".", ".", "r")
    change = orders.side("change", 1, "b", "a10", "d")
    assert not list(check_log(orders.table, base, change, [MARKERS]))


def test_the_base_has_merged_what_the_change_table_has_had(orders: Orders) -> None:
    base = orders.side("base", 1, "b", "m10,20")
    assert kinds(check_log(orders.table, base, orders.side("change", 1, "b", "a10", "d"), [MARKERS])) == [
        "merged-unknown"
    ]
    expired = orders.side("change", 1, ".", ".", "a10", "d")
    assert not list(check_log(orders.table, base, expired, [MARKERS]))


def test_a_manual_commit_is_reported_until_the_table_was_rolled_back(orders: Orders) -> None:
    base, change = orders.side("base", 1, "b", "x"), orders.side("change", 1, "b", "a10", "x")
    assert kinds(check_commits(orders.table, base, change)) == ["by-hand", "by-hand"]
    last = change.snapshots[-1]
    back = replace(last, snapshot_id=9, parent_id=3, timestamp_ms=9000)
    back = replace(back, summary={"arctic.txn": "30", "arctic.rollback": "1.2.1"})
    change = replace(change, snapshots=(*change.snapshots, back), current_snapshot_id=9)
    assert not list(check_commits(orders.table, base, change))


def test_a_delete_of_some_rows_of_a_file_is_no_trim(orders: Orders) -> None:
    change = orders.side("change", 1, "b", "a10", "d")
    partial = replace(change.snapshots[-1], summary={"added-dvs": "1"})
    change = replace(change, snapshots=(*change.snapshots[:-1], partial))
    assert kinds(check_commits(orders.table, orders.side("base", 1), change)) == ["by-hand"]


def test_markers_are_known_by_their_missing_statistics(orders: Orders) -> None:
    change = orders.side("change", 1, "b", "a20")
    (finding,) = check_markers(orders.table, change, [file_of(20)])
    assert (finding.kind, finding.fix) == ("markers", rebuild_command(orders.table.name))
    assert not list(check_markers(orders.table, change, [file_of(0, 20)]))


def test_compaction_recreates_markers_if_the_log_shows_what_removed_them(orders: Orders) -> None:
    change = orders.side("change", 1, "b", "a20", "d")
    late = replace(change.snapshots[-1], summary={"deleted-records": "1"})
    change = replace(change, snapshots=(*change.snapshots[:-1], late))
    (finding,) = check_markers(orders.table, change, [file_of(20)])
    assert finding.fix == "dbt-arctic compact --kind full shop.orders"


def test_columns_agree_in_name_type_and_null(orders: Orders) -> None:
    base, change = orders.side("base", 1), orders.side("change", 1)
    one = base.columns[:1]
    assert kinds(check_columns(orders.table, replace(base, columns=one), change)) == ["columns"]
    wider = replace(base, columns=(*one, CatalogColumn("amount", "bigint")))
    (finding,) = check_columns(orders.table, wider, change)
    assert finding.what.endswith("has amount as bigint, but the view has int")
    more = replace(base, columns=(*base.columns, CatalogColumn("no`te", "string")))
    (finding,) = check_columns(orders.table, more, change)
    assert "DROP COLUMN `no``te`" in finding.fix
    strict = replace(base, columns=(CatalogColumn("id", "bigint", nullable=False), base.columns[1]))
    assert kinds(check_columns(orders.table, strict, change)) == ["columns"]
    assert not list(check_columns(replace(orders.table, required=("id",)), strict, change))
    assert kinds(check_columns(orders.table, base, replace(change, columns=base.columns))) == ["columns"]
    strict_change = replace(change, columns=(strict.columns[0], *change.columns[1:]))
    assert kinds(check_columns(orders.table, base, strict_change)) == ["columns"]


def test_side_tables_are_there_and_the_right_ones(orders: Orders) -> None:
    base, change = orders.side("base", 1), orders.side("change", 1)

    def found(**changes: Any) -> list[str]:
        return kinds(
            check_sides(orders.table, {base.name: replace(base, **changes), change.name: change}, {})
        )

    assert kinds(check_sides(orders.table, {change.name: change}, {})) == ["side-missing"]
    assert found(properties={}) == ["side-replaced"]
    assert found(properties={**base.properties, "arctic.id": "other"}) == ["side-replaced"]
    assert found(properties={**base.properties, "arctic.of": "lake.shop.other"}) == ["side-replaced"]
    assert found(current_snapshot_id=None) == ["side-emptied"]
    error = CatalogUnavailable("cannot be read", where="/x.metadata.json", why="cut off", fix="restore it")
    (finding,) = check_sides(orders.table, {change.name: change}, {base.name: error})
    assert (finding.kind, finding.where, finding.fix) == ("metadata", "/x.metadata.json", "restore it")


def test_the_generation_before_is_missed_if_the_view_names_it() -> None:
    orders = Orders(generation=2, previous=1)
    both = {side.name: side for side in orders.sides(1, 2)}
    assert not list(check_previous(orders.table, both))
    assert kinds(check_previous(orders.table, {**both, "orders__change_1": orders.side("change", 2)})) == [
        "previous-missing"
    ]


def test_an_incomplete_savepoint_is_reported(orders: Orders) -> None:
    base = orders.side("base", 1, tags={"savepoint_a": 1, "savepoint_b": 1, "other": 1})
    change = orders.side("change", 1, tags={"savepoint_a": 1})
    (finding,) = check_savepoints(orders.table, base, change)
    assert finding.fix == "dbt-arctic savepoint shop.orders b --drop"


def test_files_are_there_and_whole(orders: Orders) -> None:
    sizes: dict[str, int | Missing | None] = {"/a": 10, "/b": 3, "/c": Missing.FILE, "s3://d": None}
    files = [StoredFile(path, 10) for path in sizes]
    found = list(check_files(orders.table, orders.table.base, files, sizes.__getitem__))
    assert [(finding.kind, finding.where) for finding in found] == [
        ("file-missing", "/c"),
        ("file-damaged", "/b (3 of 10 bytes)"),
    ]


def test_rows_that_are_damaged_are_shown(orders: Orders) -> None:
    (finding,) = check_rows(orders.table, [("duplicate-key", 2, '{"id":1}'), ("null-key", 0, None)])
    assert finding.what == '2 keys are duplicated in the base, for instance {"id":1}'


def test_what_cannot_be_read_names_the_command_that_shows_it_again(orders: Orders) -> None:
    error = CatalogUnavailable("cannot be read", where="/v.json", fix="restore it")
    inventory = orders.inventory(
        *orders.sides(1), shown=False, damaged_views={"orders": error, "other": error}
    )
    assert [finding.fix for finding in check_unreadable(inventory)] == [
        "dbt-arctic restore shop.orders, which needs no backup; or: restore it",
        "restore it",
    ]
    assert not list(check_leftovers(inventory, 10**12)), "a view that cannot be read may name them"
    newer = orders.inventory(
        *orders.sides(1), shown=False, invalid_views={"orders": NewerProtocol("newer", fix="up")}
    )
    assert [(finding.kind, finding.fix) for finding in check_unreadable(newer)] == [("newer-protocol", "up")]
    damaged = orders.inventory(orders.side("change", 1), damaged_tables={"orders__base_1": error, "x": error})
    assert [finding.table for finding in check_unreadable(damaged)] == ["lake.shop.x"]


def test_a_missing_view_is_reported_once(orders: Orders) -> None:
    inventory = orders.inventory(*orders.sides(1, 2), shown=False)
    (finding,) = check_leftovers(inventory, 10**12)
    assert finding.kind == "view-missing"
    assert "lake.shop.orders does not exist, but generation 2" in finding.what


def test_a_name_of_no_keyed_table_is_an_error(orders: Orders) -> None:
    require_known(orders.inventory(), "orders")
    require_known(orders.inventory(*orders.sides(1), shown=False), "orders")
    with pytest.raises(UnknownRelation, match="neither a view"):
        require_known(orders.inventory(), "order")
