"""Incremental pull: each change once, whatever the upstream went through since the last run."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.auto.upstreams import Upstream, inspect_upstream
from dbt_arctic.errors import ConcurrentRun, ConfigError, VersionUnavailable
from dbt_arctic.keyed.read import Images
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed, Version
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_condition
from dbt_arctic.maintenance.undo_adoption import undo_adoption
from dbt_arctic.refresh.pull import Pull, plan_changes, plan_pull, pull_since_clone
from dbt_arctic.store.state import load_change
from tests.extent import first, in_turn

Row = dict[str, Any]
ROWS = [{"id": number, "amount": number} for number in range(6)]


def pulled(consumer: Any, first: bool = False) -> list[tuple[Any, ...]]:
    """What the consumer would read of its first upstream now: key, amount, action."""
    _, pulls = consumer.plan(first)
    session = consumer.orders.session
    return sorted(session.query(f"SELECT id, amount, _action FROM ({pulls[0].sql})"), key=str)


def expected_rows(*upstreams: Any) -> list[Row]:
    """The oracle: what the consumer has to hold."""
    found = [{**row, "source": one.name.identifier} for one in upstreams for row in one.rows()]
    return sorted(found, key=lambda row: (str(row["id"]), row["source"]))


def consumer_rows(consumer: Any) -> list[Row]:
    return sorted(consumer.rows(), key=lambda row: (str(row["id"]), row["source"]))


@pytest.mark.modelled
def test_the_first_pull_is_everything_and_later_ones_are_the_changed_keys(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    assert pulled(copy, first=True) == [(n, n, "U") for n in range(6)]
    assert copy.run() == "built"
    assert copy.run() == "skipped"
    orders.apply([{"id": 1, "amount": 10}, {"id": 8, "amount": 8}], [{"id": 2}])
    orders.upsert([{"id": 1, "amount": 11}])
    assert pulled(copy) == [(1, 11, "U"), (2, None, "D"), (8, 8, "U")]
    commits = copy.orders.commits()
    assert shop.main.log_of(lambda: copy.run()) == [
        "create_branch", "upsert", "fast_forward", "drop_branch",
    ]  # fmt: skip
    assert copy.orders.commits() == (commits[0] + 1, commits[1])
    assert consumer_rows(copy) == expected_rows(orders)
    assert copy.run() == "skipped"
    assert copy.orders.commits() == (commits[0] + 1, commits[1])


@pytest.mark.modelled
def test_compaction_and_trim_upstream_neither_hide_nor_repeat_a_change(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 1, "amount": 10}])
    orders.compact()
    orders.upsert([{"id": 2, "amount": 20}])
    orders.compact(grace=3600)
    orders.delete([{"id": 1}])
    orders.compact()
    orders.upsert([{"id": 3, "amount": 30}])
    assert pulled(copy) == [(1, None, "D"), (2, 20, "U"), (3, 30, "U")]
    copy.run()
    assert consumer_rows(copy) == expected_rows(orders)
    orders.compact()
    assert copy.run() == "skipped", "a compaction changes no content"
    copy.orders.compact()
    assert copy.run() == "skipped", "what was consumed survives the consumer's own compaction"
    assert consumer_rows(copy) == expected_rows(orders)


@pytest.mark.modelled
def test_a_column_added_upstream_is_null_in_old_versions(shop: Any) -> None:
    orders = shop.table(on_schema_change="append_new_columns")
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    before = orders.version
    orders.upsert([{"id": 1, "amount": 10}])
    orders.compact()
    wide = orders.with_types({**orders.types, "note": "string"})
    wide.upsert([{"id": 2, "amount": 20, "note": "new"}])
    assert pulled(copy) == [(1, 10, "U"), (2, 20, "U")]
    _, pulls = copy.plan(False)
    rows = shop.main.query(f"SELECT id, note FROM ({pulls[0].sql}) ORDER BY id")
    assert rows == [(1, None), (2, "new")]
    copy.run()
    assert [row["amount"] for row in copy.rows()] == [0, 10, 20, 3, 4, 5]
    text = plan_changes(shop.main.catalog, orders.name, before.token, None, "both", "test")
    assert sorted(shop.main.query(f"SELECT id, amount, note, _action FROM ({text})"), key=str) == [
        (1, 1, None, "-U"), (1, 10, None, "U"), (2, 2, None, "-U"), (2, 20, "new", "U"),
    ]  # fmt: skip


@pytest.mark.modelled
def test_a_column_that_is_added_alone_does_not_stop_readers_at_the_current_version(shop: Any) -> None:
    # The newest snapshots are older than the column: nothing was committed since it was added.
    orders = shop.table(on_schema_change="append_new_columns")
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 1, "amount": 10}])
    wide = orders.with_types({**orders.types, "note": "string"})
    dying = shop.session()
    dying.statements.die(3)  # add to base, add to change, publish: no upsert
    with pytest.raises(Exception, match="before upsert"):
        wide.on(dying).upsert([{"id": 2, "amount": 20, "note": "x"}])
    assert pulled(copy) == [(1, 10, "U")]
    assert [row["note"] for row in wide.rows()] == [None] * 6
    wide.compact()
    assert [(row["amount"], row["note"]) for row in wide.rows()] == [
        (amount, None) for amount in (0, 10, 2, 3, 4, 5)
    ]


@pytest.mark.modelled
@pytest.mark.parametrize("erases", [False, True])
def test_a_statement_that_arrives_again_after_its_merge_is_a_change_for_all(shop: Any, erases: bool) -> None:
    """It is the newest commit then, and stays the newest when it is trimmed."""
    orders = shop.table()
    orders.build([{"id": 1, "amount": 1}, {"id": 2, "amount": 2}, {"id": 3, "amount": 3}])
    copy = shop.consumer("copy", orders)
    copy.run()
    first = orders.upsert([{"id": 1, "amount": 10}])
    orders.upsert([{"id": 1, "amount": 20}])
    orders.compact(600)
    copy.run()
    orders.session.context.run("upsert", first.sql, None)
    copy.run()
    context, rows = (
        shop.main.context,
        [{"id": 1, "amount": 10}, {"id": 2, "amount": 2}, {"id": 3, "amount": 3}],
    )
    if erases:  # a commit to the base that carries on what was merged
        for name in (orders.name, copy.orders.name):
            erase_keys(context, plan_by_condition(context, name, "id = 3"), force=True)
        rows.pop()
    with pytest.raises(ConfigError, match="1 commit not merged"):
        undo_adoption(context, orders.name)
    for grace in (600, 0, 0):
        copy.run()
        assert orders.rows() == rows
        assert consumer_rows(copy) == expected_rows(orders)
        orders.compact(grace)
    assert orders.base_rows() == orders.rows()


@pytest.mark.modelled
def test_rows_whose_type_a_full_refresh_changes_are_read_again(shop: Any) -> None:
    """Spark finds 1 and 1.0 equal, but a model may compute other values from them."""
    orders = shop.table()
    orders.build([{"id": 1, "amount": 1}, {"id": 2, "amount": 2}])
    last = plan_pull(shop.main.catalog, orders.name, None, model="copy").consumed
    orders.with_types({"id": "bigint", "amount": "double"}).build([{"id": 1, "amount": 1.0}])
    pull = plan_pull(shop.main.catalog, orders.name, last, model="copy", images="both")
    found = shop.main.query(f"SELECT id, CAST(amount AS STRING), _action FROM ({pull.sql})")
    assert sorted(found) == [(1, "1.0", "-U"), (1, "1.0", "U"), (2, "2.0", "-U"), (2, "2.0", "D")]
    assert inspect_upstream(shop.main.catalog, orders.name, last).lost == "the type of amount has changed"


@pytest.mark.modelled
def test_a_pull_from_a_clone_compares_what_was_read_from_its_source(shop: Any) -> None:
    """As written: its tables are like those that a clone has after its first write."""

    def pulled_since(images: Images = "after") -> Any:
        pull = pull_since_clone(catalog, clone.name, orders.name, last, model="copy", images=images, pin=None)
        return sorted(shop.main.query(f"SELECT id, CAST(amount AS STRING), _action FROM ({pull.sql})"))

    catalog, orders, clone = shop.main.catalog, shop.table(), shop.table("cloned")
    orders.build([{"id": 1, "amount": 1}, {"id": 2, "amount": 2}, {"id": 3, "amount": 3}])
    last = plan_pull(catalog, orders.name, None, model="copy").consumed
    clone.build([{"id": 1, "amount": 1}, {"id": 2, "amount": 20}])
    assert pulled_since() == [(2, "20", "U"), (3, "3", "D")]
    # The source was rebuilt since, and has the same types: the state that was read is compared.
    orders.build([{"id": 9, "amount": 9}])
    assert pulled_since() == [(2, "20", "U"), (3, "3", "D")]
    # Other types: each row may have another meaning.
    clone.with_types({"id": "bigint", "amount": "double"}).build([{"id": 1, "amount": 1.0}])
    assert pulled_since() == [(1, "1.0", "U"), (2, "2.0", "D"), (3, "3.0", "D")]
    orders.build([{"id": 9, "amount": 9}])
    with pytest.raises(VersionUnavailable, match="rebuilt more than once"):
        pulled_since()


@pytest.mark.modelled
@pytest.mark.parametrize("is_previous", [False, True])
def test_a_pull_from_a_clone_with_another_key_is_refused(shop: Any, is_previous: bool) -> None:
    orders = shop.table(unique_key=["id", "amount"])
    orders.build([{"id": 1, "amount": 1}, {"id": 1, "amount": 2}])
    last = plan_pull(shop.main.catalog, orders.name, None, model="copy").consumed
    if is_previous:
        orders.configured(unique_key="id").build([{"id": 1, "amount": 1}])
    clone = shop.table("cloned")
    clone.build([{"id": 1, "amount": 1}])
    with pytest.raises(VersionUnavailable, match=r"different key|another key"):
        pull_since_clone(
            shop.main.catalog, clone.name, orders.name, last, model="copy", images="after", pin=None
        )


@pytest.mark.modelled
def test_a_full_refresh_upstream_is_read_as_the_difference_of_two_generations(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 2, "amount": 20}])  # never pulled from its own generation
    orders.build(
        [{"id": 0, "amount": 0}, {"id": 1, "amount": 11}, {"id": 2, "amount": 20}, {"id": 9, "amount": 9}]
    )
    orders.upsert([{"id": 9, "amount": 90}])
    assert pulled(copy) == [
        (1, 11, "U"), (2, 20, "U"), (3, 3, "D"), (4, 4, "D"), (5, 5, "D"), (9, 90, "U"),
    ]  # fmt: skip
    copy.run()
    assert consumer_rows(copy) == expected_rows(orders)
    orders.build(ROWS)
    orders.build(ROWS)
    with pytest.raises(VersionUnavailable, match="rebuilt more than once"):
        copy.run()
    copy.run(rebuild=True)
    assert consumer_rows(copy) == expected_rows(orders)


@pytest.mark.modelled
def test_each_of_two_upstreams_is_followed_by_itself(shop: Any) -> None:
    orders, returns = shop.table("orders"), shop.table("returns")
    orders.build(ROWS)
    returns.build([{"id": 1, "amount": -1}])
    both = shop.consumer("both", orders, returns)
    both.run()
    returns.upsert([{"id": 2, "amount": -2}])
    assert both.run() == "upserted"
    orders.delete([{"id": 5}])
    returns.delete([{"id": 1}])
    both.run()
    assert consumer_rows(both) == expected_rows(orders, returns)
    assert both.run() == "skipped"


class Plain:
    """A plain Iceberg table as an upstream."""

    def __init__(self, session: Any, identifier: str) -> None:
        self.session, self.name = session, session.name(identifier)
        session.query(
            f"CREATE TABLE {self.name.sql} (id BIGINT, amount INT) USING iceberg "
            "TBLPROPERTIES ('format-version'='3', 'write.update.mode'='merge-on-read')"
        )

    def do(self, sql: str) -> None:
        self.session.query(sql.format(t=self.name.sql))

    def rows(self) -> list[Row]:
        return list(self.session.read(f"SELECT * FROM {self.name.sql}", ["id", "amount"]))


def test_appends_to_a_plain_table_are_staged_once(shop: Any) -> None:
    plain = Plain(shop.main, "plain")
    copy = shop.consumer("copy", plain.name)
    copy.run()
    assert copy.rows() == []
    assert copy.run() == "skipped"
    plain.do("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    copy.run()
    plain.do("INSERT INTO {t} VALUES (3, 3)")
    plain.do("INSERT INTO {t} VALUES (1, 10)")
    assert pulled(copy) == [(1, 10, "U"), (3, 3, "U")]
    assert copy.pulls[0].stage is not None
    copy.run()
    assert [(row["id"], row["amount"]) for row in copy.rows()] == [(1, 10), (2, 2), (3, 3)]
    assert copy.run() == "skipped"


@pytest.mark.modelled
def test_updates_and_deletes_of_a_plain_table_are_a_difference_by_key(shop: Any) -> None:
    plain = Plain(shop.main, "plain")
    plain.do("INSERT INTO {t} VALUES (1, 1), (2, 2), (3, 3)")
    copy = shop.consumer("copy", plain.name)
    copy.run()
    plain.do("UPDATE {t} SET amount = 20 WHERE id = 2")
    plain.do("DELETE FROM {t} WHERE id = 3")
    plain.do("INSERT INTO {t} VALUES (4, 4)")
    assert pulled(copy) == [(2, 20, "U"), (3, 3, "D"), (4, 4, "U")]
    copy.run()
    assert consumer_rows(copy) == expected_rows(plain)
    plain.do("INSERT OVERWRITE {t} VALUES (1, 1), (7, 7)")
    copy.run()
    assert consumer_rows(copy) == expected_rows(plain)


@pytest.mark.modelled
def test_columns_of_a_plain_table_are_followed_before_the_next_commit(shop: Any) -> None:
    """Renamed, added, made wider: its newest snapshot still has those of before."""
    plain = Plain(shop.main, "plain")
    plain.do("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    for change in ("RENAME COLUMN amount TO old", "ADD COLUMN amount INT", "ALTER COLUMN old TYPE BIGINT"):
        plain.do(f"ALTER TABLE {{t}} {change}")
    plain.do("ALTER TABLE {t} DROP COLUMN amount")
    plain.do("ALTER TABLE {t} RENAME COLUMN old TO amount")
    copy = shop.consumer("copy", plain.name)
    copy.run()
    assert consumer_rows(copy) == expected_rows(plain)
    plain.do("UPDATE {t} SET amount = 20 WHERE id = 2")
    copy.run()
    assert consumer_rows(copy) == expected_rows(plain)


@pytest.mark.modelled
def test_updates_of_a_plain_table_without_a_key_are_an_error(shop: Any) -> None:
    plain = Plain(shop.main, "plain")
    plain.do("INSERT INTO {t} VALUES (1, 1)")
    copy = shop.consumer("copy", plain.name)
    copy.run()
    plain.do("UPDATE {t} SET amount = 2")
    keyless = type(copy)(copy.orders.configured(unique_key=[]), copy.upstreams)
    with pytest.raises(ConfigError, match="incremental_pull") as raised:
        keyless.plan(False)
    assert "no key" in raised.value.what


@pytest.mark.modelled
def test_a_plain_table_that_was_dropped_and_made_again_is_another_table(shop: Any) -> None:
    plain = Plain(shop.main, "plain")
    plain.do("INSERT INTO {t} VALUES (1, 1)")
    copy = shop.consumer("copy", plain.name)
    copy.run()
    plain.do("DROP TABLE {t}")
    again = Plain(shop.main, "plain")
    with pytest.raises(VersionUnavailable, match="full-refresh"):
        copy.run()
    again.do("INSERT INTO {t} VALUES (1, 2)")
    with pytest.raises(VersionUnavailable, match="full-refresh"):
        copy.run()


@pytest.mark.modelled
def test_an_upstream_that_was_renamed_is_read_on(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.delete([{"id": ROWS[0]["id"]}])
    renamed = orders.name.sibling("renamed")
    shop.main.query(f"ALTER VIEW {orders.name.sql} RENAME TO {renamed.schema}.{renamed.identifier}")
    assert pulled(shop.consumer("copy", renamed)) == [(ROWS[0]["id"], None, "D")]


@pytest.mark.modelled
@pytest.mark.parametrize("plain", [False, True], ids=["keyed", "plain"])
def test_a_run_that_began_before_another_reads_nothing_anew(shop: Any, plain: bool) -> None:
    """With `consistent_reads`, the one that began later may have been faster."""
    if plain:
        table = Plain(shop.main, "plain")
        name, change = table.name, lambda: table.do("INSERT INTO {t} VALUES (1, 1)")
    else:
        orders = shop.table()
        orders.build(ROWS)
        name, change = orders.name, lambda: orders.upsert([{"id": 1, "amount": 10}])
    change()
    catalog = shop.main.catalog

    def read(last: Consumed | None, pin: Consumed | None) -> Pull:
        return plan_pull(catalog, name, last, model="m", key=("id",), pin=pin)

    begun = read(None, None).consumed
    change()
    later = read(begun, None).consumed
    assert later != begun
    again = read(later, begun)
    assert (again.changed, again.consumed) == (False, later)
    assert shop.main.query(f"SELECT count(*) FROM ({again.sql})") == [(0,)]
    assert read(begun, later).changed
    found = inspect_upstream(catalog, name, later, begun)
    assert isinstance(found, Upstream)
    assert (found.changed, found.consumed) == (False, later)


@pytest.mark.modelled
def test_a_plain_table_that_was_empty_when_a_run_began_takes_nothing_back(shop: Any) -> None:
    table = Plain(shop.main, "plain_and_empty")
    catalog = shop.main.catalog

    def read(last: Consumed | None, pin: Consumed | None) -> Pull:
        return plan_pull(catalog, table.name, last, model="m", key=("id",), pin=pin)

    begun = read(None, None).consumed
    assert begun.version == "0"
    table.do("INSERT INTO {t} VALUES (1, 1)")
    later = read(begun, None).consumed
    again = read(later, begun)
    assert (again.changed, again.consumed) == (False, later)
    first = read(None, begun)
    assert (first.consumed, shop.main.query(f"SELECT count(*) FROM ({first.sql})")) == (begun, [(0,)])
    found = inspect_upstream(catalog, table.name, later, begun)
    assert isinstance(found, Upstream)
    assert (found.changed, found.consumed) == (False, later)


@pytest.mark.modelled
def test_of_two_runs_at_once_the_second_writes_nothing(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    first = shop.consumer("copy", orders)
    first.run()
    orders.upsert([{"id": 1, "amount": 10}])
    slow = first.on(shop.session())
    plan = slow.plan(False)
    orders.upsert([{"id": 1, "amount": 11}])
    first.run()
    with pytest.raises(ConcurrentRun):
        slow.write(*plan)
    assert consumer_rows(first) == expected_rows(orders)
    assert first.run() == "skipped"


@pytest.mark.parametrize("step", first(1, ["fast_forward", "upsert", "create_branch"]))
@pytest.mark.modelled
def test_a_run_that_is_overtaken_at_any_step_never_writes_old_over_new(shop: Any, step: str) -> None:
    orders = shop.table()
    orders.build(ROWS)
    first = shop.consumer("copy", orders)
    first.run()
    orders.upsert([{"id": 1, "amount": 10}])
    session = shop.session()
    slow = first.on(session)
    plan = slow.plan(False)

    def overtake(at: str) -> None:
        if at == step:
            session.statements.before = None
            orders.upsert([{"id": 1, "amount": 11}])
            first.run()

    session.statements.before = overtake
    with pytest.raises(ConcurrentRun):
        slow.write(*plan)
    assert consumer_rows(first) == expected_rows(orders)
    assert first.run() == "skipped"


@pytest.mark.modelled
def test_a_blind_write_that_gets_in_between_only_makes_the_pull_try_again(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 1, "amount": 10}])
    session = shop.session()

    def correct(step: str) -> None:
        if step == "fast_forward":
            session.statements.before = None
            copy.orders.upsert([{"id": 100, "amount": 1, "source": "by hand"}])

    session.statements.before = correct
    assert copy.on(session).run() == "upserted"
    assert session.statements.steps.count("fast_forward") == 1
    assert session.statements.steps.count("upsert") == 2
    by_hand = {"id": 100, "amount": 1, "source": "by hand"}
    assert [row for row in consumer_rows(copy) if row != by_hand] == expected_rows(orders)
    assert by_hand in consumer_rows(copy)
    assert copy.run() == "skipped"


def writes(consumer: Any) -> int:
    """How many commits of changes main of the consumer's table has."""
    table = consumer.orders.table
    history = load_change(consumer.orders.session.catalog, table).history()
    return sum("arctic.txn" in snapshot.summary for snapshot in history)


