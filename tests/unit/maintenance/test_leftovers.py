"""What may go: everything that is old and that nothing names, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.auto.auxiliary_tables import owner_of_state
from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed import create
from dbt_arctic.keyed.secondary_index import PROPERTY_INDEX_OF
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance import clean, drop
from dbt_arctic.maintenance.inventory import Inventory
from dbt_arctic.maintenance.leftover_checks import check_leftovers
from dbt_arctic.maintenance.leftovers import Leftovers, Retention, find_leftovers
from dbt_arctic.store import rejected_table
from dbt_arctic.store.context import Context
from dbt_arctic.store.lease import Lease
from dbt_arctic.store.process import this_process
from tests.unit.maintenance.conftest import Orders, commits, state

DAY = 24 * 3600 * 1000
NOW = 1_800_000_000_000
OLD, YOUNG = NOW - 2 * DAY, NOW - 1000


def txn(created_ms: int) -> int:
    return created_ms << 20


def found_leftovers(inventory: Inventory, **retention: Any) -> dict[str, str]:
    leftovers = find_leftovers(inventory, NOW, Retention(**retention))
    return _told(leftovers)


def _told(leftovers: Leftovers) -> dict[str, str]:
    told = {removal.branch or removal.target.identifier: removal.kind for removal in leftovers.removals}
    assert not {kept.target.identifier for kept in leftovers.kept} & set(told)
    return {**told, **{kept.target.identifier: f"kept: {kept.kind}" for kept in leftovers.kept}}


def test_the_generation_that_is_shown_never_goes(orders: Orders) -> None:
    inventory = orders.inventory(*orders.sides(1, created_ms=0))
    assert found_leftovers(inventory, older_than_ms=0, keep_previous_ms=0, dropped=True) == {}


def test_the_generation_before_goes_when_it_was_replaced_long_ago() -> None:
    orders = Orders(generation=2, previous=1)
    previous = dict.fromkeys(["orders__base_1", "orders__change_1"], "previous")
    recent = orders.inventory(*orders.sides(1, created_ms=0), *orders.sides(2, created_ms=OLD))
    assert found_leftovers(recent) == {}
    assert found_leftovers(recent, keep_previous_ms=DAY) == previous
    tagged = orders.side("base", 1, tags={"savepoint_a": 1})
    kept = orders.inventory(tagged, orders.side("change", 1), *orders.sides(2, created_ms=OLD))
    assert found_leftovers(kept, keep_previous_ms=DAY) == {}


def switch_at(at_ms: int, generation: int) -> dict[str, str]:
    """The property that a switch to a generation leaves on the view."""
    return {f"arctic.shown-{txn(at_ms)}": f'[{generation}, "base-{generation}", "change-{generation}"]'}


def test_after_an_undo_the_younger_generation_counts_from_that_moment() -> None:
    orders = Orders(generation=1, previous=2)
    inventory = orders.inventory(*orders.sides(1, 2, created_ms=0))
    assert found_leftovers(inventory, keep_previous_ms=0) == {}, "nobody can say since when"
    for since, expected in ((YOUNG, set()), (OLD, {"previous"})):
        view = orders.view
        shown = replace(view, properties={**view.properties, **switch_at(since, 1)})
        undone = orders.inventory(*inventory.tables.values(), views={"orders": shown})
        assert set(found_leftovers(undone, keep_previous_ms=DAY).values()) == expected


def test_after_a_redo_the_older_generation_counts_from_that_moment() -> None:
    """And after a full refresh of a restored table from its own moment: the last switch counts."""
    orders = Orders(generation=2, previous=1)
    for before, last, expected in ((OLD - 1, YOUNG, set()), (OLD - 1, OLD, {"previous"})):
        inventory, view = orders.inventory(*orders.sides(1, 2, created_ms=0)), orders.view
        switches = {**switch_at(before, 1), **switch_at(last, 2)}
        shown = replace(view, properties={**view.properties, **switches})
        redone = replace(inventory, views={"orders": shown})
        assert set(found_leftovers(redone, keep_previous_ms=DAY).values()) == expected, (before, last)


def test_an_older_generation_is_removed_and_a_younger_one_if_its_build_cannot_be_active() -> None:
    orders = Orders(generation=3, previous=2)
    shown = [*orders.sides(2), *orders.sides(3, created_ms=YOUNG)]
    inventory = orders.inventory(
        *shown, orders.side("base", 1, created_ms=YOUNG), orders.side("base", 4, created_ms=YOUNG)
    )
    assert found_leftovers(inventory) == {"orders__base_1": "generation", "orders__base_4": "kept: young"}
    inventory = orders.inventory(*shown, orders.side("base", 4, created_ms=OLD))
    assert found_leftovers(inventory) == {"orders__base_4": "generation"}
    assert found_leftovers(inventory, older_than_ms=3 * DAY) == {"orders__base_4": "kept: young"}


def test_an_active_build_is_kept_and_one_whose_process_has_ended_is_removed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = Orders(generation=3, previous=2)
    leased = Lease(this_process(), "run-7", OLD, 60).to_properties()
    cut_off = {"write.metadata.metrics.default": "none"}

    def side(role: str, created_ms: int, **properties: str) -> TableState:
        made = orders.side(role, 4, created_ms=created_ms)
        return replace(made, properties={**made.properties, **properties})

    shown = orders.sides(2, 3, created_ms=OLD)
    old = orders.inventory(*shown, side("base", OLD, **leased), side("change", OLD, **cut_off))
    young = orders.inventory(*shown, side("base", YOUNG, **leased))
    assert found_leftovers(young) == {"orders__base_4": "generation"}, (
        "nobody of this process is at work on it"
    )
    monkeypatch.setattr("dbt_arctic.store.lease._held", {"base-4"})
    kept = dict.fromkeys(["orders__base_4", "orders__change_4"], "kept: young")
    assert found_leftovers(old) == kept, "however old"
    (first, _) = find_leftovers(old, NOW, Retention()).kept
    assert "run-7" in first.why
    assert found_leftovers(orders.inventory(*old.tables.values(), shown=False), dropped=True)[
        "orders__base_4"
    ] == ("kept: young")


def test_a_savepoint_keeps_a_generation(orders: Orders) -> None:
    tagged = orders.side("base", 5, tags={"savepoint_a": 1})
    inventory = orders.inventory(*orders.sides(1), tagged)
    assert found_leftovers(inventory, older_than_ms=0) == {"orders__base_5": "kept: savepoint"}


def test_without_a_view_generations_are_only_removed_on_request(orders: Orders) -> None:
    inventory = orders.inventory(*orders.sides(1), shown=False)
    names = ["orders__base_1", "orders__change_1"]
    assert found_leftovers(inventory) == dict.fromkeys(names, "kept: no-view")
    assert found_leftovers(inventory, dropped=True) == dict.fromkeys(names, "generation")


def test_while_a_view_cannot_be_read_no_generation_goes(orders: Orders) -> None:
    damaged = {"other": CatalogUnavailable("cut off")}
    inventory = orders.inventory(*orders.sides(1, 7), damaged_views=damaged)
    assert set(found_leftovers(inventory, dropped=True, older_than_ms=0).values()) == {
        "kept: unreadable-view"
    }


def test_an_auxiliary_view_without_its_model_goes_when_it_is_old(orders: Orders) -> None:
    def inventory(written_ms: int, *others: TableState, owner: str = "", tag: str = "") -> Inventory:
        log = replace(state("x", commits("b", first_ms=written_ms)), tags={tag: 1} if tag else {})
        name = orders.table.name.sibling("gone__state")
        table = replace(
            orders.table, name=name, root="gone__state", owner=owner or owner_of_state(name.sibling("gone"))
        )
        sides = [replace(log, name=side.identifier) for side in (table.base, table.change)]
        made = orders.inventory(*orders.sides(1), *sides, *others)
        return replace(made, keyed={**made.keyed, "gone__state": table})

    assert found_leftovers(inventory(OLD)) == {"gone__state": "state"}
    (finding,) = check_leftovers(inventory(OLD), NOW)
    assert (finding.kind, finding.what) == (
        "leftover-state",
        "lake.shop.gone__state is an auxiliary view without its model",
    )
    assert found_leftovers(inventory(YOUNG)) == {"gone__state": "kept: young"}
    assert found_leftovers(inventory(OLD, tag="savepoint_a")) == {"gone__state": "kept: savepoint"}
    assert found_leftovers(inventory(OLD, state("gone"))) == {}, "its model exists, as a table or a view"
    assert found_leftovers(inventory(OLD, state("gone__base_1"))) == {}, "and so it does without its view"
    assert found_leftovers(inventory(OLD, owner="model.shop.gone__state")) == {}, "a model of that name"


def test_rejected_rows_without_their_model_are_only_removed_on_request(orders: Orders) -> None:
    def rejected(of: str, written_ms: int) -> TableState:
        snapshots = (Snapshot(1, None, 1, written_ms, "append", {}),)
        return state(f"{of}__rejected", snapshots, {rejected_table.PROPERTY_OF: f"lake.shop.{of}"})

    tables = [rejected("orders", OLD), rejected("gone", OLD), rejected("new", YOUNG)]
    inventory = orders.inventory(*orders.sides(1, created_ms=0), *tables)
    assert found_leftovers(inventory) == {"gone__rejected": "kept: no-view", "new__rejected": "kept: young"}
    assert found_leftovers(inventory, dropped=True) == {
        "gone__rejected": "rejected",
        "new__rejected": "kept: young",
    }


def test_indexes_without_their_table_go(orders: Orders) -> None:
    def index(of: str, written_ms: int) -> TableState:
        snapshots = (Snapshot(1, None, 1, written_ms, "append", {}),)
        return state(f"{of}__index_a", snapshots, {PROPERTY_INDEX_OF: f"lake.shop.{of}"})

    tables = [index("orders", OLD), index("gone", OLD), index("new", YOUNG)]
    inventory = orders.inventory(*orders.sides(1, created_ms=0), *tables)
    assert found_leftovers(inventory) == {"gone__index_a": "index", "new__index_a": "kept: young"}
    assert [one.kind for one in check_leftovers(inventory, NOW)] == ["leftover-index"]


def test_a_foreign_table_with_this_name_is_never_read(orders: Orders) -> None:
    strange = state("orders__base_9", properties={"arctic.of": "lake.other.orders"})
    assert found_leftovers(orders.inventory(*orders.sides(1), strange), older_than_ms=0, dropped=True) == {}


def test_the_names_of_branches_and_staging_tables_contain_their_age(orders: Orders) -> None:
    names = {f"arctic_{txn(OLD)}": 1, f"arctic_{txn(YOUNG)}": 1, "main": 1, "arctic_of_mine": 1}
    plain = state("plain", branches=names)
    staged = [state(f"orders__pull_{txn(at)}") for at in (OLD, YOUNG)]
    inventory = orders.inventory(plain, *staged, state("orders__pull_7"), state("__pull_x"))
    assert found_leftovers(inventory) == {
        f"arctic_{txn(OLD)}": "branch",
        f"orders__pull_{txn(OLD)}": "staging",
        "plain": "kept: young",
    }


def test_what_a_swap_set_aside_stays_while_nothing_has_taken_its_place(orders: Orders) -> None:
    aside = state(f"plain__arctic_old_{txn(OLD)}")
    assert found_leftovers(orders.inventory(aside)) == {aside.name: "kept: interrupted-swap"}
    assert found_leftovers(orders.inventory(aside, state("plain"))) == {aside.name: "set-aside"}
    assert found_leftovers(orders.inventory(aside, state("plain")), older_than_ms=3 * DAY) == {}


@dataclass
class RecordedStatements:
    """A catalog that answers with one inventory, and the statements that were run."""

    steps: list[str] = field(default_factory=list)

    def __call__(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        self.steps.append(f"{step}: {sql}")
        return None


def test_only_what_would_be_offered_again_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = Orders(generation=2, previous=1)
    branch = f"arctic_{txn(OLD)}"
    before = orders.inventory(*orders.sides(1, 2), state("plain", branches={branch: 1}))
    retention = Retention(keep_previous_ms=DAY)
    removals = find_leftovers(before, NOW, retention).removals
    assert len(removals) == 3
    ran, told = RecordedStatements(), []
    there = SimpleNamespace(of=lambda name: there, load_table=lambda schema, name: state(name))
    context = Context(there, ran, list, list, now_ms=lambda: NOW)  # type: ignore[arg-type] # read through `after`
    after = orders.inventory(*orders.sides(1, 2), state("plain"))  # its run came to an end
    forgotten = Orders(generation=2).inventory(*orders.sides(1, 2))
    looks = iter([after, forgotten, after])  # before the last read, it is published again
    for module in (clean, drop):
        monkeypatch.setattr(module, "take_inventory", lambda *_: next(looks))
    forget = create.forget_previous
    monkeypatch.setattr(
        clean,
        "forget_previous",
        lambda context, table: context.run("forget_previous", forget(table), table),
    )
    gone = clean.remove_leftovers(
        context, "lake", removals, retention, lambda removal, done: told.append(done)
    )
    assert (gone, told) == (1, [True, False, False])
    shop, by = "`lake`.`shop`", "('arctic.dropped-by'"
    assert ran.steps == [
        f"forget_previous: ALTER VIEW {shop}.`orders` SET TBLPROPERTIES ('arctic.previous' = '')",
        f"announce_drop: ALTER TABLE {shop}.`orders__base_1` SET TBLPROPERTIES {by} = '')",
        f"drop_side_table: DROP TABLE IF EXISTS {shop}.`orders__base_1` PURGE",
        f"announce_drop: ALTER TABLE {shop}.`orders__change_1` SET TBLPROPERTIES {by} = '')",
        f"withdraw_drop: ALTER TABLE {shop}.`orders__change_1` UNSET TBLPROPERTIES IF EXISTS {by})",
    ]
