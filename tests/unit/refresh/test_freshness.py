"""When a table's rows last changed: an upsert counts, and neither compaction nor its own bookkeeping does."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dbt_arctic.catalog.api import CatalogColumn, Snapshot, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog, together
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_CREATED, PROPERTY_ID, Column, Generation, KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED
from dbt_arctic.refresh.consumed_versions import has_pulled, was_replaced
from dbt_arctic.refresh.freshness import changed_since, last_modified_ms

ORDERS = Name("lake", "shop", "orders")
KEYED = KeyedTable(
    ORDERS, Generation(1, "base", "change"), ("id",), Layout(2, "id"), (Column("id", "bigint"),)
)
BUILT, UPSERTED, LATER = 1000, 2000, 3000


def commit(number: int, at: int, operation: str = "append", txn: str = "", **summary: str) -> Snapshot:
    counts = {name.replace("_", "-"): count for name, count in summary.items()}
    if txn:
        counts["arctic.txn"] = txn
    return Snapshot(number, number - 1 or None, number, at, operation, counts)


@dataclass
class Catalog(OneCatalog):
    """A keyed table with this log of its change table, and an ordinary view."""

    log: tuple[Snapshot, ...]

    def load_table(self, schema: str, name: str) -> TableState | None:
        if name not in (KEYED.change.identifier, "plain"):
            return None
        properties = {PROPERTY_ID: "change", PROPERTY_CREATED: str(BUILT)}
        head = self.log[-1].snapshot_id
        return TableState(schema, name, "", properties, (), self.log, head, {"main": head})

    def load_view(self, schema: str, name: str) -> ViewState | None:
        columns = (CatalogColumn("id", "bigint"),)
        if name == "orders":
            return ViewState(schema, name, KEYED.to_properties(), columns, "")
        return ViewState(schema, name, {}, columns, "") if name == "view" else None


MARKERS = commit(1, BUILT, added_records="2")


@pytest.mark.parametrize(
    ("log", "modified"),
    [
        ((MARKERS,), BUILT),
        ((MARKERS, commit(2, UPSERTED, txn="7", added_records="1")), UPSERTED),
        (
            (
                MARKERS,
                commit(2, UPSERTED, txn="7", added_records="1"),
                commit(3, LATER, "delete", deleted_records="1"),
            ),
            UPSERTED,
        ),
        (
            (
                MARKERS,
                commit(2, UPSERTED, txn="7", added_records="1"),
                commit(3, LATER, txn="8", added_records="0"),
            ),
            UPSERTED,
        ),
        ((commit(5, LATER, "delete", arctic_log="[]"), commit(6, LATER + 1, "replace")), LATER),
        (
            (Snapshot(5, 4, 5, LATER, "append", {"arctic.log": f"[[4,0],[3,{UPSERTED << 20}],[2,7]]"}),),
            UPSERTED,
        ),
    ],
    ids=["built", "upserted", "trimmed", "upserted nothing", "expired", "erased"],
)
def test_a_keyed_table_changes_by_its_upserts(log: tuple[Snapshot, ...], modified: int) -> None:
    assert last_modified_ms(Catalog(log), ORDERS) == modified  # type: ignore[arg-type] # a part of a catalog


@pytest.mark.parametrize(
    ("log", "modified"),
    [
        ((commit(1, UPSERTED, added_records="2"), commit(2, LATER, "replace", added_records="2")), UPSERTED),
        ((commit(2, LATER, "replace", added_records="2"),), LATER),
        ((commit(1, LATER, added_records="0"),), None),
    ],
    ids=["appended", "expired", "never"],
)
def test_a_plain_table_changes_by_what_changed_its_rows(
    log: tuple[Snapshot, ...], modified: int | None
) -> None:
    found = last_modified_ms(Catalog(log), ORDERS.sibling("plain"))  # type: ignore[arg-type]
    assert found == modified


@pytest.mark.parametrize(("name", "told"), [("view", "loaded_at_field"), ("missing", "does not exist")])
def test_what_has_no_time_of_its_own_is_refused(name: str, told: str) -> None:
    with pytest.raises(UnknownRelation, match=told):
        last_modified_ms(Catalog((MARKERS,)), ORDERS.sibling(name))  # type: ignore[arg-type]


def test_a_table_of_another_catalog_has_its_own_time() -> None:
    ours, theirs = (
        Catalog((commit(1, BUILT, added_records="1"),)),
        Catalog((commit(1, UPSERTED, added_records="1"),)),
    )
    catalog = together({"lake": ours, "archive": theirs})
    assert last_modified_ms(catalog, Name("lake", "shop", "plain")) == BUILT
    assert last_modified_ms(catalog, Name("archive", "shop", "plain")) == UPSERTED


@pytest.mark.parametrize(
    ("since", "later", "changed"),
    [
        (1, (), False),
        (1, (commit(2, LATER, "replace", added_records="1", deleted_records="1"),), False),
        (1, (commit(2, LATER, added_records="0"), commit(3, LATER, "overwrite")), False),
        (1, (commit(2, LATER, added_records="1"),), True),
        (1, (commit(2, LATER, "delete", added_position_deletes="1"), commit(3, LATER, "replace")), True),
        (None, (), True),
        (7, (), True),
    ],
    ids=["nothing", "compacted", "empty", "rows", "deleted and compacted", "first rows", "replaced"],
)
def test_a_commit_that_changes_rows_is_noticed(
    since: int | None, later: tuple[Snapshot, ...], changed: bool
) -> None:
    first = commit(1, BUILT, added_records="2")
    state = Catalog((first, *later)).load_table("shop", "plain")
    assert state is not None
    assert changed_since(state, since) is changed


def test_a_table_without_a_snapshot_has_not_changed() -> None:
    assert not changed_since(TableState("shop", "plain", "", {}, (), (), None, {}), None)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (((1, None, True), (2, 1, False)), False),
        (((1, None, True), (2, None, False), (3, 2, False)), True),
        (((1, None, False), (2, None, False)), False),
        # A run that was overtaken leaves a commit of its branch.
        (((1, None, False), (2, 1, True), (3, 1, False)), False),
        # The first commit of a run of the model says which run it is.
        (((1, None, True), (2, None, None), (3, 2, False)), False),
        # Replaced after its own branch, and the commits before it have expired.
        (((5, 4, True), (6, None, False)), True),
    ],
    ids=["recorded", "replaced", "never pulled", "overtaken", "by the model", "expired"],
)
def test_a_table_was_replaced_after_a_commit_that_recorded_what_it_had_read(
    log: tuple[tuple[int, int | None, bool | None], ...], expected: bool
) -> None:
    summaries = {True: {PROPERTY_CONSUMED: "{}"}, None: {PROPERTY_RUN: "run"}, False: {}}
    commits = tuple(
        Snapshot(number, parent, number, number, "append", summaries[recorded])
        for number, parent, recorded in log
    )
    assert was_replaced(Catalog(commits), ORDERS.sibling("plain")) is expected
    assert has_pulled(Catalog(commits), ORDERS.sibling("plain")) is any(recorded for *_, recorded in log)
    assert not was_replaced(Catalog(commits), ORDERS.sibling("gone"))