def replayed(before: list[Row], events: list[tuple[Any, ...]], images: str) -> dict[int, int]:
    """One state turned into another by what ``changes`` says, which must fit at each step."""
    old = {row["id"]: row["amount"] for row in before}
    state = dict(old)
    for key, amount, action in events:
        if action in ("D", "-U"):
            assert old[key] == amount
        if action == ("-U" if images == "both" else "D"):
            del state[key]
    for key, amount, action in events:
        assert action == "-U" or key not in state or images == "after"
        if action == "U":
            state[key] = amount
    return state


@pytest.mark.modelled
def test_changes_turn_any_older_version_into_any_newer_one(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    versions: list[tuple[Version, list[Row]]] = []

    def note() -> None:
        versions.append((orders.version, orders.rows()))

    note()
    orders.apply([{"id": 1, "amount": 10}, {"id": 7, "amount": 7}], [{"id": 2}, {"id": 50}])
    note()
    orders.compact(grace=3600)
    orders.upsert([{"id": 2, "amount": 2}, {"id": 1, "amount": 1}])
    note()
    orders.compact()
    orders.delete([{"id": 7}])
    note()
    orders.compact()
    note()
    for version, rows in versions:
        assert orders.rows_at(version) == rows, "a version is read as it was"
    for a, b, images in [
        (0, 4, "after"), (0, 1, "both"), (1, 3, "both"), (2, 4, "after"),
        (3, 4, "both"), (2, 2, "both"),
    ]:  # fmt: skip
        before, after = versions[a], versions[b]
        text = plan_changes(shop.main.catalog, orders.name, before[0].token, after[0].token, images, "test")
        events = shop.main.query(f"SELECT id, amount, _action FROM ({text})")
        assert replayed(before[1], events, images) == {row["id"]: row["amount"] for row in after[1]}
        ids = [(event[0], event[2] == "-U") for event in events]  # a row and an image a key, no more
        assert len(ids) == len(set(ids))
    with pytest.raises(VersionUnavailable):
        plan_changes(shop.main.catalog, orders.name, versions[2][0].token, versions[1][0].token, "after", "t")


@in_turn("die", "lose_the_answer")
@pytest.mark.modelled
def test_a_consumer_that_is_cut_off_at_any_statement_skips_and_repeats_nothing(
    shop: Any, cut_off: Any, ways: tuple[str, ...]
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    for at in range(10):
        orders.apply([{"id": at, "amount": 100 + at}, {"id": 50, "amount": at}], [{"id": at - 1}])
        if at % 2:
            orders.compact()
        session = shop.session()
        getattr(session.statements, ways[at % len(ways)])(at)
        before = writes(copy)
        try:
            copy.on(session).run()
        except cut_off:
            ended = False
        else:
            ended = len(session.statements.ran) <= at  # there was no such statement
        copy.run()
        assert consumer_rows(copy) == expected_rows(orders), (ways, at)
        assert writes(copy) == before + 1, "each change is committed once"
        assert copy.run() == "skipped"
        if ended:
            assert at == 4
            return
    raise AssertionError("a run has fewer statements")


@pytest.mark.modelled
def test_a_generation_is_read_by_the_key_that_it_had(shop: Any) -> None:
    from dbt_arctic.refresh.pull import plan_merge_on_read

    orders = shop.table()
    consumer = shop.consumer("copy", orders)
    orders.build([{"id": 1, "amount": 1}])
    orders.upsert([{"id": 1, "amount": 2}])
    consumer.run()
    version = orders.version
    orders.configured(unique_key=["id", "amount"]).build([{"id": 1, "amount": 3}])
    text = plan_merge_on_read(shop.main.catalog, orders.name, version.token, "test")
    assert shop.main.query(f"SELECT id, amount FROM ({text})") == [(1, 2)]
    with pytest.raises(VersionUnavailable, match="a different key"):
        consumer.run()


@pytest.mark.modelled
def test_values_that_a_rebuild_has_rounded_are_told(shop: Any) -> None:
    orders = shop.table(types={"id": "bigint", "amount": "decimal(10,2)"})
    consumer = shop.consumer("copy", orders)
    orders.build([{"id": 1, "amount": "1.40"}, {"id": 2, "amount": "2.00"}])
    consumer.run()
    orders.with_types({"id": "bigint", "amount": "decimal(10,0)"}).build(
        [{"id": 1, "amount": "1"}, {"id": 2, "amount": "2"}]
    )
    consumer.run()
    assert [float(row["amount"]) for row in consumer_rows(consumer)] == [1.0, 2.0]


@pytest.mark.modelled
def test_keys_of_another_type_are_not_compared_with_those_of_before(shop: Any) -> None:
    """`'01'` and `'1'` were two keys, and are one number."""
    orders = shop.table(types={"id": "string", "amount": "int"})
    consumer = shop.consumer("copy", orders)
    orders.build([{"id": "01", "amount": 1}])
    consumer.run()
    orders.with_types({"id": "int", "amount": "int"}).build([{"id": 1, "amount": 1}])
    with pytest.raises(VersionUnavailable, match="a different key type"):
        consumer.run()


@pytest.mark.modelled
def test_a_version_of_a_retired_generation_is_still_readable(shop: Any) -> None:
    from dbt_arctic.refresh.pull import plan_merge_on_read

    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    old: KeyedTable = orders.table
    version = orders.version
    orders.build([])
    assert orders.table.previous == old.generation
    text = plan_merge_on_read(shop.main.catalog, orders.name, version.token, "test")
    assert sorted(shop.main.query(f"SELECT id, amount FROM ({text})"))[:2] == [(0, 0), (1, 10)]
