"""The keyed table as a value, and its form as properties of the public view.

A keyed table is described only by the properties of its view, so a replacement of the view switches all of
them at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dbt_arctic.errors import DamagedKeyedTable, NewerProtocol
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.without_views import record_of

PROTOCOL = 3
"""The newest storage protocol that this program reads and writes."""

_PROTOCOL_OF_ARRIVAL_ORDER = 1
_PROTOCOL_OF_SEQUENCES = 2
"""A program without support for sequences would read a late older row as the newest one."""
_PROTOCOL_OF_HIDDEN_COLUMNS = 3
"""A program without support for hidden columns would write rows without their values."""

ACTION = "_action"
UNAVAILABLE = "_unavailable"
"""A column of a batch that is not stored: the names of the columns whose values a row lacks."""
OFFSET = "_offset"
TXN = "_txn"
SYSTEM_COLUMNS = (ACTION, OFFSET, TXN)
MARKER_TXN = 0
"""The ``_txn`` of bucket markers, which are rows without a change, see ``write.mark_buckets``."""
METADATA_COLUMNS = (
    "_row_id",
    "_last_updated_sequence_number",
    "_file",
    "_pos",
    "_spec_id",
    "_partition",
    "_deleted",
)
"""Iceberg's metadata columns. A table that stores a column of such a name cannot be read."""
RESERVED_COLUMNS = (*SYSTEM_COLUMNS, *METADATA_COLUMNS)

PROPERTY_PROTOCOL = "arctic.protocol"
PROPERTY_OF = "arctic.of"
"""On base and change: the dotted name of the keyed table they were made for."""
PROPERTY_ID = "arctic.id"
"""On base and change: a unique id, which distinguishes the table from another one with the same name."""
PROPERTY_CREATED = "arctic.created-ms"
PROPERTY_TOMBSTONES = "arctic.tombstone-retention-s"
_KEY, _LAYOUT, _OWNER = "arctic.key", "arctic.layout", "arctic.owner"
_SEQUENCE, _SIDE_PROTOCOL = "arctic.sequence-by", "arctic.side-protocol"
_HIDDEN = "arctic.hidden"
"""Names and types of the columns that are stored and not shown, because the view does not contain them."""

PROPERTY_PROJECTED = "arctic.projected"

DEFAULT_TOMBSTONE_RETENTION_S = 7 * 24 * 3600

_SIDE = re.compile(r"(?P<of>.+)__(?P<role>base|change)_(?P<generation>\d+)", re.DOTALL)


@dataclass(frozen=True)
class Column:
    """A column of the logical table; ``type`` is a Spark type."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class Generation:
    """One pair of base and change table. ``base_id`` and ``change_id`` are the tables' ``arctic.id``."""

    number: int
    base_id: str
    change_id: str
    sequence_by: str | None = None
    """The column that orders the changes of a key; ``None`` for the order in which they were committed."""

    def to_list(self) -> list[int | str]:
        """The form in which the view of the next generation stores it."""
        found: list[int | str] = [self.number, self.base_id, self.change_id]
        return found if self.sequence_by is None else [*found, self.sequence_by]


