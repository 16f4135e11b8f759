"""Reads rows of a table at a snapshot as Arrow, without Spark: from Parquet files, less the deleted rows.

pyiceberg knows the formats of manifests, types and deletion vectors. Its own scan is not used: it has no
metadata columns, parses all metadata for each table, and changes some nested values (see
``column_projection``).
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import and_, or_
from types import MappingProxyType
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.dataset
from pyiceberg.conversions import from_bytes
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json
from pyiceberg.transforms import IdentityTransform, UnknownTransform
from pyiceberg.types import LongType, NestedField, PrimitiveType, StructType, UUIDType

from dbt_arctic.catalog.column_projection import arrow_schema, as_today
from dbt_arctic.catalog.damage import UnreadableFile, reading_file, unreadable_rows
from dbt_arctic.catalog.deleted_rows import PARQUET, PATH_OF_DELETE, DeletedRows, NotSupported
from dbt_arctic.catalog.files import local_path, open_file
from dbt_arctic.catalog.manifests import ScannedFile, scanned_files
from dbt_arctic.catalog.metadata import TableMetadata
from dbt_arctic.catalog.parquet_fields import stored_fields
from dbt_arctic.catalog.snapshot_files import no_snapshot
from dbt_arctic.errors import only_by_spark

_ROWS = 0
_FEW_FILES = 4
_LAST_UPDATED = NestedField(2147483539, "_last_updated_sequence_number", LongType(), required=False)
"""The metadata column of rows that a rewrite has moved to another file. Others have the file's number."""
_FEW_VALUES = 64
"""Up to so many values, each is a part of the condition on a file."""
_NAMES_OF_FIELDS = "schema.name-mapping.default"


@dataclass(frozen=True)
class TableFiles:
    """A table whose files are read: an ``ArrowTable``.

    :param name: its full name.
    :param properties: pyiceberg FileIO properties.
    """

    name: str
    metadata: TableMetadata
    properties: Mapping[str, str]

    @cached_property
    def types(self) -> pyarrow.Schema:
        try:
            return arrow_schema(self.schema.as_struct())
        except NotSupported as error:
            raise only_by_spark(self.name, str(error)) from error

    def rows(
        self,
        columns: Sequence[str],
        snapshot_id: int,
        wanted: Mapping[str, pyarrow.Array] = MappingProxyType({}),
        commit: str = "",
    ) -> pyarrow.Table:
        with self._readable(snapshot_id):
            return _Scan(self, snapshot_id, columns, wanted, commit).read()

    def tuples(self, columns: Sequence[str], snapshot_id: int | None = None) -> list[tuple[Any, ...]]:
        """All rows for ``CatalogReader.read_rows``. Values of type ``timestamp`` are in UTC."""
        at = self.metadata.state.current_snapshot_id if snapshot_id is None else snapshot_id
        if at is None:
            return []
        found = self.rows(columns, at)
        return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))

    def parts(self, columns: Sequence[str], snapshot_id: int) -> Iterator[pyarrow.Table]:
        with self._readable(snapshot_id):
            scan = _Scan(self, snapshot_id, columns, {}, "")
            yield scan.empty
            yield from scan.parts()

    @contextmanager
    def _readable(self, snapshot_id: int) -> Iterator[None]:
        """Convert the errors of a read."""
        if snapshot_id not in self.metadata.manifest_lists:
            raise no_snapshot(
                self.name, snapshot_id, "read it again, or choose a version that `dbt-arctic history` lists"
            )
        try:
            yield
        except NotSupported as error:
            raise only_by_spark(self.name, str(error)) from error
        except UnreadableFile as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise unreadable_rows(self.name, error.path, cause) from cause

    @cached_property
    def schema(self) -> Schema:
        """The columns of today."""
        try:
            return Schema.model_validate({"type": "struct", "fields": self.metadata.fields})
        except (ValueError, TypeError) as error:
            raise NotSupported("it has a column of a type that pyiceberg does not support") from error


