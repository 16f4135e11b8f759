"""Compare-and-swap by fast-forward: what an answer of the catalog means, and what is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import ArcticError, CommitConflict, CommitStateUnknown, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.branches import ATTEMPTS, publish
from dbt_arctic.refresh.edge import Edge

TARGET = Name("lake", "shop", "orders__base_1")


@dataclass
class Catalog:
    """One table, whose main and whose branch ``b`` are at these snapshots."""

    main: int = 1
    branch: int = 2
    below: int | None = None
    """What main's snapshot came after."""

    def load_table(self, schema: str, name: str) -> TableState:
        branches = {"main": self.main, "b": self.branch}
        snapshots = (Snapshot(self.main, self.below, 2, 2, "append", {}),)
        if self.below is not None:
            snapshots = (Snapshot(self.below, None, 1, 1, "append", {}), *snapshots)
        return TableState(schema, name, "", {}, (), snapshots, self.main, branches)


@dataclass
class Answers:
    """What each call is answered: an error, or nothing."""

    left: list[ArcticError | None]
    asked: list[str] = field(default_factory=list)

    def __call__(self, step: str, sql: str, table: Any = None) -> int:
        self.asked.append(step)
        answer = self.left.pop(0)
        if answer is not None:
            raise answer
        return -1


def publish_with(*answers: ArcticError | None, catalog: Catalog | None = None) -> tuple[bool, int]:
    run = Answers(list(answers))
    edge = Edge(catalog or Catalog(), run, lambda sql: [], lambda sql: [])  # type: ignore[arg-type] # a part of one
    return publish(edge, TARGET, "b", None), len(run.asked)


MOVED = StatementError("Cannot fast-forward: main is not an ancestor of b")
CONFLICT = CommitConflict("Other writers changed the table first")
UNKNOWN = CommitStateUnknown("no answer")


def test_a_main_that_moved_is_no_error_but_a_no() -> None:
    assert publish_with(None) == (True, 1)
    assert publish_with(MOVED) == (False, 1)


def test_what_has_landed_below_what_came_then_has_landed() -> None:
    for answers in ([MOVED], [CONFLICT, MOVED], [UNKNOWN]):
        assert publish_with(*answers, catalog=Catalog(main=3, branch=2, below=2)) == (True, len(answers))


def test_any_other_refusal_is_an_error() -> None:
    with pytest.raises(StatementError, match="disk"):
        publish_with(StatementError("disk full"))


def test_a_conflict_with_another_commit_is_tried_again_until_main_moved_or_not() -> None:
    # Another run's branch of the same table is a commit too, and does not move main.
    assert publish_with(CONFLICT, CONFLICT, None) == (True, 3)
    assert publish_with(CONFLICT, MOVED) == (False, 2)
    with pytest.raises(CommitConflict):
        publish_with(*[CONFLICT] * ATTEMPTS)


def test_without_an_answer_the_table_itself_tells() -> None:
    assert publish_with(UNKNOWN, catalog=Catalog(main=2, branch=2)) == (True, 1)
    with pytest.raises(CommitStateUnknown):
        publish_with(UNKNOWN, catalog=Catalog(main=1, branch=2))
