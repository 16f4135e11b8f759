"""While one generation takes the place of another, whatever else happens: nothing lost, nothing older shown.

Others act right before a statement of a build, so each order of events is one that is written down here. The
table is a dict in each test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError, ConcurrentRun, ConstraintBroken
from dbt_arctic.maintenance.restore import restore_table, undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import make_savepoint
from dbt_arctic.refresh.build import begin, build_generation
from dbt_arctic.refresh.comments import describe
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store import computed_write, lease
from dbt_arctic.store.generations import load_generation
from dbt_arctic.store.publish_view import observe_view, publish_generation
from dbt_arctic.store.replay import pin_retired
from tests.extent import first

Row = dict[str, Any]
STEPS = [
    "create_base", "order_base", "fill_base",
    "create_change", "first_commit", "keep_statistics", "publish_view",
]  # fmt: skip
ROWS = [{"id": number, "amount": number} for number in range(4)]
NEW = [{"id": 1, "amount": 100}, {"id": 20, "amount": 20}]


def amounts(orders: Any) -> dict[int, int]:
    rows = orders.rows()
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


def of(rows: list[Row]) -> dict[int, int]:
    return {row["id"]: row["amount"] for row in rows}


def at(session: Any, step: str, action: Callable[[], Any]) -> None:
    """Let others act once, right before a statement of a session."""

    def before(now: str) -> None:
        if now == step:
            session.statements.before = None
            action()

    session.statements.before = before


@pytest.fixture
def orders(shop: Any) -> Any:
    made = shop.table()
    made.build(ROWS)
    return made


@pytest.mark.parametrize("step", ["comment_table", "publish_view"])
@pytest.mark.modelled
def test_a_column_that_comes_while_a_view_is_replaced_is_still_shown(shop: Any, step: str) -> None:
    orders = shop.table("orders", {"id": "bigint", "amount": "int"}, on_schema_change="sync_all_columns")
    orders.build(ROWS)
    session = shop.session()
    wider = orders.with_types({**orders.types, "extra": "string"})
    row = {"id": 1, "amount": 5, "extra": "x"}
    at(session, step, lambda: wider.upsert([row]))
    describe(session.context, orders.name, "All orders", {"amount": "in cents"})
    assert session.statements.before is None
    assert row in wider.rows()
    wider.upsert([{"id": 2, "amount": 6, "extra": "y"}])
    wider.compact()
    assert row in wider.rows(), "nor is it taken for one that was to be dropped"
    view = shop.main.catalog.load_view(orders.name.schema, orders.name.identifier)
    assert view.comment == "All orders"
    assert [column.name for column in view.columns] == ["id", "amount", "extra"]


@pytest.mark.modelled
def test_marks_of_altered_views_do_not_pile_up(shop: Any, orders: Any) -> None:
    for number in range(10):
        describe(shop.main.context, orders.name, f"{number}", {})
    view = shop.main.catalog.load_view(orders.name.schema, orders.name.identifier)
    assert view.comment == "9"
    assert 0 < sum(name.startswith("arctic.altered-") for name in view.properties) < 9


@pytest.mark.modelled
def test_of_two_changes_of_columns_one_is_shown(shop: Any) -> None:
    types = {"id": "bigint", "amount": "int"}
    orders = shop.table("orders", types, on_schema_change="append_new_columns")
    orders.build(ROWS)
    first = orders.with_types({**types, "first": "smallint"})
    second = orders.with_types({**types, "second": "string"}).on(shop.session())
    seen: list[str] = []

    def before(step: str) -> None:
        # Right before the second publishes its view, and so after it has looked.
        if step == "publish_view" and not seen:
            seen.append(step)
            first.upsert([{"id": 1, "amount": 5, "first": 2}])

    second.session.statements.before = before
    with pytest.raises(ConcurrentRun, match="changed the columns"):
        second.upsert([{"id": 2, "amount": 6, "second": "y"}])
    assert orders.table.column_names == ("id", "amount", "first")
    assert {"id": 1, "amount": 5, "first": 2} in first.rows()
    second.upsert([{"id": 2, "amount": 6, "second": "y"}])
    assert {"id": 1, "amount": 5, "first": 2} in first.rows()


@pytest.mark.modelled
def test_a_full_refresh_beside_a_table_of_a_newer_protocol(shop: Any, orders: Any) -> None:
    other = shop.table("other")
    other.build(ROWS)
    shop.main.query(f"ALTER VIEW {other.name.sql} SET TBLPROPERTIES ('arctic.protocol' = '99')")
    orders.build(NEW)
    assert amounts(orders) == of(NEW)


@pytest.fixture
def without_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lease counts as over, as if it had not been renewed: what is shown is safe all the same."""
    monkeypatch.setattr(lease, "is_living", lambda properties, now_ms: False)


