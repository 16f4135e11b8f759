"""Finds the files and columns of a snapshot from the metadata of its table.

Missing ones are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dbt_arctic.catalog.api import CatalogColumn, DataFile, PlacedFile, StoredFile
from dbt_arctic.catalog.damage import unreadable_manifest
from dbt_arctic.catalog.metadata import TableMetadata
from dbt_arctic.errors import UnknownRelation, VersionUnavailable

T = TypeVar("T")


def snapshot_files(
    catalog: str,
    schema: str,
    name: str,
    metadata: TableMetadata | None,
    snapshot_id: int,
    column: str,
    properties: Mapping[str, str],
) -> list[DataFile]:
    """The live data files of ``snapshot_id`` with bounds of ``column``.

    :raises UnknownRelation: the table or column does not exist.
    :raises VersionUnavailable: the snapshot has expired.
    :raises CatalogUnavailable: a manifest cannot be read.
    """
    relation = f"{catalog}.{schema}.{name}"
    metadata = existing(relation, metadata)
    field_id = _known_field(relation, metadata, column)
    # Imported here because it loads pyiceberg, which nothing else of a local catalog needs.
    from dbt_arctic.catalog.manifests import live_files

    return _reading(
        catalog, schema, name, metadata, snapshot_id, lambda found: live_files(found, field_id, properties)
    )


def snapshot_stored_files(
    catalog: str,
    schema: str,
    name: str,
    metadata: TableMetadata | None,
    snapshot_id: int,
    properties: Mapping[str, str],
) -> list[StoredFile]:
    """All files of ``snapshot_id``, including delete files. Raises as ``snapshot_files``."""
    metadata = existing(f"{catalog}.{schema}.{name}", metadata)
    from dbt_arctic.catalog.manifests import stored_files

    return _reading(
        catalog, schema, name, metadata, snapshot_id, lambda found: stored_files(found, properties)
    )


def snapshot_placed_files(
    catalog: str,
    schema: str,
    name: str,
    metadata: TableMetadata | None,
    snapshot_id: int,
    column: str,
    properties: Mapping[str, str],
) -> list[PlacedFile]:
    """All files of ``snapshot_id``, by partition. Raises as ``snapshot_files``.

    :param column: the column whose bounds are requested; empty for none.
    """
    relation = f"{catalog}.{schema}.{name}"
    metadata = existing(relation, metadata)
    field_id = _known_field(relation, metadata, column) if column else None
    from dbt_arctic.catalog.manifests import placed_files

    return _reading(
        catalog, schema, name, metadata, snapshot_id, lambda found: placed_files(found, field_id, properties)
    )


def existing(relation: str, metadata: TableMetadata | None) -> TableMetadata:
    """The metadata of a table that must exist."""
    if metadata is None:
        raise no_table(relation)
    return metadata


def _known_field(relation: str, metadata: TableMetadata, column: str) -> int:
    """The id of a column that must exist."""
    field_id = _field_id(metadata, column)
    if field_id is None:
        raise no_column(relation, column, [one.name for one in metadata.state.columns])
    return field_id


def _reading(
    catalog: str,
    schema: str,
    name: str,
    metadata: TableMetadata,
    snapshot_id: int,
    read: Callable[[str], list[T]],
) -> list[T]:
    manifest_list = metadata.manifest_lists.get(snapshot_id)
    if manifest_list is None:
        raise no_snapshot(f"{catalog}.{schema}.{name}", snapshot_id)
    try:
        return read(manifest_list)
    except Exception as error:  # for damaged bytes, the reader may raise any error
        place = getattr(error, "filename", None) or manifest_list
        raise unreadable_manifest(catalog, schema, name, str(place), error) from error


def snapshot_columns(
    catalog: str, schema: str, name: str, metadata: TableMetadata | None, snapshot_id: int
) -> dict[str, CatalogColumn]:
    """The columns that a table had at ``snapshot_id``, by their current names.

    :raises UnknownRelation: the table does not exist.
    :raises VersionUnavailable: the snapshot has expired.
    """
    relation = f"{catalog}.{schema}.{name}"
    if metadata is None:
        raise no_table(relation)
    if snapshot_id not in metadata.columns_at:
        raise no_snapshot(relation, snapshot_id)
    return dict(metadata.columns_at[snapshot_id])


def _field_id(metadata: TableMetadata, column: str) -> int | None:
    """Resolve a column like Spark: the exact name, otherwise one that differs only by case."""
    if column in metadata.field_ids:
        return metadata.field_ids[column]
    folded = {name.lower(): field_id for name, field_id in metadata.field_ids.items()}
    return folded.get(column.lower())


def no_table(relation: str) -> UnknownRelation:
    """The error for a table that does not exist."""
    return UnknownRelation(
        f"There is no table `{relation}`.",
        why="it was dropped or renamed, or the name belongs to a view",
        fix="check the name, or build the model that makes the table",
    )


def no_column(relation: str, column: str, columns: list[str]) -> UnknownRelation:
    """The error for a column that does not exist."""
    return UnknownRelation(
        f"The table `{relation}` has no column `{column}`.",
        where=relation,
        why=f"its columns are {', '.join(columns)}",
        fix="check the column's name",
    )


def no_snapshot(
    relation: str, snapshot_id: int, fix: str = "run the model that reads it with `--full-refresh`"
) -> VersionUnavailable:
    """The error for a snapshot that has expired."""
    return VersionUnavailable(
        f"Snapshot {snapshot_id} of `{relation}` is gone.",
        where=relation,
        why="it was expired, or it belongs to a table that had this name before",
        fix=fix,
    )
