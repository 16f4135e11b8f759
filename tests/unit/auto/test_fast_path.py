"""How many tasks a statement over few changed rows has after a shuffle."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from dbt_arctic.auto import fast_path


class Context:
    def __init__(self, cores: int | None) -> None:
        self.cores, self.conf = cores, dict[str, str]()

    def tuned(self, conf: dict[str, str]) -> Any:
        self.conf = dict(conf)
        return nullcontext()


@pytest.mark.parametrize(
    ("cores", "changed", "read", "tasks"),
    [
        (2, 100, 0, "2"),
        (2, 500_000, 500_000, "3"),
        (2, 100, 7_000_000, "15"),
        (2, 100, 60_000_000, "121"),  # or as many as the session has
        (2, 100, None, None),
        (64, 100, 0, "8"),
        (None, 100, 0, "8"),
    ],
)
def test_the_number_of_tasks_of_a_stage_follows_its_rows(
    cores: int | None, changed: int, read: int | None, tasks: str | None
) -> None:
    context: Any = Context(cores)
    fast_path.settings_for_changes(context, changed, read)
    assert context.conf.pop("spark.sql.adaptive.enabled") == "false"
    assert context.conf == ({} if tasks is None else {fast_path.PARTITIONS: tasks})


@pytest.mark.parametrize("changed", [None, fast_path.CHANGES + 1])
def test_a_statement_over_many_changed_rows_is_planned_as_it_runs(changed: int | None) -> None:
    context: Any = Context(2)
    fast_path.settings_for_changes(context, changed, 0)
    assert context.conf == {}


def test_only_few_pulled_rows_are_read_without_generated_code() -> None:
    context: Any = Context(2)
    fast_path.settings_for_pull(context, few_rows=False)
    assert context.conf == {}
    fast_path.settings_for_pull(context, few_rows=True)
    assert context.conf == {**fast_path.CONF, **fast_path.ADAPTIVE, fast_path.PARTITIONS: "2"}
