"""The sources that the models of a project pull, for ``dbt-arctic ingest plan`` and ``replay``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dbt_arctic.adapter.capture_sources import declared_capture
from dbt_arctic.adapter.database_sources import database_of, database_source, writes_of
from dbt_arctic.adapter.dbt_invocation import invoke
from dbt_arctic.adapter.external_sources import CAPTURED, declared_source, kind_of
from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.kafka_sources import broker_of, kafka_source
from dbt_arctic.adapter.model_lags import name_of
from dbt_arctic.adapter.process_modes import REPLAYING
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.selection import parse_project, select_models
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.catalog.once import Once
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.consumed_versions import consumed_by
from dbt_arctic.sources.capture_preview import CapturePreview, LogContents
from dbt_arctic.sources.database_preview import TablePreview, preview_table
from dbt_arctic.sources.database_pull import upstream_of
from dbt_arctic.sources.read_preview import (
    ReadPreview,
    TopicPreview,
    count_rejected,
    preview_read,
    preview_topic,
)

Preview = ReadPreview | TopicPreview | TablePreview | CapturePreview
"""What the next run of a model would read of a source."""


def preview_sources(session: TargetSession, target: Target, select: Sequence[str]) -> list[Preview]:
    """What the next run of the selected models would read of their sources.

    Starts no Spark.
    """
    found: list[Preview] = []
    catalog, logs = Once(session.catalog), dict[Name, LogContents]()
    manifest = parse_project(target)
    for node, name, declared in _pulled(target, manifest, select):
        kind = kind_of(declared)
        if kind == "files":
            files, consumed = file_source(declared, str(target.project_root)), consumed_by(catalog, name)
            found.append(preview_read(catalog, files, node.name, name, consumed))
        elif kind == "kafka":
            topic = kafka_source(declared, target.credentials.kafka_properties)
            broker, read = broker_of(topic, declared["where"]), consumed_by(catalog, name)
            found.append(preview_topic(catalog, topic, broker, node.name, name, read))
        elif kind == "jdbc":
            database = database_of(declared, target.credentials.databases)
            consumed = consumed_by(catalog, name)
            last = consumed.get(upstream_of(declared["name"]).dotted)
            writes = writes_of({"name": node.name, "config": node.config.to_dict()})
            seen = preview_table(database, database_source(declared), node.name, last, writes)
            rejected, dropped = count_rejected(catalog, declared["name"], name, consumed)
            found.append(replace(seen, rejected=rejected, dropped=dropped))
        elif kind in CAPTURED:
            capture = declared_capture(declared, target.credentials.databases, manifest.sources.values())
            table = capture.captured(catalog, target.credentials, logs)
            writes = writes_of({"name": node.name, "config": node.config.to_dict()})
            found.append(table.preview(node.name, consumed_by(catalog, name), writes))
    return found


def replay_rejected(target: Target, models: Sequence[str]) -> bool:
    """Run models so that they take their rejected rows again, and return whether all succeeded."""
    with REPLAYING.on():
        outcome = invoke(target, None, "run", "--select", *models)
    if outcome.exception is not None:
        raise ConfigError(
            "the project could not be run",
            where=str(target.project_root),
            why=str(outcome.exception),
            fix=f"dbt run --select {' '.join(models)}",
        )
    return bool(outcome.success)


def _pulled(
    target: Target, manifest: Any, select: Sequence[str]
) -> Iterator[tuple[Any, Name, dict[str, Any]]]:
    """The selected models with the sources outside of the catalog that each depends on."""
    for node in select_models(target, manifest, select):
        name = name_of(target, node)
        for upstream in node.depends_on.nodes:
            source = manifest.sources.get(upstream)
            declared = None if source is None else declared_source(source)
            if declared is not None:
                yield node, name, dict(declared)


__all__ = ["Preview", "preview_sources", "replay_rejected"]