@dataclass(frozen=True)
class KeyedTable:
    """A logical table with a primary key: one view, or a record instead, one base table, one change table."""

    name: Name
    generation: Generation
    key: tuple[str, ...]
    layout: Layout
    columns: tuple[Column, ...]
    owner: str = ""
    previous: Generation | None = None
    root: str = ""
    """The name after which the side tables are named, if it differs because the view was renamed."""
    required: tuple[str, ...] = ()
    """The columns that the base declares NOT NULL. The change table does not: a delete has a key only."""
    tombstone_retention_s: int = DEFAULT_TOMBSTONE_RETENTION_S
    """With a sequence: how long a merged delete is kept, because an older row may still come."""
    hidden: tuple[str, ...] = ()
    """The columns, among ``columns``, that the view does not show. They are internal state of refreshes."""

    projected: str = ""
    """While columns of the side tables are changed: the number of the run that changes them. The view
    then names the fields that it shows, even if the side tables have others; see
    ``columns_at.projected``."""
    has_view: bool = True
    """Whether a view has its name. Otherwise a record describes it; see ``without_views``."""

    @property
    def described_by(self) -> Name:
        """The view or the record, whose properties describe the table."""
        return self.name if self.has_view else self.name.sibling(record_of(self.name.identifier))

    @property
    def visible(self) -> KeyedTable:
        """The table without hidden columns."""
        shown = tuple(column for column in self.columns if column.name not in self.hidden)
        return replace(self, columns=shown, hidden=()) if self.hidden else self

    @property
    def comparable(self) -> KeyedTable:
        """The table without hidden columns other than the sequence, which orders the changes of a row."""
        hidden = tuple(name for name in self.hidden if name == self.sequence_by)
        shown = tuple(one for one in self.columns if one.name in hidden or one.name not in self.hidden)
        return replace(self, columns=shown, hidden=hidden)

    @property
    def storage_name(self) -> Name:
        """The name under which the side tables were created."""
        return self.name.sibling(self.root or self.name.identifier)

    @property
    def base(self) -> Name:
        """The name of the base table."""
        return side_name(self.storage_name, "base", self.generation.number)

    @property
    def change(self) -> Name:
        """The name of the change table."""
        return side_name(self.storage_name, "change", self.generation.number)

    @property
    def sequence_by(self) -> str | None:
        """The column that orders the changes of a key; ``None`` for the order of commits."""
        return self.generation.sequence_by

    @property
    def protocol(self) -> int:
        """The oldest protocol that describes the table."""
        generations = [self.generation, *([self.previous] if self.previous else [])]
        if self.hidden:
            return _PROTOCOL_OF_HIDDEN_COLUMNS
        has_sequence = any(generation.sequence_by for generation in generations)
        return _PROTOCOL_OF_SEQUENCES if has_sequence else _PROTOCOL_OF_ARRIVAL_ORDER

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> dict[str, str]:
        """Spark type by column name, in the order of the table."""
        return {column.name: column.type for column in self.columns}

    @property
    def side_tables(self) -> tuple[Name, ...]:
        """All tables that belong to this one, including those of the previous generation."""
        generations = [self.generation, *([self.previous] if self.previous else [])]
        return tuple(
            side_name(self.storage_name, role, generation.number)
            for generation in generations
            for role in ("base", "change")
        )

    def to_properties(self) -> dict[str, str]:
        """The properties of the view that describe the table."""
        properties = {
            PROPERTY_PROTOCOL: str(self.protocol),
            "arctic.generation": str(self.generation.number),
            "arctic.base": self.base.identifier,
            "arctic.base-id": self.generation.base_id,
            "arctic.change": self.change.identifier,
            "arctic.change-id": self.generation.change_id,
            **self._description(),
            # Always written, because a replaced view keeps properties that the new one does not name.
            "arctic.previous": "",
            PROPERTY_PROJECTED: self.projected,
            "arctic.required": json.dumps(list(self.required)) if self.required else "",
        }
        if self.previous is not None:
            properties["arctic.previous"] = json.dumps(self.previous.to_list())
        return properties

    def side_properties(self) -> dict[str, str]:
        """The properties with which the base describes its generation.

        A lost view can be restored from them.
        """
        alone = replace(self, previous=None)
        return {_SIDE_PROTOCOL: str(alone.protocol), **self._description()}

    def _description(self) -> dict[str, str]:
        """The properties that neither files nor columns contain."""
        return {
            _KEY: json.dumps(list(self.key)),
            _LAYOUT: self.layout.to_json(),
            _OWNER: self.owner,
            _SEQUENCE: self.sequence_by or "",
            PROPERTY_TOMBSTONES: str(self.tombstone_retention_s) if self.sequence_by else "",
            _HIDDEN: json.dumps([(name, self.types[name]) for name in self.hidden]) if self.hidden else "",
        }


def side_name(of: Name, role: str, generation: int) -> Name:
    """The name of a base or change table. No other function builds such a name."""
    return of.sibling(f"{of.identifier}__{role}_{generation}")


def side_generation(of: Name, identifier: str) -> int | None:
    """The generation that an identifier would have as a side table of ``of``, or ``None``."""
    match = _SIDE.fullmatch(identifier)
    if match is None or match.group("of") != of.identifier:
        return None
    return int(match.group("generation"))


def is_keyed(properties: Mapping[str, str]) -> bool:
    """Whether a view with these properties is the public name of a keyed table."""
    # A replaced view keeps the properties of the old one, so a view that is no longer keyed has an empty
    # value.
    return bool(properties.get(PROPERTY_PROTOCOL))


def hides(properties: Mapping[str, str], identifier: str) -> bool:
    """Whether a keyed view with these properties hides the table ``identifier`` of its schema.

    This applies to any generation: one that the view does not name is being built or was abandoned.
    """
    root = side_root(identifier)
    return root is not None and root == side_root(properties.get("arctic.base", ""))


