"""What each relation of the dbt project is defined as, with nothing incremental in it.

The definitions are the project's own SQL, compiled with the variable ``rebuild``: one query over
whole tables a model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import sqlglot
from sqlglot import exp

COMPILE_ARGUMENTS = ("compile", "--full-refresh", "--vars", "{rebuild: true}")
"""The dbt command whose manifest ``read_definitions`` takes."""


@dataclass(frozen=True)
class Definition:
    """A seed, model or snapshot.

    :param relation: its quoted three-part name, the same in Spark and in DuckDB.
    :param sql: the query in DuckDB's dialect; empty for a seed.
    """

    name: str
    kind: str
    schema: str
    relation: str
    sql: str


def read_definitions(manifest_file: Path) -> list[Definition]:
    """Every relation of the project, upstreams first."""
    nodes = json.loads(manifest_file.read_text(encoding="utf-8"))["nodes"]
    kept = {
        key: node for key, node in nodes.items() if node["resource_type"] in ("seed", "model", "snapshot")
    }
    order = TopologicalSorter(
        {key: node.get("depends_on", {}).get("nodes", []) for key, node in kept.items()}
    )
    return [
        _definition(kept[key])
        for key in order.static_order()
        if key in kept and kept[key]["config"]["materialized"] != "ephemeral"
    ]


def _definition(node: dict[str, str]) -> Definition:
    names = (node["database"], node["schema"], node["alias"])
    relation = ".".join(exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in names)
    compiled = node.get("compiled_code") or ""
    sql = sqlglot.transpile(compiled, read="spark", write="duckdb")[0] if compiled else ""
    return Definition(node["name"], node["resource_type"], node["schema"], relation, sql)