@dataclass(frozen=True)
class _Scan:
    """A scan of some columns at a snapshot. The parameters are those of ``ArrowTable.rows``."""

    table: TableFiles
    snapshot_id: int
    columns: Sequence[str]
    wanted: Mapping[str, pyarrow.Array]
    commit: str

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @property
    def properties(self) -> Mapping[str, str]:
        return self.table.properties

    def read(self) -> pyarrow.Table:
        """The rows, in no particular order. Strings and lists have Arrow's large types."""
        files, deleted = self._files
        if self._starts_no_threads(files):
            tables = [self._file(file, deleted) for file in files]
        else:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                tables = list(pool.map(lambda file: self._file(file, deleted), files))
        return pyarrow.concat_tables([self.empty, *tables])

    def _starts_no_threads(self, files: Sequence[ScannedFile]) -> bool:
        """Whether threads take longer to start than the files take to read: for a key in few local files."""
        if len(files) < 2:
            return True
        return bool(self.wanted) and len(files) <= _FEW_FILES and all(local_path(file.path) for file in files)

    def parts(self) -> Iterator[pyarrow.Table]:
        """The rows of each row group, which is read when its rows are requested."""
        files, deleted = self._files
        for file in files:
            yield from self._parts(file, deleted)

    @cached_property
    def empty(self) -> pyarrow.Table:
        """The columns, without rows."""
        schema = arrow_schema(self._projected.as_struct())
        if self.commit:
            schema = schema.append(pyarrow.field(self.commit, pyarrow.int64()))
        return schema.empty_table()

    @cached_property
    def _files(self) -> tuple[list[ScannedFile], DeletedRows]:
        """The data files that may have wanted rows, and all deleted rows."""
        location = self.metadata.manifest_lists[self.snapshot_id]
        files = scanned_files(location, self.properties, frozenset((*self._wanted, PATH_OF_DELETE)))
        deleted = DeletedRows([file for file in files if file.content != _ROWS], self.properties)
        return [file for file in files if file.content == _ROWS and self._may_hold(file)], deleted

    @cached_property
    def _projected(self) -> Schema:
        return Schema(*(self.table.schema.find_field(column) for column in self.columns))

    @cached_property
    def _read(self) -> Schema:
        """The columns to read, with the number of the last commit of a row."""
        return Schema(*self._projected.fields, _LAST_UPDATED) if self.commit else self._projected

    @cached_property
    def _wanted(self) -> dict[int, list[Any]]:
        """The wanted values by field id, sorted, as partitions and bounds have them: times are numbers.

        Not those of floating-point columns, whose bounds leave out NaN, nor of UUID, which are text here.
        """
        fields = {name: self.table.schema.find_field(name) for name in self.wanted}
        return {
            fields[name].field_id: sorted(_as_stored(values).unique().to_pylist())
            for name, values in self.wanted.items()
            if not pyarrow.types.is_floating(values.type) and fields[name].field_type != UUIDType()
        }

    @cached_property
    def _name_mapping(self) -> NameMapping | None:
        text = self.metadata.state.properties.get(_NAMES_OF_FIELDS)
        return parse_mapping_from_json(text) if text else None

    @cached_property
    def _partitions(self) -> dict[int, list[frozenset[Any] | None]]:
        """By spec id and place in the partition: its values that wanted rows have; ``None`` for any."""
        return {
            spec_id: [self._partition_values(PartitionField.model_validate(field)) for field in fields]
            for spec_id, fields in self.metadata.partition_specs.items()
        }

    def _partition_values(self, field: PartitionField) -> frozenset[Any] | None:
        if field.source_id not in self._wanted:
            return None
        if isinstance(field.transform, UnknownTransform):
            return None
        transform = field.transform.transform(self.table.schema.find_field(field.source_id).field_type)
        try:
            return frozenset(map(transform, self._wanted[field.source_id]))
        except OverflowError:  # Python has no years after 9999
            return None

    def _may_hold(self, file: ScannedFile) -> bool:
        """Whether a file may have a wanted row, by its partition and its bounds."""
        if not self._wanted:
            return True
        places = zip(self._partitions[file.spec_id], file.partition, strict=True)
        if any(values is not None and value not in values for values, value in places):
            return False
        return all(self._is_in_bounds(file, field_id) for field_id in self._wanted)

    def _is_in_bounds(self, file: ScannedFile, field_id: int) -> bool:
        type_ = self.table.schema.find_field(field_id).field_type
        low, high = file.lower.get(field_id), file.upper.get(field_id)
        if low is None or high is None or not isinstance(type_, PrimitiveType):
            return True
        values = self._wanted[field_id]
        place = bisect_left(values, from_bytes(type_, low))
        return place < len(values) and bool(values[place] <= from_bytes(type_, high))

    def _file(self, file: ScannedFile, deleted: DeletedRows) -> pyarrow.Table:
        with self._opened(file) as (fragment, stored):
            gone = deleted.of(file)
            wanted = self._wanted_in(file, fragment.physical_schema, stored)
            if gone is None:
                condition = _condition(wanted) if wanted else None
                rows = fragment.to_table(columns=self._names(stored), filter=condition)
            else:
                rows = pyarrow.concat_tables(self._row_groups(fragment, stored, gone, wanted))
            return self._as_today(rows, file, stored)

    def _parts(self, file: ScannedFile, deleted: DeletedRows) -> Iterator[pyarrow.Table]:
        with self._opened(file) as (fragment, stored):
            for rows in self._row_groups(fragment, stored, deleted.of(file)):
                yield self._as_today(rows, file, stored)

    @contextmanager
    def _opened(self, file: ScannedFile) -> Iterator[tuple[Any, StructType]]:
        """A file and its columns."""
        if file.file_format != PARQUET:
            raise NotSupported(f"it has files of the format {file.file_format}")
        with reading_file(file.path, NotSupported), open_file(file.path, self.properties) as stream:
            # Nanoseconds, which are Arrow's default for INT96, only exist for 584 years.
            parquet = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")
            fragment = parquet.make_fragment(stream)
            stored = stored_fields(fragment.physical_schema, self._name_mapping)
            if stored is None:
                raise NotSupported(
                    f"{file.path} has no field ids, and the table has no property {_NAMES_OF_FIELDS}"
                )
            yield fragment, stored

    def _names(self, stored: StructType) -> list[str]:
        """The columns of a file that are read. If it has none of them, any other: Arrow has to count rows."""
        return [field.name for field in self._of(stored).fields or stored.fields[:1]]

    def _of(self, stored: StructType) -> StructType:
        ids = {field.field_id for field in self._read.fields}
        return StructType(*(field for field in stored.fields if field.field_id in ids))

    def _as_today(self, rows: pyarrow.Table, file: ScannedFile, stored: StructType) -> pyarrow.Table:
        constants = self._constants(file, stored)
        table = as_today(rows, self._of(stored), self._read.as_struct(), constants)
        if not self.commit:
            return table
        written = table.column(_LAST_UPDATED.name).fill_null(file.sequence)
        place = table.column_names.index(_LAST_UPDATED.name)
        return table.remove_column(place).append_column(self.commit, written)

    def _row_groups(
        self,
        fragment: Any,
        stored: StructType,
        deleted: pyarrow.Array | None,
        wanted: Mapping[str, pyarrow.Array] = MappingProxyType({}),
    ) -> Iterator[pyarrow.Table]:
        """Columns of a file, as the file stores them.

        :param wanted: only rows with these values, by the name in the file.
        """
        columns = self._names(stored)
        # Positions count all rows of the file.
        starts = [0, *accumulate(group.num_rows for group in fragment.row_groups)]
        kept = fragment.subset(_condition(wanted)) if wanted else fragment
        yield fragment.subset(row_group_ids=[]).to_table(columns=columns)
        for place in (group.id for group in kept.row_groups):
            group = fragment.subset(row_group_ids=[place])
            if deleted is None:
                yield group.to_table(columns=columns)
                continue
            positions = _numbers(starts[place], starts[place + 1])
            is_shown = pyarrow.compute.invert(pyarrow.compute.is_in(positions, value_set=deleted))
            if wanted:
                # Most row groups do not have the key, and then none of their other columns is read.
                found = group.to_table(columns=list(wanted))
                for name, values in wanted.items():
                    is_wanted = pyarrow.compute.is_in(found.column(name), value_set=values)
                    is_shown = pyarrow.compute.and_(is_shown, is_wanted)
                if not pyarrow.compute.any(is_shown).as_py():
                    continue
            yield group.to_table(columns=columns).filter(is_shown)

    def _wanted_in(
        self, file: ScannedFile, physical: pyarrow.Schema, stored: StructType
    ) -> dict[str, pyarrow.Array]:
        """The wanted values of a file by its names and in its types, without those it is not filtered by."""
        found = {}
        for name, values in self.wanted.items():
            field_id = self.table.schema.find_field(name).field_id
            there = [field.name for field in stored.fields if field.field_id == field_id]
            if not there or pyarrow.types.is_floating(values.type):
                continue
            try:
                values = self._values_in(file, field_id, values).cast(physical.field(there[0]).type)
                pyarrow.compute.min_max(values)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                continue  # the file's type cannot have one of the values, or has no order
            found[there[0]] = values
        return found

    def _values_in(self, file: ScannedFile, field_id: int, values: pyarrow.Array) -> pyarrow.Array:
        """The wanted values of a column that rows of a file may have, by its partition."""
        if field_id not in self._wanted or len(values) == 1:
            return values
        fields = map(PartitionField.model_validate, self.metadata.partition_specs[file.spec_id])
        for field, place in zip(fields, file.partition, strict=True):
            if field.source_id == field_id and not isinstance(field.transform, UnknownTransform):
                of = field.transform.transform(self.table.schema.find_field(field_id).field_type)
                try:
                    is_there = [of(value) == place for value in _as_stored(values).to_pylist()]
                except OverflowError:  # Python has no years after 9999
                    continue
                values = values.filter(pyarrow.array(is_there, pyarrow.bool_()))
        return values

    def _constants(self, file: ScannedFile, stored: StructType) -> dict[int, Any]:
        """By field id, the values of columns that are only in the partition, as in files of Hive."""
        fields = map(PartitionField.model_validate, self.metadata.partition_specs[file.spec_id])
        there = {field.field_id for field in stored.fields}
        return {
            field.source_id: value
            for field, value in zip(fields, file.partition, strict=True)
            if isinstance(field.transform, IdentityTransform) and field.source_id not in there
        }


