"""Minor and full compaction, and compaction of the small files of a plain table: one statement, one commit.

Iceberg replaces files by others with the same rows and keeps the age of each row. It commits only if all
files that it read still exist and hide no additional rows. An append never conflicts. So readers see the same
rows before and after, and the slower of two rewrites changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.compaction.metrics import TARGET_FILE_BYTES, bucket_metrics, current_spec
from dbt_arctic.errors import CommitConflict, StatementError, UnknownRelation
from dbt_arctic.keyed import compact
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.secondary_index import PROPERTY_INDEX_OF
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import head, load_base, load_change, load_keyed, with_current_buckets

_FILES_ARE_GONE = "Missing required files to delete"
"""Iceberg's message if a file that was rewritten no longer exists, because it was trimmed or rewritten."""

PLACES_AT_ONCE = 64
"""Maximum number of partitions per statement, so that a commit does not take hours."""

REWRITTEN = "rewritten"
NOTHING = "nothing to do"
OVERTAKEN = "another process was faster"


@dataclass(frozen=True)
class RewriteResult:
    """The files that one rewrite replaced and wrote.

    :param files_before: the number of replaced files.
    :param files_after: the number of new files; sizes likewise.
    """

    table: str
    outcome: str
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    note: str = ""
    """Additional information for the message."""


def compact_minor(context: Context, name: Name, target_bytes: int = TARGET_FILE_BYTES) -> RewriteResult:
    """Merge the small files of a keyed table's change table."""
    table = load_keyed(context.catalog, name)
    before = load_change(context.catalog, table)
    every_file = before.has_old_specs and has_old_files(context, table.change, before)
    statement = compact.rewrite_changes(table, target_bytes, every_file)
    return rewrite_files(context, "rewrite_changes", name, table.change, before, statement, table)


def may_have_old_files(state: TableState) -> bool:
    """Whether files may have an older partitioning. Reads nothing. By SQL, this is unknown."""
    return state.current_snapshot_id is not None and (state.has_old_specs or state.spec_id is None)


def has_old_files(context: Context, side: Name, state: TableState) -> bool:
    """Whether a file has an older partitioning than new files, such as the previous number of buckets."""
    files = context.catalog.of(side).placed_files(side.schema, side.identifier, head(state))
    now = current_spec(files, state.spec_id)
    return any(file.is_data and file.spec_id != now for file in files)


def compact_full(
    context: Context, name: Name, buckets: Sequence[int] = (), target_bytes: int = TARGET_FILE_BYTES
) -> RewriteResult:
    """Rewrite the base files of a keyed table, sorted.

    Only those of the given buckets, if any are given. With user partitions, only those that need it, in as
    many commits as their number requires.
    """
    as_created = load_keyed(context.catalog, name)
    before = load_base(context.catalog, as_created)
    table = with_current_buckets(as_created, before)
    places = _places_to_rewrite(context, table, before, buckets, target_bytes)
    if places == []:
        return RewriteResult(name.dotted, NOTHING)
    found: list[RewriteResult] = []
    for start in range(0, len(places or [0]), PLACES_AT_ONCE):
        statement = compact.rewrite_base(
            table, buckets, target_bytes, (places or [])[start : start + PLACES_AT_ONCE]
        )
        before = load_base(context.catalog, as_created)
        found.append(rewrite_files(context, "rewrite_base", name, table.base, before, statement, table))
        if found[-1].outcome == OVERTAKEN:
            break
    return _summed(found)


def _places_to_rewrite(
    context: Context, table: KeyedTable, base: TableState, buckets: Sequence[int], target_bytes: int
) -> list[compact.Place] | None:
    """The partitions with hidden rows or more files than they need, with their buckets.

    ``None`` stands for all buckets.

    All files of a bucket are rewritten. Otherwise the new files would share key ranges with the others.
    """
    layout = table.layout
    if not layout.partition_by or not compact.can_be_named(table):
        return None
    files = context.catalog.of(table.base).placed_files(table.base.schema, table.base.identifier, head(base))
    found: dict[tuple[str, ...], set[int]] = {}
    for one in bucket_metrics(files, (), frozenset(), target_bytes, (base.spec_id, None)):
        *values, number = one.partition if layout.buckets else (*one.partition, "0")
        if one.is_old or len(values) != len(layout.partition_by) or not number.isdigit():
            return None
        needs_rewrite = one.base.delete_files or one.small_files or one.base.files > one.ideal_files
        if needs_rewrite and (not buckets or int(number) in buckets):
            found.setdefault(tuple(values), set()).add(int(number))
    return [compact.Place(values, tuple(sorted(numbers))) for values, numbers in sorted(found.items())]


def _summed(found: Sequence[RewriteResult]) -> RewriteResult:
    if all(one.outcome == NOTHING for one in found):
        return found[0]
    return RewriteResult(
        table=found[0].table,
        outcome=found[-1].outcome if found[-1].outcome == OVERTAKEN else REWRITTEN,
        files_before=sum(one.files_before for one in found),
        files_after=sum(one.files_after for one in found),
        bytes_before=sum(one.bytes_before for one in found),
        bytes_after=sum(one.bytes_after for one in found),
    )


def merge_small_files(
    context: Context, name: Name, target_bytes: int = TARGET_FILE_BYTES, *, old_files: bool = False
) -> RewriteResult:
    """Compact the small files of a table without a key.

    :param old_files: rewrite the whole table if a file has an older partitioning. No option of Iceberg
        selects only these files.
    :raises UnknownRelation: no table has this name.
    """
    before = context.catalog.of(name).load_table(name.schema, name.identifier)
    if before is None:
        raise UnknownRelation(
            f"there is no table {name}", where=name.dotted, fix="dbt-arctic status lists all"
        )
    every_file = old_files and may_have_old_files(before) and has_old_files(context, name, before)
    if PROPERTY_INDEX_OF in before.properties:
        statement = compact.rewrite_index(name, before.columns[0].name)
    else:
        statement = compact.rewrite_plain(name, target_bytes, every_file)
    return rewrite_files(context, "rewrite_plain", name, name, before, statement, None)


def rewrite_files(
    context: Context,
    step: str,
    of: Name,
    target: Name,
    before: TableState,
    statement: str,
    table: KeyedTable | None,
) -> RewriteResult:
    """Run a statement that rewrites files of ``target``, and describe its effect on ``of``."""
    try:
        context.run(step, statement, table)
    except CommitConflict:
        return RewriteResult(of.dotted, OVERTAKEN)
    except StatementError as error:
        if _FILES_ARE_GONE not in str(error):
            raise
        return RewriteResult(of.dotted, OVERTAKEN)
    state = context.catalog.of(target).load_table(target.schema, target.identifier)
    commit = None if state is None else _since(state, before)
    if commit is None:
        return RewriteResult(of.dotted, NOTHING)
    summary = commit.summary
    return RewriteResult(
        table=of.dotted,
        outcome=REWRITTEN,
        files_before=int(summary.get("deleted-data-files", "0")),
        files_after=int(summary.get("added-data-files", "0")),
        bytes_before=int(summary.get("removed-files-size", "0")),
        bytes_after=int(summary.get("added-files-size", "0")),
    )


def _since(state: TableState, before: TableState) -> Snapshot | None:
    """The newest rewrite among the commits since an earlier state."""
    for commit in state.history():
        if commit.snapshot_id == before.current_snapshot_id:
            return None
        if commit.operation == "replace":
            return commit
    return None
