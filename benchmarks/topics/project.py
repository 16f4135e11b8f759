"""The dbt project of the benchmark: one model that pulls the topic."""

from __future__ import annotations

from pathlib import Path

from benchmarks.dbt_project import write_project
from benchmarks.topics.events import COLUMNS

MODEL = """\
{{{{ config(materialized='incremental', unique_key='order_id', deduplicate_by='_source_offset'{more}) }}}}
select {columns}, _source_timestamp, _source_offset, _action
from {{{{ incremental_pull(source('shop', 'orders')) }}}}
"""


def write_topic_project(folder: Path, servers: str, topic: str, more: str = "") -> None:
    """Write the project.

    :param more: further settings of the model, each after a comma.
    """
    arctic = {"from": "kafka", "servers": servers, "format": "json", "topic": topic, "columns": dict(COLUMNS)}
    source = {"name": "shop", "tables": [{"name": "orders", "config": {"meta": {"arctic": arctic}}}]}
    model = MODEL.format(more=more, columns=", ".join(COLUMNS))
    write_project(folder, source, {"orders": model}, {})
