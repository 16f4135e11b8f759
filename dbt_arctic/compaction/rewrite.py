"""Minor and full compaction, and the merge of a plain table's small files: one statement, one commit.

Iceberg replaces files by others with the same rows, each row as old as it was. It commits only if the files
that it has read are all still there and hide no more rows than they did; a writer's append never is in the
way. So a reader sees the same rows before and after, and whoever is slower changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.compaction.metrics import TARGET_FILE_BYTES, current_spec
from dbt_arctic.errors import CommitConflict, StatementError, UnknownRelation
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.state import head, laid_out, load_base, load_change, load_keyed

_FILES_ARE_GONE = "Missing required files to delete"
"""Iceberg's words where a file that was rewritten is not there any more: it was trimmed, or rewritten."""

REWRITTEN = "rewritten"
NOTHING = "nothing to do"
OVERTAKEN = "others were faster"


@dataclass(frozen=True)
class RewriteResult:
    """:param files_before: how many files were replaced, by :param files_after: how many; sizes likewise."""

    table: str
    outcome: str
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    note: str = ""
    """What else there is to tell."""


def compact_minor(edge: Edge, name: Name, target_bytes: int = TARGET_FILE_BYTES) -> RewriteResult:
    """Put the files of a keyed table's change table together."""
    table = load_keyed(edge.catalog, name)
    before = load_change(edge.catalog, table)
    every_file = before.has_old_specs and has_old_files(edge, table.change, before)
    statement = compact.rewrite_changes(table, target_bytes, every_file)
    return rewrite_files(edge, "rewrite_changes", name, table.change, before, statement, table)


def has_old_files(edge: Edge, side: Name, state: TableState) -> bool:
    """Whether a file lies in the buckets of before their number changed. Then joins are not in place."""
    files = edge.catalog.placed_files(side.schema, side.identifier, head(state))
    now = current_spec(files, state.spec_id)
    return any(file.is_data and file.spec_id != now for file in files)


def compact_full(
    edge: Edge, name: Name, buckets: Sequence[int] = (), target_bytes: int = TARGET_FILE_BYTES
) -> RewriteResult:
    """Write a keyed table's base files anew, sorted. Only of some buckets, where any are named."""
    table = load_keyed(edge.catalog, name)
    before = load_base(edge.catalog, table)
    every_file = before.has_old_specs and has_old_files(edge, table.base, before)
    statement = compact.rewrite_base(laid_out(table, before), buckets, target_bytes, every_file)
    return rewrite_files(edge, "rewrite_base", name, table.base, before, statement, table)


def merge_small_files(edge: Edge, name: Name, target_bytes: int = TARGET_FILE_BYTES) -> RewriteResult:
    """Put small files of a table without a key together.

    :raises UnknownRelation: there is no table of that name.
    """
    before = edge.catalog.load_table(name.schema, name.identifier)
    if before is None:
        raise UnknownRelation(
            f"there is no table {name}", where=name.dotted, fix="dbt-arctic status lists all"
        )
    statement = compact.rewrite_plain(name, target_bytes)
    return rewrite_files(edge, "rewrite_plain", name, name, before, statement, None)


def rewrite_files(
    edge: Edge,
    step: str,
    of: Name,
    target: Name,
    before: TableState,
    statement: str,
    table: KeyedTable | None,
) -> RewriteResult:
    """Run a statement that rewrites files of ``target``, and tell what it did to ``of``."""
    try:
        edge.run(step, statement, table)
    except CommitConflict:
        return RewriteResult(of.dotted, OVERTAKEN)
    except StatementError as error:
        if _FILES_ARE_GONE not in str(error):
            raise
        return RewriteResult(of.dotted, OVERTAKEN)
    state = edge.catalog.load_table(target.schema, target.identifier)
    commit = None if state is None else _since(state, before)
    if commit is None:
        return RewriteResult(of.dotted, NOTHING)
    told = commit.summary
    return RewriteResult(
        table=of.dotted,
        outcome=REWRITTEN,
        files_before=int(told.get("deleted-data-files", "0")),
        files_after=int(told.get("added-data-files", "0")),
        bytes_before=int(told.get("removed-files-size", "0")),
        bytes_after=int(told.get("added-files-size", "0")),
    )


def _since(state: TableState, before: TableState) -> Snapshot | None:
    """The newest rewrite among the commits since an earlier look."""
    for commit in state.history():
        if commit.snapshot_id == before.current_snapshot_id:
            return None
        if commit.operation == "replace":
            return commit
    return None