@pytest.mark.modelled
def test_what_lands_before_any_statement_of_a_full_refresh_is_in_the_new_table(
    shop: Any, orders: Any
) -> None:
    orders.upsert([{"id": 3, "amount": -3}, {"id": 20, "amount": -20}])  # before: the build has it, or not
    session = shop.session()
    model = of(NEW)
    seen: list[str] = []

    def before(step: str) -> None:
        seen.append(step)
        number = len(seen)
        orders.apply(
            [{"id": 50 + number, "amount": number}, {"id": 1, "amount": number}], [{"id": 49 + number}]
        )
        model.update({50 + number: number, 1: number})
        model.pop(49 + number, None)

    session.statements.before = before
    orders.on(session).build(NEW)
    session.statements.before = None
    replays = ["create_branch", "replay", "fast_forward", "drop_branch"]
    assert seen == [*STEPS[:-1], *replays, "publish_view", *replays]
    # What came before the first statement ended before the table was begun, but after it was looked at.
    assert amounts(orders) == model
    assert shop.main.log_of(lambda: orders.upsert([{"id": 1, "amount": -1}])) == ["upsert"]
    orders.compact()
    assert amounts(orders) == {**model, 1: -1} == of(orders.base_rows())


@pytest.mark.long
def test_a_full_refresh_that_is_cut_off_after_its_switch_leaves_the_rest_to_the_next_writer(
    shop: Any, cut_off: Any
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for count in range(len(STEPS), len(STEPS) + 5):
        session = shop.session()
        at(session, "publish_view", lambda: orders.apply([{"id": 7, "amount": 7}], [{"id": 20}]))
        session.statements.die(count)
        generation = orders.table.generation.number
        try:
            orders.on(session).build(NEW)
        except cut_off:
            assert orders.table.generation.number == generation + 1
        orders.upsert([{"id": 8, "amount": count}])
        assert amounts(orders) == {1: 100, 7: 7, 8: count}
        session.connection.close()
    assert len(session.statements.ran) == count, "each was cut off"
    assert shop.main.log_of(lambda: orders.upsert([{"id": 8, "amount": 0}])) == ["upsert"]


@pytest.mark.long
def test_a_late_writer_that_is_cut_off_leaves_all_or_nothing(shop: Any, cut_off: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for count in range(1, 5):
        session = shop.session()
        at(session, "upsert", lambda: orders.build(NEW))
        session.statements.die(count)
        with pytest.raises(cut_off):
            orders.on(session).apply([{"id": 7, "amount": 7}], [{"id": 20}])
        orders.upsert([{"id": 8, "amount": count}])
        landed = amounts(orders)
        assert landed in ({1: 100, 7: 7, 8: count}, {1: 100, 20: 20, 8: count})
        session.connection.close()


@pytest.mark.modelled
def test_a_late_writer_does_not_override_what_was_written_to_the_new_table(shop: Any, orders: Any) -> None:
    session = shop.session()

    def meanwhile() -> None:
        orders.build(NEW)
        orders.apply([{"id": 5, "amount": 55}], [{"id": 6}])
        orders.compact()

    at(session, "upsert", meanwhile)
    rows = [{"id": number, "amount": 1} for number in (5, 6, 7)]
    orders.on(session).upsert(rows)
    assert amounts(orders) == {**of(NEW), 5: 55, 7: 1}


@pytest.mark.modelled
def test_with_a_sequence_the_sequence_decides_between_a_late_writer_and_the_new_table(shop: Any) -> None:
    orders = shop.table(types={"id": "bigint", "amount": "int"}, sequence_by="amount")
    orders.build(ROWS)
    session = shop.session()

    def meanwhile() -> None:
        orders.build([{"id": 1, "amount": 50}, {"id": 2, "amount": 1}])
        orders.upsert([{"id": 3, "amount": 30}, {"id": 4, "amount": 1}])

    at(session, "upsert", meanwhile)
    orders.on(session).upsert([{"id": number, "amount": 20} for number in (1, 2, 3, 4)])
    assert amounts(orders) == {1: 50, 2: 20, 3: 30, 4: 20}


@pytest.mark.modelled
def test_a_late_writer_of_two_generations_ago_writes_to_the_one_that_is_shown(shop: Any, orders: Any) -> None:
    session = shop.session()

    def meanwhile() -> None:
        orders.build(NEW)
        orders.build(ROWS[:1])

    make_savepoint(shop.main.context, orders.name, "kept")  # keeps the generation, too
    at(session, "upsert", meanwhile)
    orders.on(session).upsert([{"id": 7, "amount": 7}])
    assert amounts(orders) == {**of(ROWS[:1]), 7: 7}
    at(session, "upsert", meanwhile)
    with pytest.raises(ArcticError, match="orders__change_3"):
        orders.on(session).upsert([{"id": 8, "amount": 8}])  # its generation is gone
    assert amounts(orders) == of(ROWS[:1])


@pytest.mark.long
def test_a_compaction_beside_a_full_refresh_takes_nothing_from_it(shop: Any, orders: Any) -> None:
    session = shop.session()
    model = of(NEW)

    def before(step: str) -> None:
        if step in ("fill_base", "publish_view"):
            key = 60 + len(model)
            orders.upsert([{"id": key, "amount": key}])
            orders.compact()
            model[key] = key

    session.statements.before = before
    orders.on(session).build(NEW)
    assert amounts(orders) == model

    # The other way round: the generation is retired while it is compacted.
    other = shop.session()
    for step in ("create_branch", "merge", "fast_forward", "trim"):
        orders.upsert([{"id": 1, "amount": 5}])
        at(other, step, lambda: orders.build(NEW))
        orders.on(other).compact()
        assert amounts(orders) == of(NEW)


@pytest.mark.modelled
def test_a_second_full_refresh_ends_at_once_and_says_who_builds(shop: Any, orders: Any) -> None:
    session = shop.session()
    refused: list[str] = []

    def before(step: str) -> None:
        if step != "create_base":
            ran = len(shop.main.statements.ran)
            with pytest.raises(ConcurrentRun, match=r"(?s)another run is building .* process \d+ on"):
                orders.build(ROWS)
            assert len(shop.main.statements.ran) == ran
            refused.append(step)

    session.statements.before = before
    orders.on(session).build(NEW)
    assert refused == STEPS[1:]
    assert amounts(orders) == of(NEW)

    at(session, "create_base", lambda: orders.build(ROWS))
    with pytest.raises(ConcurrentRun, match="another run is building generation 3"):
        orders.on(session).build(NEW)
    assert amounts(orders) == of(ROWS)


@pytest.mark.modelled
def test_a_base_table_that_another_thread_has_just_created_is_not_taken_for_an_abandoned_one(
    shop: Any, orders: Any
) -> None:
    session = shop.session()
    refused: list[str] = []

    def run(step: str, sql: str, table: Any = None) -> int | None:
        rows = session.statements(step, sql, table)
        if step == "create_base":
            with pytest.raises(ConcurrentRun, match="another run is building") as caught:
                orders.build(ROWS)
            refused.append(str(caught.value))
        return rows

    session.context = replace(session.context, run=run)
    orders.on(session).build(NEW)
    assert len(refused) == 1
    assert amounts(orders) == of(NEW)


@pytest.mark.parametrize("step", first(1, ["publish_view", "fill_base", "keep_statistics"]))
@pytest.mark.modelled
def test_of_two_full_refreshes_without_a_lease_the_one_that_is_overtaken_shows_nothing(
    shop: Any, orders: Any, without_leases: None, step: str
) -> None:
    session = shop.session()
    at(session, step, lambda: orders.build(NEW))
    with pytest.raises(ConcurrentRun, match="another run was faster"):
        orders.on(session).build(ROWS)
    assert amounts(orders) == of(NEW)
    assert (orders.table.generation.number, orders.table.previous.number) == (3, 1)
    orders.upsert([{"id": 2, "amount": 2}])
    assert amounts(orders) == {**of(NEW), 2: 2}


@pytest.mark.modelled
def test_what_was_written_to_a_generation_that_gave_way_is_carried_over(
    shop: Any, orders: Any, without_leases: None
) -> None:
    session = shop.session()
    load = session.catalog.load_view
    left = [1]

    def load_view(schema: str, name: str) -> Any:
        # The read after the switch: until then, other runs saw the replaced generation.
        if left[0] and session.statements.steps[-1:] == ["publish_view"]:
            left[0] = 0
            assert orders.table.generation.number == 2
            orders.upsert([{"id": 9, "amount": 9}])
        return load(schema, name)

    session.catalog.load_view = load_view
    at(session, "publish_view", lambda: orders.build(NEW))
    with pytest.raises(ConcurrentRun):
        orders.on(session).build(ROWS)
    assert left == [0]
    assert amounts(orders) == {**of(NEW), 9: 9}


@pytest.mark.modelled
def test_a_computed_commit_that_takes_a_build_for_ended_is_not_replaced_by_it(
    shop: Any, orders: Any, without_leases: None
) -> None:
    """The builder was paused after its last look at the old table, or its clock is behind."""
    token = orders.version.token
    orders.upsert([{"id": 1, "amount": 11}])
    session = shop.session()

    def write() -> None:
        roll_back(shop.main.context, orders.name, token)
        assert amounts(orders) == of(ROWS), "it reports success, and readers see it"

    for step in ("publish_view", "first_commit"):
        at(session, step, write)
        with pytest.raises(ConcurrentRun, match=r"another run changed|cannot carry over"):
            orders.on(session).build(NEW)
        assert amounts(orders) == of(ROWS)
        orders.upsert([{"id": 1, "amount": 11}])
        assert amounts(orders) == {**of(ROWS), 1: 11}
    orders.build(NEW)
    orders.upsert([{"id": 2, "amount": 22}])
    assert amounts(orders) == {**of(NEW), 2: 22}


@pytest.mark.modelled
def test_nothing_is_written_to_a_generation_that_is_about_to_give_way(
    shop: Any, orders: Any, without_leases: None
) -> None:
    token = orders.version.token
    session = shop.session()
    steps = iter(["publish_view", "publish_view"])

    def before(step: str) -> None:
        if step == "publish_view":
            if next(steps, None) is None:
                return
            if orders.table.generation.number == 1:
                roll_back(shop.main.context, orders.name, token)
                return
            with pytest.raises(ConcurrentRun, match="cannot be carried over"):
                orders.upsert([{"id": 9, "amount": 9}])

    session.statements.before = before
    with pytest.raises(ConcurrentRun, match="another run changed"):
        orders.on(session).build(NEW)
    assert next(steps, None) is None
    assert amounts(orders) == of(ROWS)
    orders.upsert([{"id": 9, "amount": 9}])
    assert amounts(orders) == {**of(ROWS), 9: 9}


@pytest.mark.modelled
def test_a_build_that_is_cut_off_before_it_gives_way_stops_the_next_writer(
    shop: Any, orders: Any, without_leases: None, cut_off: Any
) -> None:
    token = orders.version.token
    session = shop.session()
    at(session, "publish_view", lambda: roll_back(shop.main.context, orders.name, token))
    session.statements.die(len(STEPS))
    with pytest.raises(cut_off):
        orders.on(session).build(NEW)
    with pytest.raises(ConcurrentRun, match="cannot be carried over") as error:
        orders.upsert([{"id": 9, "amount": 9}])
    assert "--previous" in error.value.fix
    undo_full_refresh(shop.main.context, orders.name)
    assert amounts(orders) == of(ROWS)
    orders.upsert([{"id": 9, "amount": 9}])
    assert amounts(orders) == {**of(ROWS), 9: 9}


@pytest.mark.modelled
def test_a_computed_commit_reports_no_success_if_a_build_was_only_slow(
    shop: Any, orders: Any, cut_off: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = orders.version.token
    session, writer = shop.session(), shop.session()
    session.statements.die(STEPS.index("publish_view"))
    before, retired = observe_view(session.context, orders.name), pin_retired(session.catalog, orders.table)
    with pytest.raises(cut_off):
        orders.on(session).build(NEW)
    monkeypatch.setattr(lease, "is_living", lambda properties, now_ms: False)
    monkeypatch.setattr(lease, "_runs", lambda lease, properties: None)

    def resume() -> None:
        context = shop.main.context
        built = load_generation(context.catalog, orders.name, orders.name.identifier, 2)
        publish_generation(context, built, "", before, retired, where="orders")

    at(writer, "overtake_build", resume)
    with pytest.raises(ConcurrentRun, match="a full refresh is replacing"):
        roll_back(writer.context, orders.name, token)
    assert writer.statements.before is None
    assert amounts(orders) == of(NEW)
    orders.upsert([{"id": 9, "amount": 9}])
    assert amounts(orders) == {**of(NEW), 9: 9}


@pytest.mark.modelled
def test_an_undo_and_a_full_refresh_exclude_each_other(shop: Any, orders: Any) -> None:
    orders.build(NEW)
    session = shop.session()
    refused: list[str] = []

    def before(step: str) -> None:
        if step in STEPS[1:]:
            with pytest.raises(ConcurrentRun, match="cannot be restored now"):
                undo_full_refresh(shop.main.context, orders.name)
            with pytest.raises(ConcurrentRun, match="rollback has to wait"):
                roll_back(shop.main.context, orders.name, orders.version.token)
            refused.append(step)

    session.statements.before = before
    orders.on(session).build(ROWS)
    assert refused == STEPS[1:]
    assert amounts(orders) == of(ROWS)

    at(session, "publish_view", lambda: orders.build(NEW[:1]))
    with pytest.raises(ConcurrentRun, match="another run was faster"):
        undo_full_refresh(session.context, orders.name)
    assert amounts(orders) == of(NEW[:1])


@pytest.mark.parametrize("step", ["fill_base", "publish_view"])
@pytest.mark.modelled
def test_an_undo_that_gets_past_the_lease_of_a_full_refresh_is_not_replaced_by_it(
    shop: Any, orders: Any, without_leases: None, step: str
) -> None:
    orders.build(NEW)
    session = shop.session()
    at(session, step, lambda: restore_table(shop.main.context, orders.name, 1))
    with pytest.raises(ConcurrentRun, match="another run was faster"):
        orders.on(session).build([])
    assert amounts(orders) == of(ROWS)


@pytest.mark.modelled
def test_what_lands_while_a_full_refresh_is_undone_is_in_the_table_that_is_shown_again(
    shop: Any, orders: Any
) -> None:
    orders.upsert([{"id": 1, "amount": 11}])
    orders.build(NEW)
    orders.upsert([{"id": 2, "amount": -2}])  # given up with the generation
    session = shop.session()
    at(session, "publish_view", lambda: orders.upsert([{"id": 1, "amount": 12}, {"id": 9, "amount": 9}]))
    undo_full_refresh(session.context, orders.name)
    model = {**of(ROWS), 1: 12, 9: 9}
    assert amounts(orders) == model
    late = shop.session()
    at(late, "upsert", lambda: undo_full_refresh(shop.main.context, orders.name))
    orders.on(late).upsert([{"id": 8, "amount": 8}])
    assert amounts(orders) == {**of(NEW), 2: -2, 1: 12, 9: 9, 8: 8}


@pytest.mark.modelled
def test_a_pull_beside_a_full_refresh_is_consumed_by_exactly_one_of_them(shop: Any) -> None:
    source = shop.table("source")
    source.build(ROWS)
    copy = shop.consumer("copy", source)
    copy.run()
    session = shop.session()

    def before(step: str) -> None:
        if step in ("create_base", "fill_base", "keep_statistics", "publish_view"):
            source.apply([{"id": 1, "amount": len(step)}, {"id": len(step), "amount": 0}], [{"id": 0}])
            assert copy.run() == "upserted"

    session.statements.before = before
    rebuilt = copy.on(session)
    rebuilt.run(rebuild=True)
    assert "replay" not in session.statements.steps, "the next pull delivers it"
    assert copy.run() == "upserted"
    assert [(row["id"], row["amount"]) for row in copy.rows()] == [
        (row["id"], row["amount"]) for row in source.rows()
    ]
    assert copy.run() == "skipped"


@pytest.mark.modelled
def test_a_computed_write_that_gets_past_the_lease_ends_the_full_refresh_or_itself(
    shop: Any, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = orders.version.token
    orders.upsert([{"id": 1, "amount": 10}])
    monkeypatch.setattr(computed_write, "refuse_during_build", lambda *of: None)
    session = shop.session()
    at(session, "fill_base", lambda: roll_back(shop.main.context, orders.name, first))
    with pytest.raises(ConcurrentRun, match="cannot carry over"):
        orders.on(session).build(NEW)
    assert amounts(orders) == of(ROWS)
    assert session.statements.steps[-2:] == ["drop_side_table", "drop_side_table"]

    def too_late() -> None:
        with pytest.raises(ConcurrentRun, match="right now"):
            roll_back(shop.main.context, orders.name, first)

    orders.upsert([{"id": 1, "amount": 10}])
    at(session, "publish_view", too_late)
    orders.on(session).build(NEW)
    assert amounts(orders) == of(NEW)


@pytest.mark.modelled
def test_a_run_that_changes_columns_does_not_show_a_retired_generation_again(shop: Any, orders: Any) -> None:
    session = shop.session()
    wide = orders.with_types({**orders.types, "note": "string"}).configured(
        on_schema_change="append_new_columns"
    )
    at(session, "publish_view", lambda: orders.build(NEW))
    with pytest.raises(ConcurrentRun, match="another run was faster"):
        wide.on(session).upsert([{"id": 1, "amount": 1, "note": "x"}])
    assert amounts(orders) == of(NEW)
    wide.upsert([{"id": 1, "amount": 1, "note": "x"}])
    assert [row["note"] for row in wide.rows()] == ["x", None]


@pytest.mark.modelled
def test_rows_that_the_new_table_cannot_take_end_the_full_refresh_or_their_writer(
    shop: Any, orders: Any
) -> None:
    session = shop.session()
    other_key = orders.configured(unique_key="amount")
    at(session, "fill_base", lambda: orders.upsert([{"id": 1, "amount": 7}]))
    with pytest.raises(ConcurrentRun, match="the key changed"):
        other_key.on(session).build(NEW)
    assert amounts(orders) == {**of(ROWS), 1: 7}

    def strict() -> Any:
        config = parse_config("orders", orders.config)
        needs = type(config)(**{**vars(config), "required": ("amount",)})
        return build_generation(
            session.context, orders.name, needs, orders.model(NEW), {}, owner="model.test"
        )

    at(session, "fill_base", lambda: orders.upsert([{"id": 1, "amount": None}]))
    with pytest.raises(ConstraintBroken):
        strict()
    assert amounts(orders) == {**of(ROWS), 1: None}
    late = shop.session()
    at(late, "upsert", strict)
    with pytest.raises(ConstraintBroken):
        orders.on(late).upsert([{"id": 1, "amount": None}])
    assert amounts(orders) == of(NEW)


@pytest.mark.modelled
def test_what_lands_while_rows_are_computed_before_the_build_is_not_lost(shop: Any, orders: Any) -> None:
    context, config = shop.main.context, parse_config("orders", orders.config)

    def build(beginning: Any) -> None:
        build_generation(
            context, orders.name, config, orders.model(NEW), {}, owner="model.test", beginning=beginning
        )

    beginning = begin(context, orders.name)
    orders.upsert([{"id": 9, "amount": 9}])
    build(beginning)
    assert amounts(orders) == {**of(NEW), 9: 9}
    ran = len(shop.main.statements.ran)
    with pytest.raises(ConcurrentRun, match="was faster"):
        build(beginning)
    assert len(shop.main.statements.ran) == ran


@pytest.mark.modelled
def test_a_failed_build_leaves_nothing_and_the_next_goes_on(shop: Any, orders: Any, schema: str) -> None:
    with pytest.raises(Exception, match="AR-304"):
        orders.build([ROWS[0], ROWS[0]])
    names = {entry.name for entry in shop.main.catalog.list_names(schema)}
    assert names == {"orders", "orders__base_1", "orders__change_1"}
    orders.build(NEW)
    assert orders.table.generation.number == 2
