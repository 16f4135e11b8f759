"""The relation under a model's name, and the changes of its columns if the model has other columns.

Written from the section "Columns and fields that change" of ``docs/reference/models.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tests.dbt.random.project import Batch, Model
from tests.dbt.random.stored_values import NotAllowed, TooLarge, evolved_type, keep, stored_type
from tests.dbt.random.values import canonical

Row = dict[str, Any]


class Refused(Exception):
    """The run has to fail and to change nothing.

    :param by_spark: whether the error is Spark's own, wrapped: it is found while rows are computed.
    :param by_rows: whether it is found in the rows, and so after the columns have changed.
    :param by_upstream: whether dbt does not run it, since what it reads failed.
    :param by_late_row: whether a row that another process upserts during a full refresh is the reason.
    """

    def __init__(
        self,
        why: str,
        by_spark: bool = False,
        by_rows: bool = False,
        by_upstream: bool = False,
        by_late_row: bool = False,
    ) -> None:
        super().__init__(why)
        self.by_upstream = by_upstream
        self.by_late_row = by_late_row
        self.by_spark = by_spark
        self.by_rows = by_rows or by_spark


@dataclass(frozen=True)
class Table:
    """What stands under a model's name.

    :param memory: of a keyed table with ``sequence_by``: by key the sequence of its newest change, deletes
        included.
    :param deleted, ended: of a snapshot: which rows, by place, say that their key was deleted, and which have
        ended.
    :param form: ``plain``, ``keyed`` or ``view``.
    :param starts: of a snapshot, the start of each record.
    :param start_type, end_type: of a snapshot, the types of starts and ends.
    :param is_partial: of a view, whether it shows a part of its upstream (``--empty``, ``--sample``).
    :param old_files: whether files have an older partitioning, from before another program changed it:
        ``some``, or ``perhaps``, after rows were written since.
    :param current_end: of a snapshot, ``dbt_valid_to_current``; empty for NULL.
    """

    types: dict[str, str]
    rows: list[Row]
    memory: dict[Any, Any] = field(default_factory=dict)
    deleted: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    partitions: frozenset[str] = frozenset()
    form: str = "plain"
    current_end: str = ""
    starts: tuple[Any, ...] = ()
    start_type: str = ""
    end_type: str = ""
    is_partial: bool = False
    old_files: str = ""


@dataclass(frozen=True)
class Expected:
    """:param table: what is there after a run that succeeds.

    :param may_refuse: the documentation leaves it open whether this is refused.
    :param undropped: what is there if the run ends right before it drops columns.
    """

    table: Table | None
    may_refuse: bool = False
    undropped: Table | None = None


def evolve(model: Model, before: Table, batch: Batch, *, drops: bool = True) -> tuple[Table, bool]:
    """The table with the columns that it has after the batch is written, and whether that may be refused.

    :param drops: whether columns that the model lacks are dropped where its setting says so.
    :raises Refused: the columns do not fit, by ``on_schema_change``.
    """
    changed = before.partitions != frozenset(listed(model.config.get("partition_by")))
    if changed and (model.is_keyed or model.kind == "insert_overwrite"):
        raise Refused("partition_by is not what the table is partitioned by")
    replaces_partitions = model.kind == "insert_overwrite" and bool(model.config.get("partition_by"))
    if replaces_partitions and before.old_files == "some":
        raise Refused("files have an older partitioning")
    mode = model.config.get("on_schema_change", "ignore")
    is_snapshot = model.kind == "snapshot"
    lower = {name.lower(): name for name in before.types}
    produced = {one.name.lower(): one for one in batch.columns if one.name != "_action"}
    new = [one for low, one in produced.items() if low not in lower]
    gone = [name for low, name in lower.items() if low not in produced]
    may_lack = is_snapshot or (
        model.kind == "upsert" and any(key.startswith("merge_") for key in model.config)
    )
    # What a partial model may lack counts as a difference or not: that is left open.
    may_refuse = (mode == "fail" and bool(gone)) or (replaces_partitions and bool(before.old_files))
    _refuse_columns(model, mode, new=bool(new), gone=gone, may_lack=may_lack)
    types = dict(before.types)
    for low, one in produced.items():
        if low in lower:
            name = lower[low]
            types[name], uncertain = _type_of(
                name, one.type, types[name], "snapshot" if is_snapshot else mode
            )
            if not drops:
                # The nested fields that are dropped are there, too.
                types[name] = evolved_type(before.types[name], one.type, "snapshot")
            may_refuse |= uncertain
    rows = [dict(row) for row in before.rows]
    if mode == "sync_all_columns" and drops:
        for name in gone:
            del types[name]
            for row in rows:
                del row[name]
    if is_snapshot or mode in ("append_new_columns", "sync_all_columns"):
        for one in new:
            types[one.name] = stored_type(one.type)
            for row in rows:
                row[one.name] = None
    for name, old in before.types.items():
        if name in types and types[name] != old:
            for row in rows:
                row[name] = keep(row[name], old, types[name])
    old_files = before.old_files if model.kind == "append" or not before.old_files else "perhaps"
    return replace(before, types=types, rows=rows, old_files=old_files), may_refuse


def _refuse_columns(model: Model, mode: str, *, new: bool, gone: list[str], may_lack: bool) -> None:
    if mode == "fail" and (new or (gone and not may_lack)):
        raise Refused("on_schema_change is fail")
    if mode == "ignore" and gone and not may_lack:
        raise Refused(f"the model lacks {gone}")
    if mode == "sync_all_columns" and gone and may_lack and model.kind == "upsert":
        raise Refused("a partial model lacks a column that would be dropped")
    if model.kind == "upsert" and may_lack:
        update = {name.lower() for name in listed(model.config.get("merge_update_columns"))}
        kept = {name.lower() for name in listed(model.config.get("merge_exclude_columns"))}
        needed = [one for one in gone if (one.lower() in update if update else one.lower() not in kept)]
        if needed:
            raise Refused(f"{needed} are to change in rows that are there, and the model lacks them")


def _type_of(name: str, produced: str, stored: str, mode: str) -> tuple[str, bool]:
    """The column's type, and whether a refusal is as right: with ``fail``, of any other type."""
    try:
        found = evolved_type(stored, produced, mode)
    except NotAllowed as error:
        raise Refused(f"{name}: {error}") from error
    wanted = stored_type(produced)
    return found, mode == "fail" and wanted not in (stored, "void")


def stored_rows(batch: Batch, types: dict[str, str]) -> list[Row]:
    """The batch's rows as the table holds them: its columns, under its names; NULL for what the batch lacks.

    ``_action`` stays with them.
    """
    produced = {one.name.lower(): one for one in batch.columns}
    rows = []
    for row in batch.dicts:
        kept = {"_action": row["_action"]} if "_action" in row else {}
        for name, type_ in types.items():
            there = produced.get(name.lower())
            if there is None:
                kept[name] = None
                continue
            try:
                kept[name] = keep(row[there.name], there.type, type_)
            except TooLarge as error:
                raise Refused(f"{name}: {error}", by_spark=True) from error
        rows.append(kept)
    return rows


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def key_of(model: Model, table: Table, row: Row) -> tuple[Any, ...]:
    names = {name.lower(): name for name in table.types}
    found = [names[key.lower()] for key in model.keys]
    return tuple(canonical(row[name], table.types[name]) for name in found)


def is_greater(one: Any, other: Any) -> bool:
    return one is not None and (other is None or one > other)