def _condition(wanted: Mapping[str, pyarrow.Array]) -> Any:
    """The condition of rows with one of the values in each column."""
    conditions = []
    for name, values in wanted.items():
        field, bounds = pyarrow.dataset.field(name), pyarrow.compute.min_max(values)
        if 0 < len(values) <= _FEW_VALUES:
            # By each value, so that row groups between two of them are left out.
            conditions.append(reduce(or_, [field == value for value in values]))
        else:
            conditions += [field >= bounds["min"], field <= bounds["max"], field.isin(values)]
    return reduce(and_, conditions)


def _numbers(first: int, end: int) -> pyarrow.Array:
    """The whole numbers from ``first`` up to ``end``, without a Python object for each of them.

    >>> _numbers(3, 6).to_pylist(), _numbers(3, 3).to_pylist()
    ([3, 4, 5], [])
    """
    ones = pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), end - first)
    return pyarrow.compute.cumulative_sum(ones, start=first - 1)


def _as_stored(values: pyarrow.Array) -> pyarrow.Array:
    """Dates and times as the numbers by which Iceberg stores them."""
    if pyarrow.types.is_date(values.type):
        return values.cast(pyarrow.int32())
    return values.cast(pyarrow.int64()) if pyarrow.types.is_timestamp(values.type) else values
