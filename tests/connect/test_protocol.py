"""The tests of the storage protocol on a Spark Connect server. They are imported from other modules."""

from __future__ import annotations

from tests.extent import LONG
from tests.spark.keyed.test_batches import (  # noqa: F401
    test_a_batch_that_is_cut_off_anywhere_is_all_there_or_not_at_all,
)
from tests.spark.keyed.test_order import (  # noqa: F401
    older,
    slow,
    test_a_pull_takes_a_late_commit_once_and_only_it,
)
from tests.spark.keyed.test_pull import (  # noqa: F401
    test_of_two_runs_at_once_the_second_writes_nothing,
    test_updates_and_deletes_of_a_plain_table_are_a_difference_by_key,
)

if LONG:
    from tests.spark.keyed.test_batches import *  # noqa: F403
    from tests.spark.keyed.test_order import *  # noqa: F403
    from tests.spark.keyed.test_pull import (  # noqa: F401
        test_a_blind_write_that_gets_in_between_only_makes_the_pull_try_again,
        test_a_consumer_that_is_cut_off_at_any_statement_skips_and_repeats_nothing,
        test_appends_to_a_plain_table_are_staged_once,
        test_compaction_and_trim_upstream_neither_hide_nor_repeat_a_change,
        test_the_first_pull_is_everything_and_later_ones_are_the_changed_keys,
    )
