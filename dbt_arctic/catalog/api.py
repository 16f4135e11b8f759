"""The interface through which the rest of dbt-arctic reads a catalog, and the values that it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from dbt_arctic.catalog.partition_names import PartitionField
from dbt_arctic.errors import CatalogUnavailable

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class RelationEntry:
    """A relation in a listing. ``properties`` are those of a view (empty for a table)."""

    schema: str
    name: str
    kind: Literal["table", "view"]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogColumn:
    """A column; ``type`` is a Spark type (``bigint``, ``decimal(12,2)``, ``struct<a:int>``)."""

    name: str
    type: str
    comment: str = ""
    nullable: bool = True
    field_id: int | None = field(default=None, compare=False)
    """Iceberg's field id, which a rename does not change; ``None`` if the catalog does not report it."""
    nested: str = field(default="", compare=False)
    """The nested type of a struct, list or map with field ids, as its Iceberg JSON; empty if unknown."""
    initial: str = field(default="", compare=False)
    """JSON of the value in rows that were written before the column was added; empty for NULL, or if unknown.
    Such rows are those of engines that add a column with a default. In ``columns_at``, a column with this
    value and no name did not exist then."""


@dataclass(frozen=True)
class Snapshot:
    """One Iceberg snapshot. ``timestamp_ms`` is UTC milliseconds since the epoch.

    :param is_number_guessed: the sequence number only orders snapshots and cannot be compared with that of a
        row.
    :param has_row_ids: it was written in format version 3, in which each row has the number of its last
        change and keeps it when files are rewritten. By SQL, this is only known for the head of main.
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
    """Branch name to the snapshot id of its head; includes ``main`` if it has a snapshot."""
    tags: Mapping[str, int] = field(default_factory=dict)
    partitioning: tuple[str, ...] | None = None
    """The partitioning of new files, as ``day``, ``bucket(8, id)`` or ``days(at)``; ``None`` if unknown."""
    spec_id: int | None = None
    """The id of the partition spec for new files; ``None`` if unknown."""
    has_old_specs: bool = False
    """Whether files may have an older partitioning."""
    partition_fields: tuple[PartitionField, ...] = ()
    """The fields of all its partition specs, oldest spec first; only those in use if others are unknown."""
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
    """The catalog of unqualified names in its text; empty for its own catalog."""
    is_record: bool = False
    """Whether it is the record of a keyed table in a catalog without views. It has no text."""


@dataclass(frozen=True)
class DataFile:
    """One live data file of a snapshot, with the value range of one requested column.

    :param nulls: the number of its rows that have NULL in that column; ``None`` if unknown.
    """

    path: str
    record_count: int
    size_bytes: int
    lower: int | None
    upper: int | None
    nulls: int | None = None


@dataclass(frozen=True)
class PlacedFile:
    """A file of a snapshot, and its partition.

    :param rows: the rows of a data file, deleted ones included; the number of deleted rows of a delete file.
    :param partition: the values of the partition fields as strings, buckets included.
    :param bounds: the value range of the requested column in a data file, if known.
    """

    is_data: bool
    rows: int
    size_bytes: int
    partition: tuple[str, ...]
    bounds: tuple[int, int] | None = None
    spec_id: int = 0
    """The partition spec with which it was written."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a snapshot: a data file, a delete file or a file of deletion vectors."""

    path: str
    size_bytes: int


class ListedFile(NamedTuple):
    """A file as a listing of its folder describes it. A tuple, because a folder may have a million of them.

    :param modified_ms: when it was last written, in UTC milliseconds since the epoch.
    """

    path: str
    modified_ms: int
    size_bytes: int


class InCatalog(Protocol):
    """Anything in a catalog, such as the name of a table."""

    @property
    def catalog(self) -> str:
        """Spark's name of the catalog."""


class TableReader(Protocol):
    """The part of a catalog's interface that reads tables."""

    def of(self, name: InCatalog) -> TableReader:
        """The reader of the catalog that a name is in."""

    def load_table(self, schema: str, name: str) -> TableState | None:
        """Load a table; ``None`` if there is no table of that name."""


