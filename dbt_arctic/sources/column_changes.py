"""How the columns of a followed table have changed since a model read it, and what a run does about it. Pure.

The log has the values of rows, and not the statements that change a table. So a model's commit records the
columns by their numbers in the catalog, which they keep for ever, and the next run compares them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dbt_arctic.data_type import decimal_digits
from dbt_arctic.databases.api import Table, TableVersion, shape_of

Effect = Literal["none", "null", "read", "load"]
"""What a change of a table means for a model: nothing for its rows; older changes are NULL in the column; the
run reads all rows again; or the model must be built again, because its rows have another key."""


class RecordedColumn(NamedTuple):
    """A column as a model has read it.

    :param number: see ``ColumnVersion``.
    :param type: of Spark.
    :param changed_by: see ``ColumnVersion``.
    :param labels: the number of labels of an enum.
    :param labels_hash: of these labels.
    :param shown_as: see ``ColumnVersion``.
    """

    number: int
    name: str
    type: str
    changed_by: str
    labels: int
    labels_hash: str
    shown_as: str = ""


@dataclass(frozen=True)
class RecordedTable:
    """A table as a model has read it.

    :param storage: see ``TableVersion``.
    :param last_number: see ``TableVersion``.
    :param shape: ``shape_of`` the columns that the log has.
    :param key: the numbers of the key's columns.
    :param earlier: names of columns that the model has read and that are gone, in lower case. Its table may
        still have them.
    """

    storage: str
    last_number: int
    shape: str
    key: tuple[int, ...]
    columns: tuple[RecordedColumn, ...]
    earlier: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, version: TableVersion, types: Mapping[str, str], key: Sequence[str], before: RecordedTable | None
    ) -> RecordedTable:
        """What a commit records.

        :param types: of Spark, by name of the columns that are read.
        :param before: what the commit before has recorded.
        """
        columns = []
        for name, kind in types.items():
            if name not in version.logged:
                continue  # changes lack it, and the next run finds it
            column = version.columns[name]
            hashed = _hash(column.labels) if column.labels else ""
            labels = len(column.labels)
            made = RecordedColumn(
                column.number, name, kind, column.changed_by, labels, hashed, column.shown_as
            )
            columns.append(made)
        gone = set() if before is None else {*before.earlier, *(one.name.lower() for one in before.columns)}
        return cls(
            version.storage,
            version.last_number,
            shape_of(version.logged),
            tuple(version.columns[name].number if name in version.columns else 0 for name in key),
            tuple(columns),
            tuple(sorted(gone - {name.lower() for name in types})),
        )

    def as_json(self) -> list[Any]:
        """The form in which a commit records it."""
        return [
            *(self.storage, self.last_number, self.shape, list(self.key)),
            *([list(one) for one in self.columns], list(self.earlier)),
        ]

    @classmethod
    def from_json(cls, made: Sequence[Any]) -> RecordedTable:
        """The inverse of ``as_json``."""
        storage, last_number, shape, key, columns, earlier = made
        return cls(
            *(storage, last_number, shape, tuple(key)),
            *(tuple(RecordedColumn(*one) for one in columns), tuple(earlier)),
        )


class TableChange(NamedTuple):
    """A change of a table.

    :param text: what the user reads of it.
    :param column: whose values it concerns.
    """

    text: str
    effect: Effect
    column: str = ""


def table_changes(
    before: RecordedTable,
    table: Table,
    types: Mapping[str, str],
    key: Sequence[str],
    shapes: Collection[str],
    nullable: Collection[str] = (),
) -> list[TableChange]:
    """How a table has changed since a model read it.

    :param before: what the model's last commit has recorded.
    :param table: as it is now.
    :param types: as for ``RecordedTable.of``.
    :param shapes: of the changes that the model has not read.
    :param nullable: columns that are NULL in rows that are older than the column, whatever its default is.
    """
    version = table.version
    if version is None:
        return []
    now = RecordedTable.of(version, types, key, before)
    found = [
        # Deletes in the log have the key as it was.
        one._replace(effect="load") if one.column in key and one.effect == "read" else one
        for one in _columns(before, now, version, nullable, bool(shapes))
    ]
    if before.key != now.key:
        found.append(TableChange("another key", "load"))
    # The log does not say which columns have these names, if they are neither those of before nor of now.
    if set(shapes) - {before.shape, now.shape} and not any(one.effect in ("read", "load") for one in found):
        # Deletes have only the key, whose columns may have exchanged their names in between.
        effect: Effect = "load" if len(key) > 1 else "read"
        found.append(TableChange("columns that were changed more than once", effect))
    return found


def _columns(
    before: RecordedTable,
    now: RecordedTable,
    version: TableVersion,
    nullable: Collection[str],
    has_changes: bool,
) -> Iterator[TableChange]:
    known = {one.number: one for one in before.columns}
    is_rewritten = not now.storage or before.storage != now.storage
    numbers = {one.number for one in version.columns.values()}
    # Changes may have the name of a new column, and the values of one that is gone.
    has_gone = set(range(before.last_number + 1, now.last_number + 1)) - numbers
    for column in now.columns:
        name, old = column.name, known.pop(column.number, None)
        if old is None:
            added = _added(before, column, version, is_rewritten, name in nullable)
            yield added._replace(effect="read") if has_gone and has_changes else added
        elif old.name != name:
            yield TableChange(f"{old.name} renamed to {name}", "read", name)
        elif old.type != column.type:
            # More digits before the point leave the values as they are.
            effect: Effect = (
                "none" if not is_rewritten and _has_more_digits(old.type, column.type) else "read"
            )
            yield TableChange(f"{name}: {old.type.lower()} to {column.type.lower()}", effect, name)
        elif old.labels_hash != _hash(version.columns[name].labels[: old.labels]) and old.labels:
            yield TableChange(f"{name}: other labels of its type", "read", name)
        elif old.changed_by != column.changed_by and (is_rewritten or _is_shown_otherwise(old, column)):
            yield TableChange(f"{name}: values that were converted", "read", name)
    for old in known.values():
        what = "no longer read" if old.number in numbers else "dropped"
        yield TableChange(f"{old.name} {what}", "none", old.name)


def _added(
    before: RecordedTable,
    column: RecordedColumn,
    version: TableVersion,
    is_rewritten: bool,
    is_nullable: bool,
) -> TableChange:
    """A column that the model has not read.

    It is NULL in older rows, unless they have its default; it existed before; or the model's table has values
    of another column of this name.
    """
    name = column.name
    taken = {*before.earlier, *(one.name.lower() for one in before.columns)}
    if column.number <= before.last_number:
        return TableChange(f"{name} read for the first time", "read", name)
    if name.lower() in taken:
        return TableChange(f"another column {name}", "read", name)
    fills_older = version.columns[name].fills_older or is_rewritten
    return TableChange(f"{name} added", "read" if fills_older and not is_nullable else "null", name)


def _is_shown_otherwise(old: RecordedColumn, now: RecordedColumn) -> bool:
    return bool(old.shown_as) and old.shown_as != now.shown_as


def _has_more_digits(old: str, new: str) -> bool:
    before, now = decimal_digits(old), decimal_digits(new)
    return before is not None and now is not None and now.scale == before.scale and now.whole > before.whole


def _hash(labels: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(labels).encode()).hexdigest()[:8]


__all__ = ["Effect", "RecordedColumn", "RecordedTable", "TableChange", "table_changes"]
