"""Compare-and-swap by fast-forward: what an answer of the catalog means, and what is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dbt_arctic.catalog.api import CatalogColumn, Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import ArcticError, CommitConflict, CommitStateUnknown, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.branches import ATTEMPTS, publish
from dbt_arctic.store.context import Context

TARGET = Name("lake", "shop", "orders__base_1")


PARENTS: dict[int, int | None] = {1: None, 2: 1, 3: 2, 4: 1, 5: 4}
"""Of each snapshot the one before: 2 and 3 were made on the branch that began at 1, or on main."""


@dataclass
class Catalog(OneCatalog):
    """One table, whose main and whose branch ``b`` are at these snapshots when it is looked at again.

    :param branch: ``None``: there is none.
    :param first: main's snapshot at the first look.
    :param drops: whether the commit that publishes the branch drops it.
    """

    main: int = 1
    branch: int | None = 2
    first: int = 1
    columns: tuple[CatalogColumn, ...] = ()
    looks: int = 0
    drops: bool = False

    def load_table(self, schema: str, name: str) -> TableState:
        main = self.main if self.looks else self.first
        is_there = self.branch is not None and not (self.drops and self.looks)
        self.looks += 1
        branches = {"main": main} | ({"b": self.branch or 0} if is_there else {})
        snapshots = tuple(Snapshot(at, parent, at, at, "append", {}) for at, parent in PARENTS.items())
        return TableState(schema, name, "", {}, self.columns, snapshots, main, branches)


@dataclass
class Answers:
    """What each call is answered: an error, or nothing."""

    left: list[ArcticError | None]
    asked: list[str] = field(default_factory=list)

    def __call__(self, step: str, sql: str, table: Any = None) -> int | None:
        self.asked.append(step)
        answer = self.left.pop(0)
        if answer is not None:
            raise answer
        return None


def publish_with(
    *answers: ArcticError | None, catalog: Catalog | None = None, columns: Sequence[CatalogColumn] = ()
) -> tuple[bool, int]:
    run = Answers(list(answers))
    context = Context(catalog or Catalog(), run, lambda sql: [], lambda sql: [])  # type: ignore[arg-type] # a part of one
    return publish(context, TARGET, "b", None, 1, columns), len(run.asked)


MOVED = StatementError("Cannot fast-forward: main is not an ancestor of b")
CONFLICT = CommitConflict("Other writers changed the table first")
UNKNOWN = CommitStateUnknown("no answer")
DROPPED = StatementError("Ref does not exist: b")


def test_a_main_that_moved_is_no_error_but_a_no() -> None:
    assert publish_with(None) == (True, 1)
    assert publish_with(MOVED) == (False, 1)


def test_what_has_landed_below_what_came_then_has_landed() -> None:
    for answers in ([MOVED], [CONFLICT, MOVED], [UNKNOWN]):
        assert publish_with(*answers, catalog=Catalog(main=3, branch=2)) == (True, len(answers))


def test_what_has_landed_is_found_without_its_branch() -> None:
    for answers in ([UNKNOWN], [DROPPED], [CONFLICT, DROPPED]):
        for main in (2, 3):
            landed = Catalog(main=main, branch=2, drops=True)
            assert publish_with(*answers, catalog=landed) == (True, len(answers))
    with pytest.raises(CommitStateUnknown):
        publish_with(UNKNOWN, catalog=Catalog(main=1, branch=2, drops=True))


def test_any_other_refusal_is_an_error() -> None:
    with pytest.raises(StatementError, match="disk"):
        publish_with(StatementError("disk full"))
    with pytest.raises(StatementError, match="Ref does not exist"):
        publish_with(DROPPED, catalog=Catalog(main=1, branch=2, drops=True))


def test_a_conflict_with_another_commit_is_tried_again_until_main_moved_or_not() -> None:
    # Another run's branch of the same table is a commit too, and does not move main.
    assert publish_with(CONFLICT, CONFLICT, None) == (True, 3)
    assert publish_with(CONFLICT, MOVED) == (False, 2)
    with pytest.raises(CommitConflict):
        publish_with(*[CONFLICT] * ATTEMPTS)


def test_without_an_answer_the_table_shows_the_result() -> None:
    assert publish_with(UNKNOWN, catalog=Catalog(main=2, branch=2)) == (True, 1)
    with pytest.raises(CommitStateUnknown):
        publish_with(UNKNOWN, catalog=Catalog(main=1, branch=2))


def test_a_branch_that_is_not_the_one_that_was_made_is_not_published() -> None:
    """A statement's commit recreates a branch that was dropped in the meantime, from the current main."""
    assert publish_with(None, catalog=Catalog(branch=3)) == (True, 1), "of two commits"
    assert publish_with(catalog=Catalog(first=4, branch=5)) == (False, 0)
    assert publish_with(catalog=Catalog(branch=None)) == (False, 0)


def test_rows_whose_columns_were_recreated_are_not_published() -> None:
    then = [CatalogColumn("id", "int", field_id=1), CatalogColumn("x", "int", field_id=2)]
    added = (*then, CatalogColumn("y", "int", field_id=3))
    assert publish_with(None, catalog=Catalog(columns=added), columns=then) == (True, 1)
    anew = (then[0], CatalogColumn("x", "int", field_id=4))
    assert publish_with(catalog=Catalog(columns=anew), columns=then) == (False, 0)
    assert publish_with(catalog=Catalog(columns=anew[:1]), columns=then) == (False, 0)
