"""Each known way to get the protocol wrong is put in on purpose, and has to be noticed.

A story that is right as it is has to fail with the mistake in it. What notices is what notices in the random
stories too: rows compared with a dict, also before each statement; the base with what was merged; the log
with what was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dbt_arctic.compaction import major
from dbt_arctic.errors import ArcticError, StatementError
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.replace import from_attempt
from dbt_arctic.maintenance import claims, expire_plan
from dbt_arctic.refresh import build, upsert
from dbt_arctic.store import computed_write, publish_view, state
from dbt_arctic.store.state import load_base, load_change
from tests.model.oracle import visible
from tests.model.story import GRACE_S, Change, Story
from tests.model.world import Disturbance, MemoryWorld

HOUR_MS = 3600 * 1000
Patch = pytest.MonkeyPatch


def meet(step: str, *actions: Callable[[], object]) -> Disturbance:
    """Others do these things before an operation's statement."""
    return Disturbance("meet", meet=lambda: [action() for action in actions], step=step)


# Mistakes


def trim_before_merge(patch: Patch, story: Story) -> None:
    merge = major._merge

    def mistaken(context: Any, plan: Any) -> Any:
        context.run("trim", compact.trim(plan.table, plan.merge), plan.table)
        return merge(context, plan)

    patch.setattr(major, "_merge", mistaken)


def trim_at_once(patch: Patch, story: Story) -> None:
    plan = major.plan_major
    patch.setattr(major, "plan_major", lambda context, name, grace: plan(context, name, 0))


def trim_everything(patch: Patch, story: Story) -> None:
    patch.setattr(
        compact, "trim", lambda table, txns, keep=False: f"DELETE FROM {table.change.sql}\nWHERE `_txn` > 0"
    )


def trim_a_range(patch: Patch, story: Story) -> None:
    patch.setattr(
        compact,
        "trim",
        lambda table, txns, keep=False: (
            f"DELETE FROM {table.change.sql}\nWHERE `_txn` > 0 AND `_txn` <= {max(txns)}"
        ),
    )


def trim_the_deletes(patch: Patch, story: Story) -> None:
    trim = compact.trim
    patch.setattr(compact, "trim", lambda table, txns, keep=False: trim(table, txns))


def publish_without_compare_and_swap(patch: Patch, story: Story) -> None:
    assert isinstance(story.world, MemoryWorld)
    lake = story.world.lake

    def mistaken(context: Any, target: Name, branch: str, table: Any, *more: Any) -> bool:
        found = lake.table(target.schema, target.identifier)
        found.branches["main"] = found.branches[branch]
        found.changes += 1
        return True

    patch.setattr(major, "publish", mistaken)


def pin_the_change_table_first(patch: Patch, story: Story) -> None:
    def mistaken(catalog: Any, table: Any) -> Any:
        change = load_change(catalog, table)
        return load_base(catalog, table), change

    patch.setattr(state, "consistent_pair", mistaken)


def ignore_the_offset(patch: Patch, story: Story) -> None:
    right = from_attempt

    def mistaken(*arguments: Any) -> Any:
        batch = right(*arguments)
        return replace(batch, sql=batch.sql.replace(" AND `_offset` < 1", ""))

    patch.setattr("dbt_arctic.keyed.replace.from_attempt", mistaken)


def cherry_pick(patch: Patch, story: Story) -> None:
    right = computed_write.publish

    def mistaken(context: Any, target: Name, branch: str, table: Any, *more: Any) -> bool:
        if not right(context, target, branch, table, *more):
            state = context.catalog.load_table(target.schema, target.identifier)
            argument = target.procedure_argument()
            picked = f"snapshot_id => {state.branches[branch]}"
            context.run(
                "pick", f"CALL `lake`.system.cherrypick_snapshot(table => {argument}, {picked})", table
            )
        return True

    patch.setattr(computed_write, "publish", mistaken)


def leave_rows_in_a_retired_generation(patch: Patch, story: Story) -> None:
    patch.setattr(upsert, "replay_into_current", lambda *arguments: None)


def refresh_over_what_lands_meanwhile(patch: Patch, story: Story) -> None:
    patch.setattr(build, "carry_over", lambda *arguments, **options: None)


def replace_whatever_view_is_there(patch: Patch, story: Story) -> None:
    patch.setattr(
        publish_view,
        "require_unmoved",
        lambda context, table, before, where: publish_view.observe_view(context, table.name),
    )


def merge_what_an_expired_commit_merged(patch: Patch, story: Story) -> None:
    merged = major.merged_transactions
    patch.setattr(major, "_unmerged", lambda change, history, pending: pending - merged(history))


def forget_deletes_by_their_age_alone(patch: Patch, story: Story) -> None:
    patch.setattr(major, "txn_age_ms", lambda txn, now_ms: 0)


