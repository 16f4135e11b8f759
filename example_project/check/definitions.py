"""What each relation of the dbt project is defined as, with nothing incremental in it.

The definitions are the project's own SQL, compiled with the variable ``rebuild``: one query over
whole tables a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import sqlglot
from dbt.contracts.graph.manifest import Manifest
from sqlglot import exp

COMPILE_ARGUMENTS = ("--full-refresh", "--vars", "{rebuild: true}")
"""Of the ``dbt compile`` whose manifest ``read_definitions`` takes."""


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


def read_definitions(manifest: Manifest) -> list[Definition]:
    """Every relation of the compiled project, upstreams first."""
    kept: dict[str, Any] = {
        key: node
        for key, node in manifest.nodes.items()
        if node.resource_type in ("seed", "model", "snapshot")
    }
    order = TopologicalSorter({key: node.depends_on_nodes for key, node in kept.items()})
    return [
        _definition(kept[key])
        for key in order.static_order()
        if key in kept and kept[key].config.materialized != "ephemeral"
    ]


def _definition(node: Any) -> Definition:
    names = (node.database, node.schema, node.alias)
    relation = ".".join(exp.to_identifier(name, quoted=True).sql(dialect="duckdb") for name in names)
    compiled = getattr(node, "compiled_code", None) or ""
    sql = sqlglot.transpile(compiled, read="spark", write="duckdb")[0] if compiled else ""
    return Definition(node.name, str(node.resource_type), node.schema, relation, sql)
