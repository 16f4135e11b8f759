"""What the rest of dbt-arctic may ask of a catalog, and the values it gets back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class RelationEntry:
    """One line of a listing. ``properties`` are a view's (empty for a table)."""

    schema: str
    name: str
    kind: Literal["table", "view"]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogColumn:
    """A column; ``type`` in Spark's words (``bigint``, ``decimal(12,2)``, ``struct<a:int>``)."""

    name: str
    type: str
    comment: str = ""
    nullable: bool = True
    field_id: int | None = field(default=None, compare=False)
    """Iceberg's number of it, which it keeps when it is renamed; ``None`` where the catalog does not tell."""
    nested: str = field(default="", compare=False)
    """Of a struct, a list or a map what is in it, with Iceberg's numbers, as its JSON has it; empty where the
    catalog does not tell."""


@dataclass(frozen=True)
class Snapshot:
    """One Iceberg snapshot. ``timestamp_ms`` is UTC milliseconds since the epoch.

    :param is_number_guessed: the sequence number tells the order of snapshots, and compares with no row's.
    :param has_row_ids: it was written in format version 3, in which each row has the number of its last
        change, and keeps it through a rewrite of files. Read by SQL, only the head of main tells.
    """

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    operation: str
    summary: Mapping[str, str]
    is_number_guessed: bool = False
    has_row_ids: bool = False


@dataclass(frozen=True)
class TableState:
    """An Iceberg table's metadata as of one load."""

    schema: str
    name: str
    location: str
    properties: Mapping[str, str]
    columns: tuple[CatalogColumn, ...]
    snapshots: tuple[Snapshot, ...]
    current_snapshot_id: int | None
    branches: Mapping[str, int]
    """Branch name to its head's snapshot id; ``main`` included when it has a snapshot."""
    tags: Mapping[str, int] = field(default_factory=dict)
    partitioning: tuple[str, ...] | None = None
    """What new files are partitioned by, as ``day``, ``bucket(8, id)``, ``truncate(4, sku)`` or ``days(at)``;
    ``None`` where nobody tells."""
    spec_id: int | None = None
    """The id of the partition spec for new files; ``None`` if unknown."""
    has_old_specs: bool = False
    """Whether files may have been partitioned in another way."""
    sort_order: tuple[str, ...] | None = None
    """The columns by which new files are sorted; ``None`` if unknown."""

    def history(self, head: int | None = None) -> list[Snapshot]:
        """The ancestors of ``head`` (default: main's), newest first, ``head`` included."""
        by_id = {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}
        at = self.current_snapshot_id if head is None else head
        found: list[Snapshot] = []
        while at is not None and at in by_id:
            found.append(by_id[at])
            at = by_id[at].parent_id
        return found


@dataclass(frozen=True)
class ViewState:
    """An Iceberg view's metadata as of one load."""

    schema: str
    name: str
    properties: Mapping[str, str]
    columns: tuple[CatalogColumn, ...]
    sql: str
    comment: str = ""
    location: str = ""
    """The folder of its metadata; empty if unknown."""
    namespace: str = field(default="", compare=False)
    """The default schema of its query; empty if unknown, as DESCRIBE does not return it."""
    catalog: str = field(default="", compare=False)
    """The catalog that its text means where it names none; empty: its own."""


@dataclass(frozen=True)
class DataFile:
    """One live data file of a snapshot, with the value range of one requested column.

    :param nulls: how many of its rows have NULL there; ``None`` where nobody counted.
    """

    path: str
    record_count: int
    size_bytes: int
    lower: int | None
    upper: int | None
    nulls: int | None = None


@dataclass(frozen=True)
class PlacedFile:
    """A file that a snapshot needs, and where in the table it belongs. Its size alone tells no rows.

    :param rows: of a data file its rows, hidden ones included; of one that deletes, how many rows it hides.
    :param partition: the values of the partition fields as texts, buckets included.
    :param bounds: of a data file, the value range of one asked-for column, where it is known.
    """

    is_data: bool
    rows: int
    size_bytes: int
    partition: tuple[str, ...]
    bounds: tuple[int, int] | None = None
    spec_id: int = 0
    """Of the partition spec with which it was written."""


@dataclass(frozen=True)
class StoredFile:
    """A file that a snapshot needs: of rows, of deletes or of deletion vectors."""

    path: str
    size_bytes: int


class TableReader(Protocol):
    """The part of a catalog's interface that reads tables."""

    def load_table(self, schema: str, name: str) -> TableState | None: ...


class CatalogReader(Protocol):
    """Reads metadata; never writes. Every method sees the catalog as it is now (no cache)."""

    @property
    def needs_spark(self) -> bool:
        """Whether a question costs statements on Spark."""
        ...

    def list_schemas(self) -> list[str]: ...

    def list_relations(self, schema: str) -> list[RelationEntry]:
        """Tables and views of a schema; empty when the schema does not exist."""
        ...

    def list_names(self, schema: str) -> list[RelationEntry]:
        """The same without properties: no view is opened, so that a damaged one hides no other."""
        ...

    def load_table(self, schema: str, name: str) -> TableState | None:
        """``None`` when there is no table of that name (a view is not a table)."""
        ...

    def load_view(self, schema: str, name: str) -> ViewState | None:
        """``None`` when there is no view of that name."""
        ...

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        """The columns that a table had when a snapshot was committed, as they were then: each may have been
        renamed or made wider since. By their names of today; a catalog that is read by SQL does not know of
        other names."""
        ...

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        """The live data files of a snapshot, with bounds of the BIGINT column ``column``."""
        ...

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        """Every file that a snapshot needs."""
        ...

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        """Every file that a snapshot needs, by partition, with bounds of the BIGINT column ``column``."""
        ...

    def read_rows(self, schema: str, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """All rows of a small table, in no order: for tables that we keep about others. Spark does not start
        for it where metadata is read without Spark."""
        ...
