"""Converts Iceberg's table and view metadata documents (parsed JSON) to the values of ``api.py``.

It reads no file and depends on no catalog, so every reader uses it. The documents follow Iceberg's table and
view specifications, format versions 1 to 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.catalog.api import CatalogColumn, Snapshot, TableState, ViewState
from dbt_arctic.catalog.partition_names import PartitionField
from dbt_arctic.catalog.types import initial_json, numbered, spark_type

_OWN_OF_SPARK = frozenset({"engine_version", "create_engine_version", "spark.query-column-names"})
"""Internal entries of Spark in the properties of a view, which SHOW TBLPROPERTIES hides."""


@dataclass(frozen=True)
class TableMetadata:
    """The state of a table, and what is needed to find the files of its snapshots."""

    state: TableState
    manifest_lists: dict[int, str]
    """Snapshot id to the location of its manifest list."""
    field_ids: dict[str, int]
    """Current name of a top-level column to its field id."""
    columns_at: dict[int, dict[str, CatalogColumn]]
    """Snapshot id to the columns that the table had then, see ``CatalogReader.columns_at``."""
    fields: list[dict[str, Any]]
    """The current columns, as the metadata describe them."""
    partition_specs: dict[int, list[dict[str, Any]]]
    """Spec id to the partition fields, as the metadata describe them."""


def read_table(schema: str, name: str, document: dict[str, Any]) -> TableMetadata:
    """The table that a metadata document describes. Raises ``KeyError`` for any other document."""
    fields = _current_fields(document)
    snapshots = document.get("snapshots") or []
    current = _current_snapshot(document)
    state = TableState(
        schema=schema,
        name=name,
        location=document["location"],
        # As in SHOW TBLPROPERTIES, which shows the format version as a property.
        properties={**(document.get("properties") or {}), "format-version": str(document["format-version"])},
        columns=_columns(fields),
        snapshots=tuple(_snapshot(snapshot) for snapshot in snapshots),
        current_snapshot_id=current,
        branches=_branches(document, current),
        tags=_tags(document),
        partitioning=_partitioning(document, fields),
        spec_id=document.get("default-spec-id"),
        partition_fields=_partition_fields(document, fields),
        has_old_specs=len(document.get("partition-specs") or ()) > 1,
        sort_order=_sort_order(document, fields),
    )
    manifest_lists = {s["snapshot-id"]: s["manifest-list"] for s in snapshots if "manifest-list" in s}
    return TableMetadata(
        state=state,
        manifest_lists=manifest_lists,
        field_ids={field["name"]: field["id"] for field in fields},
        columns_at=_columns_at(document, fields),
        fields=fields,
        partition_specs={spec["spec-id"]: spec["fields"] for spec in document.get("partition-specs") or ()},
    )


def read_view(schema: str, name: str, document: dict[str, Any]) -> ViewState:
    """The view that a metadata document describes. Raises ``KeyError`` for any other document."""
    version = _by_id(document["versions"], "version-id", document["current-version-id"])
    fields = _by_id(document["schemas"], "schema-id", version["schema-id"])["fields"]
    stored = document.get("properties") or {}
    properties = {key: value for key, value in stored.items() if key not in _OWN_OF_SPARK}
    return ViewState(
        schema=schema,
        name=name,
        properties=properties,
        columns=_columns(fields),
        sql=_spark_sql(version["representations"]),
        comment=properties.get("comment", ""),
        location=document.get("location", ""),
        namespace=".".join(version.get("default-namespace") or ()),
        catalog=version.get("default-catalog") or "",
    )


def _spark_sql(representations: list[dict[str, Any]]) -> str:
    """The text in Spark's dialect, otherwise the first one, as Iceberg's own library chooses."""
    texts = [(r["dialect"].lower(), r["sql"]) for r in representations if r.get("type") == "sql"]
    return str(dict(reversed(texts)).get("spark", texts[0][1] if texts else ""))


def _current_fields(document: dict[str, Any]) -> list[dict[str, Any]]:
    if "schemas" in document:
        return list(_by_id(document["schemas"], "schema-id", document["current-schema-id"])["fields"])
    return list(document["schema"]["fields"])  # format version 1 may have the single schema only


def _columns_at(
    document: dict[str, Any], current: list[dict[str, Any]]
) -> dict[int, dict[str, CatalogColumn]]:
    # By field id: a renamed column is the same, and one that was dropped and added again is a different one,
    # which older rows lack.
    known = {field["id"]: field["name"] for field in current}
    taken = set(known.values())

    def then(fields: list[dict[str, Any]]) -> dict[str, CatalogColumn]:
        there = _columns(fields)
        named = ((known.get(column.field_id, column.name), column) for column in there)
        ids = {column.field_id for column in there}
        return {
            **{name: column for name, column in named if column.field_id in known or name not in taken},
            **{
                column.name: replace(column, name="")
                for column in _columns(current)
                if column.initial and column.field_id not in ids
            },
        }

    columns = {schema["schema-id"]: then(schema["fields"]) for schema in document.get("schemas") or []}
    now = then(current)
    # Format version 1 may lack the schema of a snapshot; Iceberg then uses the current one.
    return {
        snapshot["snapshot-id"]: columns.get(snapshot.get("schema-id"), now)
        for snapshot in document.get("snapshots") or []
    }


def _by_id(entries: list[dict[str, Any]], key: str, wanted: int) -> dict[str, Any]:
    for entry in entries:
        if entry[key] == wanted:
            return entry
    raise KeyError(f"{key} {wanted}")


def _columns(fields: list[dict[str, Any]]) -> tuple[CatalogColumn, ...]:
    return tuple(
        CatalogColumn(
            name=field["name"],
            type=spark_type(field["type"]),
            comment=field.get("doc") or "",
            nullable=not field["required"],
            field_id=field.get("id"),
            nested=numbered(field["type"]),
            initial=initial_json(field),
        )
        for field in fields
    )


def _current_snapshot(document: dict[str, Any]) -> int | None:
    current = document.get("current-snapshot-id")
    return None if current is None or current == -1 else int(current)  # old libraries write -1


def _branches(document: dict[str, Any], current: int | None) -> dict[str, int]:
    refs = document.get("refs") or {}
    branches = {name: int(ref["snapshot-id"]) for name, ref in refs.items() if ref["type"] == "branch"}
    if current is not None:
        branches.setdefault("main", current)  # format version 1 may have no refs
    return branches


def _tags(document: dict[str, Any]) -> dict[str, int]:
    refs = document.get("refs") or {}
    return {name: int(ref["snapshot-id"]) for name, ref in refs.items() if ref["type"] == "tag"}


def _partitioning(document: dict[str, Any], fields: list[dict[str, Any]]) -> tuple[str, ...] | None:
    if "partition-specs" not in document:
        return None  # format version 1 may have a single spec with the same content in another form
    spec = _by_id(document["partition-specs"], "spec-id", document["default-spec-id"])
    names = _column_names(fields)
    return tuple(
        partition_text(field["transform"], names.get(field["source-id"], field["name"]))
        for field in spec["fields"]
        if field["transform"] != "void"  # fields that were dropped from a spec of format version 1
    )


def _partition_fields(document: dict[str, Any], fields: list[dict[str, Any]]) -> tuple[PartitionField, ...]:
    names = _column_names(fields)
    return tuple(
        PartitionField(
            field["name"],
            partition_text(field["transform"], names.get(field["source-id"], f"#{field['source-id']}")),
        )
        for spec in document.get("partition-specs") or ()
        for field in spec["fields"]
    )


def _sort_order(document: dict[str, Any], fields: list[dict[str, Any]]) -> tuple[str, ...] | None:
    if "sort-orders" not in document:
        return None
    order = _by_id(document["sort-orders"], "order-id", document["default-sort-order-id"])
    names = _column_names(fields)
    return tuple(
        partition_text(field["transform"], names.get(field["source-id"], "?")) for field in order["fields"]
    )


def partition_text(transform: str, column: str) -> str:
    """A field of a partition spec or sort order, in Spark's syntax.

    >>> partition_text("identity", "day"), partition_text("bucket[8]", "id"), partition_text("day", "at")
    ('day', 'bucket(8, id)', 'days(at)')
    """
    name, _, argument = transform.rstrip("]").partition("[")
    if name == "identity":
        return column
    return f"{name}({argument}, {column})" if argument else f"{name}s({column})"


def _column_names(fields: list[dict[str, Any]], prefix: str = "") -> dict[int, str]:
    """The names of columns and nested fields, by field id."""
    found: dict[int, str] = {}
    for field in fields:
        found[field["id"]] = prefix + field["name"]
        if isinstance(field["type"], dict) and field["type"].get("type") == "struct":
            found |= _column_names(field["type"]["fields"], f"{prefix}{field['name']}.")
    return found


def _snapshot(entry: dict[str, Any]) -> Snapshot:
    summary = {str(key): str(value) for key, value in (entry.get("summary") or {}).items()}
    return Snapshot(
        snapshot_id=entry["snapshot-id"],
        parent_id=entry.get("parent-snapshot-id"),
        sequence_number=entry.get("sequence-number") or 0,
        timestamp_ms=entry["timestamp-ms"],
        operation=summary.pop("operation", ""),
        summary=summary,
        has_row_ids=entry.get("first-row-id") is not None,
    )
