"""Mistakes that the state machine has found, as short stories: each failed before it was corrected."""

from __future__ import annotations

import pytest

from dbt_arctic.auto.upstreams import Upstream, inspect_upstream
from dbt_arctic.compaction.plan import requested_operation
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import measure_keyed
from dbt_arctic.maintenance.leftovers import Retention
from dbt_arctic.refresh.pull import plan_pull
from dbt_arctic.store.state import load_base, load_change, load_keyed
from tests.model.story import GRACE_S, Change, Story
from tests.model.world import Disturbance, MemoryWorld

HOUR_MS = 3600 * 1000


@pytest.fixture
def story(memory_world: MemoryWorld) -> Story:
    return Story(memory_world, thorough=1)


@pytest.fixture
def ordered(memory_world: MemoryWorld) -> Story:
    """With a sequence: the table keeps deletes for a day."""
    return Story(memory_world, sequence=True, thorough=1)


def test_a_delete_is_kept_for_as_long_as_a_row_is_here_that_lost_to_it(ordered: Story) -> None:
    ordered.build([Change(1, 10, sequence=0)])
    ordered.upsert([Change(1, None, sequence=5)])
    ordered.compact(ordered.orders, 0)
    ordered.advance(23 * HOUR_MS)
    ordered.upsert([Change(1, 20, sequence=3)])  # late, and the refusal is reported
    ordered.advance(2 * HOUR_MS)
    ordered.compact(ordered.orders, GRACE_S)  # merged now, and trimmed only when the grace is over
    ordered.advance(HOUR_MS)
    ordered.compact(ordered.orders, GRACE_S)


def test_of_equal_sequences_the_later_change_is_not_trimmed_before_the_earlier_one(ordered: Story) -> None:
    ordered.build([Change(9, 1, sequence=0)])
    ordered.upsert([Change(1, 10, sequence=5)])
    ordered.compact(ordered.orders, GRACE_S)
    ordered.advance(300_000)
    ordered.upsert([Change(1, 20, sequence=5)])
    ordered.compact(ordered.orders, GRACE_S)
    ordered.advance(24 * HOUR_MS - 150_000)
    ordered.compact(ordered.orders, GRACE_S, Disturbance("die", step="forget"))
    ordered.check()


def test_what_an_expired_commit_has_merged_is_not_merged_over_what_is_newer(story: Story) -> None:
    story.build([])
    story.upsert([Change(1, 10)])
    story.compact(story.orders, GRACE_S)
    story.upsert([Change(1, 20)])
    story.compact(story.orders, GRACE_S)
    story.expire(story.orders, "base", 0)
    story.upsert([Change(2, 1)])
    story.compact(story.orders, GRACE_S)
    for _ in range(2):
        story.advance(GRACE_S * 1000 + 1000)
        story.compact(story.orders, GRACE_S)


def test_a_table_that_goes_takes_its_branches_with_it(story: Story) -> None:
    story.build([])
    story.upsert([Change(1, 10)])
    story.compact(story.orders, 0, Disturbance("die", 4))
    story.build([])
    story.advance(8 * 24 * HOUR_MS)
    assert story.clean()


def test_an_undo_that_is_overtaken_by_two_full_refreshes_says_so(story: Story) -> None:
    story.build([])
    story.build([Change(1, 10)])
    other = Disturbance("meet", 11, lambda: bool(story.build([Change(2, 20)])))
    assert not story.undo_full_refresh(story.orders, other)


def test_a_trim_of_files_that_an_expired_rewrite_mixed_is_not_taken_for_a_hand_s(story: Story) -> None:
    story.build([])
    story.upsert([Change(1, 10)])
    story.rewrite(story.orders, "change")  # the row and the markers are in one file now
    story.compact(story.orders, 0)
    story.expire(story.orders, "change", 0)
    assert story.findings() == []


@pytest.mark.parametrize("drops", [False, True])
def test_of_two_runs_that_change_the_columns_at_once_the_second_says_so(story: Story, drops: bool) -> None:
    story.extra = drops
    story.build([])
    story.extra = not drops
    step = "publish_view" if drops else "add_columns"
    other = Disturbance("meet", step=step, meet=lambda: story.upsert([Change(1, 10)]))
    assert not story.upsert([Change(2, 20)], other)
    assert story.upsert([Change(2, 20)])


AT_FIRST = range(1, 9)
"""Looks at the catalog and statements with which an operation begins."""


@pytest.mark.parametrize("at", AT_FIRST)
def test_a_row_with_a_new_column_that_lands_while_a_compaction_begins_keeps_it(story: Story, at: int) -> None:
    story.build([])
    story.extra = True
    story.compact(story.orders, 0, Disturbance("meet", at, lambda: story.upsert([Change(1, 10)])))


@pytest.mark.parametrize("at", AT_FIRST)
def test_a_row_with_a_new_column_that_lands_while_it_is_computed_with_keeps_it(story: Story, at: int) -> None:
    story.build([Change(1, 10), Change(2, 20)])
    story.extra = True
    story.modify(0, False, Disturbance("meet", at, lambda: story.upsert([Change(1, 11)])))


@pytest.mark.parametrize("at", AT_FIRST)
def test_a_row_with_a_new_column_that_lands_while_a_pull_begins_reaches_it(story: Story, at: int) -> None:
    story.build([Change(1, 10)])
    story.extra = True
    name, catalog = story.orders.name, story.world.catalog
    last = plan_pull(catalog, name, None, model="m").consumed
    reader = story.world.process("reader", Disturbance("meet", at, lambda: story.upsert([Change(1, 11)])))
    pull = plan_pull(reader.context.catalog, name, last, model="m")
    state = inspect_upstream(story.world.process("reader").context.catalog, name, last, pull.consumed)
    assert isinstance(state, Upstream)
    if state.changed:
        assert "x11" in story.world.query(pull.sql)[0]