def stored_key(properties: Mapping[str, str]) -> tuple[str, ...] | None:
    """The key of the generation that a base table belongs to; ``None`` if the table does not record it."""
    text = properties.get(_KEY)
    return tuple(json.loads(text)) if text else None


def side_root(identifier: str) -> str | None:
    """The name of the keyed table whose side table would have this identifier.

    ``None`` for other identifiers.

    >>> side_root("orders__change_3"), side_root("orders")
    ('orders', None)
    """
    match = _SIDE.fullmatch(identifier)
    return None if match is None else match.group("of")


class SideIds(NamedTuple):
    """The ids of the base and the change table of a generation."""

    base: str
    change: str


def from_sides(
    name: Name,
    root: str,
    number: int,
    ids: SideIds,
    properties: Mapping[str, str],
    columns: tuple[Column, ...],
    required: tuple[str, ...],
) -> KeyedTable:
    """A generation from the description in its base table, for a generation without a view.

    :param ids: the ids of its side tables.
    :param properties: the properties of the base table.
    :raises NewerProtocol: a newer dbt-arctic wrote it.
    :raises DamagedKeyedTable: an older dbt-arctic created it, or its properties were changed.
    """
    try:
        _refuse_newer(name, int(properties[_SIDE_PROTOCOL]))
        return KeyedTable(
            name=name,
            generation=Generation(number, *ids, properties.get(_SEQUENCE) or None),
            key=tuple(json.loads(properties[_KEY])),
            layout=Layout.from_json(properties[_LAYOUT]),
            columns=columns,
            owner=properties.get(_OWNER, ""),
            root=root,
            required=required,
            tombstone_retention_s=_retention(properties),
            hidden=hidden_columns(properties),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedKeyedTable(
            f"the base table of generation {number} of {name} has no valid key property",
            where=name.dotted,
            why=f"it was created by an older dbt-arctic, or its properties were changed ({error!r})",
            fix=f"rebuild the table: dbt run --full-refresh --select {name.identifier}",
        ) from error


def hidden_columns(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The hidden columns, from the properties of a view or a base table."""
    return tuple(column.name for column in _hidden(properties))


def _hidden(properties: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in json.loads(properties.get(_HIDDEN) or "[]"))


def _retention(properties: Mapping[str, str]) -> int:
    return int(properties.get(PROPERTY_TOMBSTONES) or DEFAULT_TOMBSTONE_RETENTION_S)


def _refuse_newer(name: Name, protocol: int) -> None:
    if protocol > PROTOCOL:
        raise NewerProtocol(
            f"{name} has storage protocol {protocol}; this dbt-arctic supports up to {PROTOCOL}",
            where=name.dotted,
            fix="upgrade dbt-arctic: pip install --upgrade dbt-arctic",
        )


def from_properties(name: Name, properties: Mapping[str, str], columns: tuple[Column, ...]) -> KeyedTable:
    """Parse a keyed table from the properties of its view, with the given columns.

    :raises NewerProtocol: a newer dbt-arctic wrote it.
    :raises DamagedKeyedTable: a property is missing or invalid.
    """
    try:
        _refuse_newer(name, int(properties[PROPERTY_PROTOCOL]))
        generation = Generation(
            int(properties["arctic.generation"]),
            properties["arctic.base-id"],
            properties["arctic.change-id"],
            properties.get(_SEQUENCE) or None,
        )
        previous = None
        if properties.get("arctic.previous"):
            number, base_id, change_id, *sequence_by = json.loads(properties["arctic.previous"])
            previous = Generation(int(number), str(base_id), str(change_id), *sequence_by)
        hidden = _hidden(properties)
        root = _SIDE.fullmatch(properties["arctic.base"])
        if root is None:
            raise ValueError(f"arctic.base is {properties['arctic.base']!r}")
        return KeyedTable(
            name=name,
            generation=generation,
            key=tuple(json.loads(properties[_KEY])),
            layout=Layout.from_json(properties[_LAYOUT]),
            columns=(*columns, *hidden),
            owner=properties.get(_OWNER, ""),
            previous=previous,
            root=root.group("of"),
            required=tuple(json.loads(properties.get("arctic.required") or "[]")),
            tombstone_retention_s=_retention(properties),
            hidden=tuple(column.name for column in hidden),
            projected=properties.get(PROPERTY_PROJECTED, ""),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedKeyedTable(
            f"the properties of the view {name} do not describe a keyed table",
            where=name.dotted,
            why=f"{type(error).__name__}: {error}",
            fix=f"rebuild it: dbt run --full-refresh --select {name.identifier}",
        ) from error
