"""OpenLineage events of dbt's last command: what each node read and wrote, with versions, rows and bytes.

The format is that of the specification 2-0-2 (https://openlineage.io/spec/2-0-2/OpenLineage.json).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from dbt_arctic.adapter.last_command import LastCommand, LineageDataset, NodeRun
from dbt_arctic.auto.query_lineage import UpstreamColumn
from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.maintenance.written_versions import WrittenVersion
from dbt_arctic.secret import without_secrets

_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "columnLineage": ("1-2-0", "ColumnLineageDatasetFacet"),
    "schema": ("1-2-0", "SchemaDatasetFacet"),
    "version": ("1-0-1", "DatasetVersionDatasetFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "parent": ("1-2-0", "ParentRunFacet"),
    "jobType": ("2-0-4", "JobTypeJobFacet"),
}
"""The version and the name of each facet's schema."""

Event = dict[str, Any]
Lineage = Mapping[str, Sequence[UpstreamColumn]]
"""By column of a table, the columns from which it was computed."""


def events_of(
    command: LastCommand,
    written: Callable[[NodeRun], WrittenVersion | None],
    namespace: str | None = None,
    lineage: Callable[[NodeRun], Lineage | None] = lambda node: None,
) -> Iterator[Event]:
    """Two events for each node: ``START``, and ``COMPLETE`` or ``FAIL``.

    The ids of runs follow from dbt's invocation and the node, so events that are sent twice are the same.

    :param written: what the run of a node has committed; ``None`` if it has no table.
    :param namespace: the namespace of jobs; ``None`` for the project's name.
    :param lineage: of the columns that a node returns; ``None`` if it is unknown.
    """
    for node in command.nodes:
        yield _event("START", node.started, node, command, namespace, inputs=[], outputs=[])
        found = written(node)
        yield _event(
            "COMPLETE" if node.error is None else "FAIL",
            node.ended,
            node,
            command,
            namespace,
            inputs=[_input(upstream, found) for upstream in node.upstreams],
            outputs=[_output(node, found, lineage(node))],
        )


def _event(
    kind: str,
    at: dt.datetime,
    node: NodeRun,
    command: LastCommand,
    namespace: str | None,
    *,
    inputs: list[Event],
    outputs: list[Event],
) -> Event:
    jobs = namespace or command.project
    parent = {
        "run": {"runId": command.invocation_id},
        "job": {"namespace": jobs, "name": f"dbt {command.command}"},
    }
    facets = {"parent": _facet("parent", **parent)}
    if node.error is not None and kind == "FAIL":
        message = without_secrets(node.error)
        facets["errorMessage"] = _facet("errorMessage", message=message, programmingLanguage="SQL")
    job_type = _facet("jobType", processingType="BATCH", integration="DBT", jobType=node.kind.upper())
    return {
        "eventType": kind,
        "eventTime": at.astimezone(dt.timezone.utc).isoformat(),
        "producer": _producer(),
        "schemaURL": _EVENT,
        "run": {"runId": _run_id(command.invocation_id, node.unique_id), "facets": facets},
        "job": {"namespace": jobs, "name": node.unique_id, "facets": {"jobType": job_type}},
        "inputs": inputs,
        "outputs": outputs,
    }


def _run_id(invocation_id: str, unique_id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"dbt-arctic:{invocation_id}:{unique_id}"))


def _producer() -> str:
    return f"https://pypi.org/project/dbt-arctic/{version('dbt-arctic')}"


def _facet(name: str, **values: Any) -> Event:
    number, schema = _FACETS[name]
    url = f"{_SPEC}/facets/{number}/{schema}.json#/$defs/{schema}"
    return {"_producer": _producer(), "_schemaURL": url, **values}


def _input(upstream: LineageDataset, written: WrittenVersion | None) -> Event:
    if upstream.outside is not None:
        return _outside(upstream, upstream.outside)
    read = None if written is None else written.consumed.get(upstream.name.dotted)
    facets = {} if read is None else {"version": _facet("version", datasetVersion=read.version)}
    return {**_dataset(upstream), "facets": facets}


def _output(node: NodeRun, written: WrittenVersion | None, lineage: Lineage | None) -> Event:
    facets: Event = {}
    if lineage is not None:
        fields = {
            name: {"inputFields": _input_fields(columns)} for name, columns in lineage.items() if columns
        }
        facets["columnLineage"] = _facet("columnLineage", fields=fields)
    statistics: Event = {}
    if written is not None:
        facets["schema"] = _facet("schema", fields=_fields(written.columns))
        if written.version is not None:
            facets["version"] = _facet("version", datasetVersion=written.version)
        if written.size_bytes is not None:
            rows = written.rows if node.rows is None else node.rows
            statistics["outputStatistics"] = _facet(
                "outputStatistics", rowCount=rows, size=written.size_bytes
            )
    return {**_dataset(LineageDataset(node.name)), "facets": facets, "outputFacets": statistics}


def _input_fields(columns: Sequence[UpstreamColumn]) -> list[Event]:
    return [
        {
            **_dataset(LineageDataset(one.relation)),
            "field": one.column,
            "transformations": [{"type": "DIRECT", "subtype": one.derivation.name}],
        }
        for one in columns
    ]


def _fields(columns: tuple[CatalogColumn, ...]) -> list[Event]:
    return [{"name": column.name, "type": column.type} for column in columns]


def _dataset(table: LineageDataset) -> Event:
    name = table.name
    return {"namespace": f"iceberg://{name.catalog}", "name": f"{name.schema}.{name.identifier}"}


def _outside(upstream: LineageDataset, settings: Mapping[str, Any]) -> Event:
    """A source outside of the catalog, by the names that OpenLineage gives to files and topics."""
    table = upstream.name.identifier
    if settings["from"] == "files":
        return {"namespace": "file", "name": str(settings.get("path") or table)}
    if settings["from"] == "kafka":
        servers = settings.get("servers") or ""
        listed = servers if isinstance(servers, str) else ",".join(map(str, servers))
        return {"namespace": f"kafka://{listed.split(',')[0]}", "name": str(settings.get("topic") or table)}
    # The address of a database may contain a user and a password, so only its source is named.
    return {"namespace": "dbt://source", "name": f"{upstream.name.schema}.{settings.get('table') or table}"}


__all__ = ["Event", "Lineage", "events_of"]