def merge_without_a_look_at_the_sequence(patch: Patch, story: Story) -> None:
    right = compact.merge_changes

    def mistaken(*arguments: Any) -> str:
        return right(*arguments).replace(" AND c.`version` >= b.`version`", "")

    patch.setattr(compact, "merge_changes", mistaken)


def expire_what_a_consumer_has_to_read(patch: Patch, story: Story) -> None:
    patch.setattr(claims.Claims, "of", lambda self, upstream, released=frozenset(): [])


def expire_what_was_consumed(patch: Patch, story: Story) -> None:
    patch.setattr(expire_plan, "_to_carry", lambda changes, keep: {})


def expire_all_but_the_newest(patch: Patch, story: Story) -> None:
    patch.setattr(expire_plan, "_last_until", lambda history, before_ms: history[0])


def give_rows_a_new_place(patch: Patch, story: Story) -> None:
    """Files put together by something that does not know the age of a row."""
    assert isinstance(story.world, MemoryWorld)
    lake, right = story.world.lake, story.world.lake.rewrite

    def mistaken(*arguments: Any, **options: Any) -> Any:
        commit = right(*arguments, **options)
        for row in [] if commit is None else list(commit.rows()):
            object.__setattr__(row, "sequence", 1000 - row.sequence)
        return commit

    patch.setattr(lake, "rewrite", mistaken)


# Stories, each right as it is


def compacted(story: Story) -> None:
    story.watched = True
    story.build([Change(1, 1), Change(2, 2)])
    story.upsert([Change(1, 10), Change(2, None)])
    story.compact(story.orders, 0)


def read_during_a_compaction(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 10)])
    story.begin_read()
    story.compact(story.orders, GRACE_S)
    story.compact(story.orders, GRACE_S)
    story.end_read()


def written_between_merge_and_trim(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 10)])
    story.compact(story.orders, 0, meet("trim", lambda: story.upsert([Change(2, 20)])))


def written_by_a_clock_that_is_slow(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 10)])
    other = [lambda: story.advance(-5000), lambda: story.upsert([Change(2, 20)]), lambda: story.advance(5000)]
    story.compact(story.orders, 0, meet("trim", *other))


def overtaken_compaction(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 10)])
    others = [lambda: story.upsert([Change(1, 20)]), lambda: story.compact(story.orders, 0)]
    story.compact(story.orders, 0, meet("merge", *others))


def compacted_while_a_version_is_taken(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 10)])
    others = [lambda: story.upsert([Change(at, 20)]), lambda: story.compact(story.orders, 0)]
    for at in range(8):
        story.pull(Disturbance("meet", at, lambda: [action() for action in others]), rebuild=True)


def moved_out_of_a_day_that_is_replaced(story: Story) -> None:
    story.build([Change(1, 1, day=0), Change(2, 2, day=0)])
    moved = meet("fast_forward", lambda: story.upsert([Change(1, 10, day=1)]))
    assert story.replace_day(0, [Change(2, 20)], moved)


def pulled_while_the_target_is_compacted(story: Story) -> None:
    story.build([Change(1, 1), Change(2, 2)])
    story.pull()
    story.upsert([Change(1, 10)])
    story.pull()
    story.upsert([Change(2, None), Change(3, 3)])
    assert story.pull(meet("fast_forward", lambda: story.compact(story.copy, 0))) == "upserted"


def written_during_a_switch(story: Story) -> None:
    story.build([Change(1, 1)])
    assert story.upsert([Change(1, 10)], meet("upsert", lambda: story.build([Change(1, 5)])))


def refreshed_beside_a_write(story: Story) -> None:
    story.build([Change(1, 1)])
    assert story.build([Change(1, 5)], meet("publish_view", lambda: story.upsert([Change(2, 20)])))


def undone_beside_a_full_refresh(story: Story) -> None:
    story.build([Change(1, 1)])
    story.savepoint("kept")  # so that the generation outlives two full refreshes
    story.build([Change(1, 5)])
    story.undo_full_refresh(story.orders, meet("load orders__change_1", lambda: story.build([Change(1, 9)])))
    assert visible(story.orders.current.now)[1]["amount"] == 9, "what was shown last stays"


def expired_between_compactions(story: Story) -> None:
    story.build([])
    for amount in (10, 20):
        story.upsert([Change(1, amount)])
        story.compact(story.orders, GRACE_S)
    story.expire(story.orders, "base", 0)
    story.upsert([Change(2, 1)])
    story.compact(story.orders, GRACE_S)


def expired_while_a_consumer_is_behind(story: Story) -> None:
    story.build([Change(1, 1)])
    story.pull()
    story.upsert([Change(1, 2)])
    for _ in range(2):
        story.advance(HOUR_MS)
        story.upsert([Change(2, 3)])
    story.let_go(story.orders, GRACE_S * 1000)
    assert story.pull() == "upserted"


def expired_after_a_pull_long_ago(story: Story) -> None:
    story.build([Change(1, 1)])
    story.pull()
    story.upsert([Change(1, 2)])
    story.pull()
    story.advance(HOUR_MS)
    for _ in range(2):
        story.compact(story.copy, GRACE_S)
        story.advance(HOUR_MS)
    story.let_go(story.copy, GRACE_S * 1000)
    assert story.pull() == "skipped"


