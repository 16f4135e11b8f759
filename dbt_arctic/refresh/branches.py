"""Branches as staging areas: made from a pinned main, published by fast-forward, never left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_arctic.catalog.api import TableState
from dbt_arctic.keyed import write
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.edge import Edge, txn_age_ms

STALE_AFTER_MS = 24 * 60 * 60 * 1000
_BRANCH = re.compile(r"arctic_(\d+)")


@contextmanager
def staged(edge: Edge, target: Name, snapshot_id: int, txn: int, table: KeyedTable | None) -> Iterator[str]:
    """A branch of ``target`` at a snapshot, dropped at the end, published or not."""
    branch = f"arctic_{txn}"
    edge.run("create_branch", write.create_branch(target, branch, snapshot_id), table)
    try:
        yield branch
    finally:
        edge.run("drop_branch", write.drop_branch(target, branch), table)


def drop_stale_branches(edge: Edge, target: Name, state: TableState, table: KeyedTable | None) -> None:
    """Drop what a crashed run left; a young branch may belong to a run that is still at work."""
    for branch in state.branches:
        match = _BRANCH.fullmatch(branch)
        if match and txn_age_ms(int(match.group(1)), edge.now_ms()) > STALE_AFTER_MS:
            edge.run("drop_branch", write.drop_branch(target, branch), table)
