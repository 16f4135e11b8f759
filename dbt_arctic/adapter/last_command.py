"""The nodes of dbt's last command, from its artifacts: when they ran, and which tables they read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.artifacts import as_written_by_dbt, ran_nodes, read_artifact
from dbt_arctic.adapter.external_sources import source_settings
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name

_KINDS = ("model", "seed", "snapshot")


@dataclass(frozen=True)
class LineageDataset:
    """A table that a node reads or writes.

    :param outside: the ``meta.arctic`` of a source whose rows are outside the catalog; ``None`` for a table.
    """

    name: Name
    outside: Mapping[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class NodeRun:
    """One node that dbt has run.

    :param kind: ``model``, ``seed`` or ``snapshot``.
    :param error: the message of the failure; ``None`` if the node succeeded.
    :param rows: the rows that it wrote, as dbt reports them; ``None`` if unknown.
    :param sql: the query of a model or snapshot; ``None`` if it was not compiled, or is not SQL.
    :param config: of the node, as the manifest has it.
    """

    unique_id: str
    kind: str
    name: Name
    started: dt.datetime
    ended: dt.datetime
    upstreams: tuple[LineageDataset, ...]
    error: str | None
    rows: int | None
    sql: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LastCommand:
    """The last command of dbt that ran nodes."""

    invocation_id: str
    command: str
    project: str
    nodes: tuple[NodeRun, ...]


def read_last_command(artifacts: Path) -> LastCommand:
    """Read the artifacts of the last command. Skipped nodes and ephemeral models are left out.

    :raises ConfigError: there are no artifacts, dbt did not write them, or the command ran no nodes.
    """
    results, manifest = (_required(artifacts / name) for name in ("run_results.json", "manifest.json"))
    with as_written_by_dbt(artifacts):
        if not ran_nodes(results):
            raise ConfigError(
                f"the last dbt command was {results['args']['which']}, which runs no model",
                where=str(artifacts / "run_results.json"),
                why="it has replaced the results of the run before it",
                fix="run this command right after dbt build, run, seed, snapshot or retry",
            )
        return LastCommand(
            invocation_id=str(results["metadata"]["invocation_id"]),
            command=str(results.get("args", {}).get("which", "run")),
            project=str(manifest["metadata"]["project_name"]),
            nodes=tuple(_nodes(results, manifest)),
        )


def _required(path: Path) -> Mapping[str, Any]:
    found = read_artifact(path)
    if found is None:
        raise ConfigError(
            "dbt has not run here", where=str(path), why="there is no such file", fix="run dbt build first"
        )
    return found


def _nodes(results: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[NodeRun]:
    generated = _time(results["metadata"]["generated_at"])
    for result in results["results"]:
        node = manifest["nodes"].get(result["unique_id"])
        if node is None or node["resource_type"] not in _KINDS or result["status"] == "skipped":
            continue
        failed = result["status"] not in ("success", "no-op")
        times = [
            (_time(one["started_at"]), _time(one["completed_at"]))
            for one in result["timing"]
            if one["completed_at"]
        ]
        yield NodeRun(
            unique_id=str(result["unique_id"]),
            kind=str(node["resource_type"]),
            name=_name(node),
            started=min((start for start, _ in times), default=generated),
            ended=max((end for _, end in times), default=generated),
            upstreams=tuple(dict.fromkeys(_upstreams(node, manifest))),
            error=str(result.get("message") or result["status"]) if failed else None,
            rows=(result.get("adapter_response") or {}).get("rows_affected"),
            sql=result.get("compiled_code") if node.get("language") == "sql" else None,
            config=node["config"],
        )


def _upstreams(node: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[LineageDataset]:
    """The tables that a node reads, itself or through ephemeral models."""
    for unique_id in (node.get("depends_on") or {}).get("nodes", ()):
        source = manifest["sources"].get(unique_id)
        if source is not None:
            levels = (source.get("source_meta"), source.get("meta"), (source.get("config") or {}).get("meta"))
            yield LineageDataset(_name(source), source_settings(*levels))
            continue
        upstream = manifest["nodes"].get(unique_id)
        if upstream is None or upstream["resource_type"] not in _KINDS:
            continue
        if upstream["config"].get("materialized") == "ephemeral":
            yield from _upstreams(upstream, manifest)
        else:
            yield LineageDataset(_name(upstream))


def _name(node: Mapping[str, Any]) -> Name:
    identifier = node.get("identifier") or node.get("alias") or node["name"]
    return Name(str(node["database"]), str(node["schema"]), str(identifier))


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))


__all__ = ["LastCommand", "LineageDataset", "NodeRun", "read_last_command"]
