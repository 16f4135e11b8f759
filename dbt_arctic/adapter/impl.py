"""The adapter class that dbt loads: names, types, listing, columns.

``keyed_api`` has the methods for keyed tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.sql.impl import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, TableMetadata

from dbt_arctic.adapter import other_schema
from dbt_arctic.adapter.auto_api import AutoApi
from dbt_arctic.adapter.catalog_names import is_known
from dbt_arctic.adapter.clone_api import CloneApi
from dbt_arctic.adapter.column import ArcticColumn, schema_changes
from dbt_arctic.adapter.compaction_api import CompactionApi
from dbt_arctic.adapter.connections import ArcticConnectionManager
from dbt_arctic.adapter.consistent import ConsistentReadsApi
from dbt_arctic.adapter.docs_catalog import CATALOG_COLUMNS, catalog_rows, readable_rows, statistics_of
from dbt_arctic.adapter.docs_lineage import add_column_lineage
from dbt_arctic.adapter.external_pulls import ExternalPullsApi
from dbt_arctic.adapter.freshness import FreshnessApi
from dbt_arctic.adapter.history_api import HistoryApi
from dbt_arctic.adapter.index_api import IndexApi
from dbt_arctic.adapter.keyed_sql_api import KeyedSqlApi
from dbt_arctic.adapter.materialized_api import MaterializedApi
from dbt_arctic.adapter.microbatch import MicrobatchApi
from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.model_config import ArcticConfig
from dbt_arctic.adapter.packages import PackagesApi
from dbt_arctic.adapter.python_models import PythonModelsApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.schema_api import SchemaApi
from dbt_arctic.adapter.seed_api import SeedApi
from dbt_arctic.adapter.seeds import file_of, number_type
from dbt_arctic.adapter.snapshot_api import SnapshotApi
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.catalog.api import CatalogReader, RelationEntry
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.table import is_keyed, side_root
from dbt_arctic.refresh.clone import is_clone
from dbt_arctic.refresh.foreign_settings import STRATEGIES
from dbt_arctic.refresh.materializations import is_materialized_view
from dbt_arctic.refresh.table_properties import TABLE_DEFAULTS, declared_properties
from dbt_arctic.refresh.valid_to_current import end_properties

if TYPE_CHECKING:
    import agate


class ArcticAdapter(
    PythonModelsApi,
    PackagesApi,
    FreshnessApi,
    ExternalPullsApi,
    MicrobatchApi,
    HistoryApi,
    SnapshotApi,
    SeedApi,
    SchemaApi,
    AutoApi,
    CompactionApi,
    IndexApi,
    MaterializedApi,
    ModelApi,
    CloneApi,
    ConsistentReadsApi,
    KeyedSqlApi,
    SQLAdapter,
):
    """The adapter class."""

    Relation = ArcticRelation
    Column = ArcticColumn
    ConnectionManager = ArcticConnectionManager
    AdapterSpecificConfigs = ArcticConfig

    CONSTRAINT_SUPPORT = {  # noqa: RUF012  # dbt declares both without ClassVar
        # Enforced on each write of dbt, see docs/reference/constraints.md.
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        # A keyed table enforces its key nevertheless.
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
        }
    )

    # Types and names

    @classmethod
    def date_function(cls) -> str:
        """The function for the current time."""
        return "current_timestamp()"

    @classmethod
    def is_cancelable(cls) -> bool:
        """Whether connections can be cancelled."""
        return True

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Quote an identifier."""
        return quote(identifier)

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of strings."""
        return "string"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of numbers."""
        column = agate_table.column_names[col_idx]
        return number_type(file_of(agate_table), column, [row[col_idx] for row in agate_table.rows])

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of integers."""
        column = agate_table.column_names[col_idx]
        values = [None if row[col_idx] is None else Decimal(row[col_idx]) for row in agate_table.rows]
        return number_type(file_of(agate_table), column, values)

    @classmethod
    def convert_boolean_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of booleans."""
        return "boolean"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of timestamps."""
        return "timestamp"

    @classmethod
    def convert_date_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of dates."""
        return "date"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed column of times of day."""
        return "string"

    def timestamp_add_sql(self, add_to: str, number: int = 1, interval: str = "hour") -> str:
        """SQL that adds an interval to a timestamp."""
        return f"{add_to} + INTERVAL {number} {interval}"

    def valid_incremental_strategies(self) -> list[str]:
        """The incremental strategies."""
        return list(STRATEGIES)

    @available
    @classmethod
    def string_literal(cls, value: object) -> str:
        """A value as a string literal of Spark SQL, with escapes."""
        return literal(str(value))

    @available.parse(lambda *a, **k: {})
    def table_properties(
        self, properties: dict[str, object] | None, current_end: str | None = None
    ) -> dict[str, str]:
        """The properties of a plain table: defaults, then those of the model.

        :param current_end: of a snapshot, SQL of its ``dbt_valid_to_current``.
        """
        chosen = {name: str(value) for name, value in (properties or {}).items()}
        with as_dbt_errors():
            end = end_properties(self.context(), current_end) if current_end else {}
        return {**TABLE_DEFAULTS, **chosen, **declared_properties(chosen), **end}

    @available.parse(lambda *a, **k: None)
    def refuse_function(self, model: Mapping[str, Any]) -> None:
        """Refuse a dbt function, which Spark cannot store.

        :raises ConfigError: always.
        """
        with as_dbt_errors():
            raise ConfigError(
                f"the function {model['name']} cannot be created",
                where=model["name"],
                why="an Iceberg catalog has no functions, and with Iceberg's extensions "
                "Spark 4.1 cannot create functions from SQL",
                fix="make it a macro, whose SQL becomes part of each model that uses it",
            )

    # Seeds

    # Listing and columns, from metadata

    def _reader(self, database: str | None) -> CatalogReader:
        """The reader of dbt's database."""
        return self.catalog.of(Name(database or self.config.credentials.database, "", ""))

    def list_schemas(self, database: str) -> list[str]:
        """The names of all schemas."""
        database = database.strip("`")  # dbt quotes it, and a catalog's name has no backticks of its own
        with as_dbt_errors():
            return self._reader(database).list_schemas() if self._knows(database) else []

    def _listed(self, place: BaseRelation) -> list[RelationEntry]:
        """The relations of the schema of a relation."""
        return self._reader(place.database).list_relations(place.schema or "")

    def _knows(self, database: str | None) -> bool:
        """Whether a database is a catalog of the profile."""
        return is_known(database, self.config.credentials.catalog_names)

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Whether a schema exists."""
        return schema in self.list_schemas(database)

    @available.parse_none
    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """Like dbt's implementation, but a check of a project reads its copies.

        A source that is looked up by name is its copy.
        """
        place = other_schema.current()
        if place is not None:
            schema = place.schema_of(database, schema or "", identifier or "")
        found: BaseRelation | None = super().get_relation(database, schema, identifier)
        return found

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Tables, views and keyed tables; excludes the side tables of keyed tables."""
        if not self._knows(schema_relation.database):
            return []
        with as_dbt_errors():
            entries = self._listed(schema_relation)
        return [
            self.Relation.create(
                database=schema_relation.database,
                schema=entry.schema,
                identifier=entry.name,
                type=relation_type(entry),
                is_keyed=is_keyed(entry.properties),
                is_clone=is_clone(entry.properties),
            )
            for entry in visible(entries)
        ]

    @available.parse(lambda *a, **k: [])
    def list_everything(self, schema_relation: ArcticRelation) -> list[ArcticRelation]:
        """All stored relations of a schema, including side tables; views first."""
        with as_dbt_errors():
            entries = self._listed(schema_relation)
        found = [
            self.Relation.create(
                database=schema_relation.database,
                schema=entry.schema,
                identifier=entry.name,
                type=RelationType.View if entry.kind == "view" else RelationType.Table,
            )
            for entry in sorted(entries, key=lambda entry: entry.kind, reverse=True)
        ]
        return [self.record(one) or one if one.is_view else one for one in found]

    def get_columns_in_relation(self, relation: ArcticRelation) -> list[ArcticColumn]:
        """The columns of a relation from metadata; empty if it does not exist.

        Relations outside of the catalog (a temporary view, another catalog) are analysed by Spark.
        """
        with as_dbt_errors():
            if self._knows(relation.database) and relation.schema and relation.include_policy.schema:
                name = (relation.schema, relation.identifier or "")
                reader = self._reader(relation.database)
                state = reader.load_table(*name) or reader.load_view(*name)
                return [ArcticColumn(column.name, column.type) for column in state.columns] if state else []
            everything = f"SELECT * FROM {relation.render()}"
            columns: list[ArcticColumn] = self.get_column_schema_from_query(everything)
            return columns

    @available
    def schema_changes(self, source: list[ArcticColumn], target: list[ArcticColumn]) -> dict[str, Any]:
        """The differences between the columns of a query and a table."""
        return schema_changes(source, target)

    @available.parse(lambda *a, **k: [])
    def get_column_schema_from_query(self, sql: str) -> list[ArcticColumn]:
        """The columns that a query would return, by analysis only."""
        with as_dbt_errors():
            return [ArcticColumn(name, type_) for name, type_ in self.context().query_schema(sql)]

    def get_filtered_catalog(self, relation_configs: Any, used_schemas: Any, relations: Any = None) -> Any:
        """The rows of ``dbt docs generate``. dbt writes the nodes afterwards, with their lineage."""
        nodes = list(relation_configs)
        found = super().get_filtered_catalog(nodes, used_schemas, relations)
        with as_dbt_errors():
            add_column_lineage(self.catalog, self.config.credentials, nodes)
        return found

    def _get_one_catalog(self, information_schema: Any, schemas: set[str], used_schemas: Any) -> agate.Table:
        """The rows of ``dbt docs generate``, one per column, from metadata alone."""
        from dbt_common.clients.agate_helper import table_from_data_flat

        rows: list[dict[str, Any]] = []
        database = information_schema.database or self.config.credentials.database
        with as_dbt_errors():
            # dbt requests them in lower case.
            listed = self._reader(database).list_schemas() if self._knows(database) else []
            wanted = {schema.lower() for schema in schemas}
            for schema in sorted(one for one in listed if one.lower() in wanted):
                for entry in visible(self._reader(database).list_relations(schema)):
                    rows += readable_rows(self.catalog, database, entry)
        table = table_from_data_flat(rows, CATALOG_COLUMNS)
        return self._catalog_filter_table(table, used_schemas)

    @available.parse(lambda *a, **k: None)
    def get_catalog_for_single_relation(self, relation: ArcticRelation) -> CatalogTable | None:
        """The catalog's metadata of one relation; ``None`` if it does not exist."""
        with as_dbt_errors():
            known = self._knows(relation.database)
            listed = visible(self._listed(relation)) if known else []
            entry = next((entry for entry in listed if entry.name == relation.identifier), None)
            rows = [] if entry is None else list(catalog_rows(self.catalog, relation.database or "", entry))
        if not rows:
            return None
        return CatalogTable(
            metadata=TableMetadata(
                type=rows[0]["table_type"],
                schema=rows[0]["table_schema"],
                name=rows[0]["table_name"],
                database=rows[0]["table_database"],
                comment=rows[0]["table_comment"],
                owner=rows[0]["table_owner"],
            ),
            columns={
                row["column_name"]: ColumnMetadata(
                    type=row["column_type"],
                    index=row["column_index"],
                    name=row["column_name"],
                    comment=row["column_comment"],
                )
                for row in rows
            },
            stats=statistics_of(rows[0]),
        )

    def debug_query(self) -> None:
        """``dbt debug``: check every part that a run needs."""
        self.diagnose()


def visible(entries: list[RelationEntry]) -> list[RelationEntry]:
    """A listing without the side tables of its keyed views."""
    keyed = [entry.properties for entry in entries if entry.kind == "view" and is_keyed(entry.properties)]
    roots = {side_root(properties.get("arctic.base", "")) for properties in keyed} - {None}
    return [entry for entry in entries if entry.kind == "view" or side_root(entry.name) not in roots]


def relation_type(entry: RelationEntry) -> RelationType:
    """The type of a relation in dbt.

    Keyed tables and clones of tables are tables, regardless of their storage; a materialized view has dbt's
    own type.
    """
    if is_materialized_view(entry.properties):
        return RelationType.MaterializedView
    if entry.kind == "table" or is_keyed(entry.properties) or is_clone(entry.properties):
        return RelationType.Table
    return RelationType.View
