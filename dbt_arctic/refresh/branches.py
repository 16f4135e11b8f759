"""Branches as staging areas: made from a pinned main, published by fast-forward, never left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed import write
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.leftovers import branch_name, is_abandoned_branch

__all__ = ["branch_name", "drop_stale_branches", "staged"]


@contextmanager
def staged(
    edge: Edge, target: Name, snapshot_id: int | None, branch: str, table: KeyedTable | None = None
) -> Iterator[None]:
    """A branch of ``target`` at a snapshot, dropped at the end, published or not."""
    edge.run("create_branch", write.create_branch(target, branch, snapshot_id), table)
    try:
        yield
    except BaseException:
        # The failure itself is what a user has to see; a branch that stays is dropped by a later run.
        with suppress(ArcticError):
            edge.run("drop_branch", write.drop_branch(target, branch), table)
        raise
    edge.run("drop_branch", write.drop_branch(target, branch), table)


def drop_stale_branches(edge: Edge, target: Name, state: TableState, table: KeyedTable | None) -> None:
    """Drop what a crashed run left; a young branch may belong to a run that is still at work."""
    for branch in state.branches:
        if is_abandoned_branch(branch, edge.now_ms()):
            edge.run("drop_branch", write.drop_branch(target, branch), table)