class ArrowTable(Protocol):
    """The current state of a table whose rows are read without Spark.

    :raises OnlyBySpark: (any member) only Spark can read it.
    """

    @property
    def types(self) -> pyarrow.Schema:
        """The current columns, with Arrow's large types for strings, binary values and lists."""

    def rows(
        self,
        columns: Sequence[str],
        snapshot_id: int,
        wanted: Mapping[str, pyarrow.Array] = ...,
        commit: str = "",
    ) -> pyarrow.Table:
        """The rows of some current columns at a snapshot, in no particular order.

        :param wanted: by column, the only values that are wanted. Rows with other values may be left out, but
            do not have to be.
        :param commit: the name of a BIGINT column to add: the number of the commit that last wrote the row.
        :raises VersionUnavailable: the snapshot has expired.
        :raises CatalogUnavailable: a file cannot be read.
        """

    def parts(self, columns: Sequence[str], snapshot_id: int) -> Iterator[pyarrow.Table]:
        """As ``rows``, in parts: each is read when its rows are requested. The first part is empty."""


Loaded = TableState | ViewState | CatalogUnavailable | None
"""A relation as it was loaded: its state, the error, or ``None`` if it does not exist any more."""


class CatalogReader(Protocol):
    """Reads metadata and never writes.

    Every method returns the current state of the catalog, without a cache.
    """

    def of(self, name: InCatalog) -> CatalogReader:
        """The reader of the catalog that a name is in; ``name`` may be anything with a ``catalog``.

        The methods below take a name without its catalog. So they are called on the result of ``of``, which
        no reader forgets: called on the profile's catalogs as a whole, they read the first of these.

        :raises ConfigError: the profile has several catalogs, and not this one.
        """
        ...

    def names_with(self, name: InCatalog) -> Sequence[str]:
        """The names of all catalogs of the profile, that of ``name`` first."""
        ...

    @property
    def needs_spark(self) -> bool:
        """Whether a request runs statements on Spark."""
        ...

    def has_views(self) -> bool:
        """Whether the catalog stores views. The result is kept."""
        ...

    def list_schemas(self) -> list[str]:
        """The names of all schemas."""

    def list_relations(self, schema: str) -> list[RelationEntry]:
        """Tables and views of a schema; empty if the schema does not exist."""
        ...

    def list_names(self, schema: str) -> list[RelationEntry]:
        """Like ``list_relations`` without properties.

        No view is opened, so a damaged one does not affect the others.
        """
        ...

    def load_table(self, schema: str, name: str) -> TableState | None:
        """Load a table; ``None`` if there is no table of that name (a view is not a table)."""
        ...

    def load_view(self, schema: str, name: str) -> ViewState | None:
        """Load a view; ``None`` if there is no view of that name."""
        ...

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        """Load the relations of a listing, in its order, with the requests to a server in parallel.

        An error of one relation does not affect the others.
        """
        ...

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        """The columns that a table had when a snapshot was committed, by their current names and in order.

        Columns may have been renamed, widened or dropped since. A dropped one has its name of that time,
        unless a current column has it. A catalog that is read by SQL does not detect renamed ones, and does
        not know defaults.
        """
        ...

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        """The live data files of a snapshot, with the bounds of ``column`` as Iceberg stores them.

        The column is a BIGINT, INT, DATE or a timestamp. If SQL answers, timestamps have no bounds.
        """
        ...

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        """All files of a snapshot."""
        ...

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        """All files of a snapshot, by partition, with bounds of the BIGINT column ``column``."""
        ...

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        """All rows of a small table, in no particular order, for the metadata tables of dbt-arctic.

        Does not start Spark if metadata is read without Spark.

        :param snapshot_id: the snapshot to read; ``None`` reads the current one.
        """
        ...

    def arrow_table(self, schema: str, name: str) -> ArrowTable:
        """A table, to read its rows without Spark.

        :raises UnknownRelation: it does not exist.
        :raises OnlyBySpark: the catalog or the table can only be read by Spark.
        """
        ...

    def list_files(self, folder: str) -> list[ListedFile]:
        """All files below a folder, in no order. A folder that does not exist has none."""
        ...
