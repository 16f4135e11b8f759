"""Branches as staging areas: made from a pinned main, published by fast-forward, never left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed import write
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.edge import Edge, txn_age_ms

STALE_AFTER_MS = 24 * 60 * 60 * 1000
_BRANCH = re.compile(r"arctic_(\d+)")


def branch_name(txn: int) -> str:
    """A name that tells when the branch was made, so that a later run knows whether it was left behind."""
    return f"arctic_{txn}"


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
        match = _BRANCH.fullmatch(branch)
        if match and txn_age_ms(int(match.group(1)), edge.now_ms()) > STALE_AFTER_MS:
            edge.run("drop_branch", write.drop_branch(target, branch), table)