def expired_with_changes_not_merged(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 2)])
    story.advance(HOUR_MS)
    story.upsert([Change(1, 3)])
    story.advance(HOUR_MS)
    story.compact(story.orders, GRACE_S)
    story.let_go(story.orders, HOUR_MS + GRACE_S * 1000)


def put_together_with_changes_pending(story: Story) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 2)])
    story.upsert([Change(1, 3)])
    story.put_together("minor", story.orders)


def given_more_buckets(story: Story) -> None:
    story.watched = True
    story.build([Change(1, 1)])
    story.upsert([Change(1, 2)])
    more = meet("mark_buckets", lambda: story.upsert([Change(2, 3)]))
    assert story.put_together("4 buckets", story.orders, more)


def late_rows(story: Story) -> None:
    story.build([Change(1, 10, sequence=2)])
    story.upsert([Change(1, None, sequence=5), Change(2, 7, sequence=5)])
    story.compact(story.orders, 0)
    story.upsert([Change(1, 20, sequence=3), Change(2, 8, sequence=4)])
    story.compact(story.orders, 0)
    story.upsert([Change(1, 30, sequence=4)])
    story.advance(23 * HOUR_MS)
    story.upsert([Change(1, 40, sequence=4)])
    story.advance(2 * HOUR_MS)
    story.compact(story.orders, GRACE_S)


@dataclass(frozen=True)
class Mutation:
    mistake: Callable[[Patch, Story], None]
    story: Callable[[Story], None]
    sequence: bool = False


MUTATIONS = [
    Mutation(trim_before_merge, compacted),
    Mutation(trim_at_once, read_during_a_compaction),
    Mutation(trim_everything, written_between_merge_and_trim),
    Mutation(trim_everything, given_more_buckets),
    Mutation(trim_a_range, written_by_a_clock_that_is_slow),
    Mutation(publish_without_compare_and_swap, overtaken_compaction),
    Mutation(pin_the_change_table_first, compacted_while_a_version_is_taken),
    Mutation(ignore_the_offset, moved_out_of_a_day_that_is_replaced),
    Mutation(cherry_pick, pulled_while_the_target_is_compacted),
    Mutation(leave_rows_in_a_retired_generation, written_during_a_switch),
    Mutation(refresh_over_what_lands_meanwhile, refreshed_beside_a_write),
    Mutation(replace_whatever_view_is_there, undone_beside_a_full_refresh),
    Mutation(merge_what_an_expired_commit_merged, expired_between_compactions),
    Mutation(give_rows_a_new_place, put_together_with_changes_pending),
    Mutation(expire_what_a_consumer_has_to_read, expired_while_a_consumer_is_behind),
    Mutation(expire_what_was_consumed, expired_after_a_pull_long_ago),
    Mutation(expire_all_but_the_newest, expired_with_changes_not_merged),
    Mutation(trim_the_deletes, late_rows, sequence=True),
    Mutation(forget_deletes_by_their_age_alone, late_rows, sequence=True),
    Mutation(merge_without_a_look_at_the_sequence, late_rows, sequence=True),
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.mistake.__name__)
def test_a_mistake_is_noticed(mutation: Mutation, monkeypatch: Patch) -> None:
    for is_wrong in (False, True):
        world = MemoryWorld()
        story = Story(world, sequence=mutation.sequence, thorough=1)
        try:
            if is_wrong:
                mutation.mistake(monkeypatch, story)
                with pytest.raises((AssertionError, ArcticError)):
                    mutation.story(story)
            else:
                mutation.story(story)
        finally:
            world.close()


@pytest.mark.parametrize("caches", [False, True])
def test_with_iceberg_s_cache_a_reader_loses_rows_which_is_why_it_is_off(caches: bool) -> None:
    world = MemoryWorld(caches=caches)
    story = Story(world)
    story.build([Change(1, 1)])
    session = world.process("reader and writer")
    rows = f"SELECT `amount` FROM {story.orders.name.sql}"
    assert session.query(rows) == [(1,)]
    story.upsert([Change(1, 10)])
    story.compact(story.orders, 0)
    change = story.orders.current.generation
    assert change.number == 1
    # Its own write reloads the change table, but not the base.
    session.execute("ALTER TABLE `lake`.`s`.`orders__change_1` SET TBLPROPERTIES ('a' = 'b')")
    assert session.query(rows) == ([(1,)] if caches else [(10,)])
    world.close()


def test_a_lake_refuses_what_it_does_not_know(memory_world: MemoryWorld) -> None:
    with pytest.raises(NotImplementedError):
        memory_world.execute("ALTER TABLE `lake`.`s`.`t` DO SOMETHING ELSE")
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
        memory_world.query("SELECT 1 FROM `lake`.`s`.`t`")