@pytest.mark.parametrize("at", AT_FIRST)
def test_a_rollback_to_a_version_that_expires_meanwhile_says_so(story: Story, at: int) -> None:
    story.build([])
    story.upsert([Change(1, 10)])
    version = story.versions[0]
    story.advance(HOUR_MS)
    other = Disturbance("meet", at, lambda: story.expire(story.orders, "change", 0))
    story.roll_back(story.orders, version, other)


@pytest.mark.parametrize("at", range(18))
def test_an_undo_during_a_clean_publishes_nothing_dropped(story: Story, at: int) -> None:
    story.build([])
    story.build([Change(1, 10)])
    undo = Disturbance("meet", at, lambda: story.undo_full_refresh(story.orders))
    story.clean(Retention(keep_previous_ms=0), undo)


@pytest.mark.parametrize("at", range(24))
def test_a_clean_during_an_undo_drops_nothing_visible(story: Story, at: int) -> None:
    story.build([])
    story.build([Change(1, 10)])
    clean = Disturbance("meet", at, lambda: story.clean(Retention(keep_previous_ms=0)))
    story.undo_full_refresh(story.orders, clean)


def test_what_a_clean_is_about_to_drop_is_not_shown(story: Story) -> None:
    story.build([])
    story.build([Change(1, 10)])
    undo = Disturbance("meet", 0, lambda: story.undo_full_refresh(story.orders, number=1), "drop_side_table")
    story.clean(Retention(keep_previous_ms=0), undo)


def test_an_undo_that_sees_a_clean_only_afterwards_shows_again_what_was_shown(story: Story) -> None:
    story.build([])
    story.build([Change(1, 10)])

    def clean_as_far_as_the_drop() -> None:
        story.clean(Retention(keep_previous_ms=0), Disturbance("die", step="drop_side_table"))

    assert not story.undo_full_refresh(
        story.orders, Disturbance("meet", step="publish_view", meet=clean_as_far_as_the_drop)
    )
    assert story.orders.shown is not None
    assert story.orders.shown.generation.number == 2


@pytest.mark.parametrize("at", range(16))
def test_new_columns_during_a_clean_restore_no_dropped_generation(story: Story, at: int) -> None:
    story.build([])
    story.build([])
    story.extra = True
    clean = Disturbance("meet", at, lambda: story.clean(Retention(keep_previous_ms=0)))
    story.upsert([Change(1, 10)], clean)
    assert not story.findings()


@pytest.mark.parametrize("at", AT_FIRST)
def test_of_two_concurrent_runs_with_new_columns_one_fails(story: Story, at: int) -> None:
    story.build([])
    story.extra = True
    story.upsert([Change(1, 10)], Disturbance("meet", at, lambda: story.upsert([Change(2, 20)])))


def test_a_base_that_a_reader_has_just_pinned_does_not_expire_with_the_next_compaction(story: Story) -> None:
    story.build([Change(1, 1)])
    story.advance(HOUR_MS)
    story.upsert([Change(1, 2)])
    pinned = story.version()
    story.compact(story.orders, 0)
    assert story.let_go(story.orders, GRACE_S * 1000)
    assert not story._is_expired(pinned)


@pytest.mark.parametrize("at", range(20))
def test_a_rollback_to_a_generation_that_is_cleaned_away_says_so(story: Story, at: int) -> None:
    story.build([])
    version = story.version()
    story.build([Change(1, 10)])
    clean = Disturbance("meet", at, lambda: story.clean(Retention(keep_previous_ms=0)))
    story.roll_back(story.orders, version, clean)


@pytest.mark.parametrize("at", range(10))
def test_an_undo_shows_a_column_again_whose_drop_a_full_refresh_overtook(story: Story, at: int) -> None:
    story.build([])
    story.extra = True
    story.overwrite([Change(1, 57)])
    story.extra = False
    story.replace_day(2, [], Disturbance("meet", at, lambda: story.build([])))
    story.undo_full_refresh(story.orders)


def test_a_model_whose_consumed_versions_were_expired_requires_a_full_refresh(story: Story) -> None:
    story.build([Change(4, 1)])
    story.pull()
    story.upsert([Change(3, 2)])
    story.pull()
    story.compact(story.copy, 0)
    story.build([Change(2, 3)])
    story.expire(story.copy, "change", 0)
    assert story.pull() == "failed", "what it would read lacks the deletes"
    assert story.pull(rebuild=True) == "built"


@pytest.mark.parametrize("trouble", ["refuse", "lose"])
def test_bucket_markers_that_could_not_be_made_are_missed_by_the_next_compaction(
    story: Story, trouble: str
) -> None:
    story.build([Change(1, 1)])
    story.upsert([Change(1, 2)])
    assert not story.put_together("4 buckets", story.orders, Disturbance(trouble, step="mark_buckets"))
    (found,) = [one for one in story.findings() if one.kind == "properties"]
    assert found.fix == "dbt-arctic compact --kind full s.orders"
    table = load_keyed(story.world.catalog, story.orders.name)
    sides = load_base(story.world.catalog, table), load_change(story.world.catalog, table)
    status = measure_keyed(story.world.catalog, table, *sides, story.world.now_ms())
    assert requested_operation("full", status, CompactionSettings()).to_buckets == 4
    assert story.put_together("4 buckets", story.orders)
    assert not story.findings()
