"""``dbt source freshness`` without ``loaded_at_field``: from the catalog's metadata, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from dbt.adapters.base.impl import FreshnessResponse
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterResponse

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.capture_sources import declared_capture
from dbt_arctic.adapter.catalog_names import is_known
from dbt_arctic.adapter.database_sources import database_of, database_source
from dbt_arctic.adapter.external_sources import CAPTURED, kind_of
from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.kafka_sources import broker_of, kafka_source
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError, UnknownRelation
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.freshness import last_modified_ms
from dbt_arctic.sources.database_preview import newest_ms


class FreshnessApi(KeyedApi):
    """The methods of the adapter for freshness."""

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """The freshness of all sources for which it is available.

        dbt requests the others again one by one, and then gets the error of each.
        """
        found: dict[BaseRelation, FreshnessResponse] = {}
        # A catalog that is read by SQL needs a connection. The embedded one does not, and starts no Spark.
        with as_dbt_errors(), self.connection_named("freshness"):
            for source in sources:
                if not is_known(source.database, self.config.credentials.catalog_names):
                    continue
                try:
                    found[source] = self._freshness(source)
                except UnknownRelation:
                    continue
        return [], found

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """The freshness of one source."""
        with as_dbt_errors():
            return None, self._freshness(source)

    def calculate_freshness(self, source: BaseRelation, *args: Any, **kwargs: Any) -> Any:
        """The freshness of a source by a column. It is read like a model reads it."""
        others = pins.other_reads()
        if others is not None and isinstance(source, ArcticRelation):
            with as_dbt_errors():
                source = source.replace(read_as=others.text_of(source.name_parts))
        return super().calculate_freshness(source, *args, **kwargs)

    def _newest_ms(self, declared: Mapping[str, Any]) -> int | None:
        """The time of the newest file, message or row of a source; ``None`` if it has none."""
        kind = kind_of(declared)
        if kind == "jdbc":
            database = database_of(declared, self.config.credentials.databases)
            return newest_ms(database_source(declared), database)
        if kind in CAPTURED:
            capture = declared_capture(declared, self.config.credentials.databases)
            captured = capture.captured(self.catalog, self.config.credentials).captured()
            return None if captured is None else captured.newest_ms(capture.table.place.dotted)
        if kind == "kafka":
            topic = kafka_source(declared, self.config.credentials.kafka_properties)
            return broker_of(topic, declared["where"]).newest_ms(topic.topic)
        files = file_source(declared, getattr(self.config, "project_root", None))
        listed = self.catalog.list_files(files.path)
        return max((file.modified_ms for file in listed if files.accepts(file.path)), default=None)

    def _freshness(self, source: BaseRelation) -> FreshnessResponse:
        names = self.config.credentials.catalog_names
        name = Name(source.database or names[0], source.schema or "", source.identifier or "")
        if not is_known(name.catalog, names):
            raise ConfigError(
                f"the age of {name} cannot be determined from metadata",
                where=name.dotted,
                why=f"it is in another catalog than {'that' if len(names) == 1 else 'those'} of the profile, "
                f"{', '.join(names)}",
                fix="add the catalog in profiles.yml under catalogs; or set loaded_at_field to a column with "
                "the time of its rows",
            )
        external = getattr(source, "external", None)
        at_ms = last_modified_ms(self.catalog, name) if external is None else self._newest_ms(external)
        at = None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, timezone.utc)
        return self._create_freshness_response(at, datetime.now(timezone.utc))
