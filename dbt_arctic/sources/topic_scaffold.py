"""The files of a dbt project that load topics: a source, models and tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_arctic.sources.draft_topics import TopicDraft
from dbt_arctic.sources.scaffold import column_sql, jinja_text, key_properties, key_setting


def topic_properties(
    source: str, servers: str, topics: Sequence[TopicDraft], prefix: str, registry: str = ""
) -> dict[str, Any]:
    """The content of the YAML file: the source with its tables, and a model with tests for each of them.

    :param servers: ``host:port``, separated by commas.
    :param topics: each has a format.
    :param prefix: of the models' names.
    :param registry: the address of the schema registry; empty for none.
    """
    settings = {"from": "kafka", "servers": servers}
    declared = [
        {"name": topic.name, "config": {"meta": {"arctic": _settings(topic, registry)}}} for topic in topics
    ]
    return {
        "sources": [{"name": source, "config": {"meta": {"arctic": settings}}, "tables": declared}],
        "models": [key_properties(prefix + topic.name, topic.key) for topic in topics],
    }


def _settings(topic: TopicDraft, registry: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"topic": topic.topic, "format": topic.format}
    if topic.is_avro:
        settings["registry"] = registry
    if topic.format not in ("text", "binary"):
        settings["columns"] = dict(topic.columns)
    if topic.is_change_events or topic.key_in_message:
        settings["key"] = list(topic.key)
    if topic.key_in_message and topic.key_format != "text":
        settings["key_format"] = topic.key_format
    if topic.units:
        settings["units"] = dict(topic.units)
    return settings


def topic_model_sql(source: str, topic: TopicDraft) -> str:
    """The SQL of the model that pulls a topic: keyed if the topic has a key, otherwise append-only."""
    if topic.is_change_events:
        config = f"unique_key={key_setting(topic.key)}, sequence_by='_source_sequence'"
        added = ["_source_sequence", "_action"]
    elif topic.key:
        config = f"unique_key={key_setting(topic.key)}, deduplicate_by='_source_offset'"
        added = ["_source_timestamp", "_source_offset", "_action"]
    else:
        config = "incremental_strategy='append'"
        added = ["_source_timestamp", "_source_partition", "_source_offset"]
    columns = ",\n".join(f"    {column_sql(name)}" for name in (*topic.columns, *added))
    return (
        f"{{{{ config(materialized='incremental', {config}) }}}}\n\nselect\n{columns}\n"
        f"from {{{{ incremental_pull(source('{jinja_text(source)}', '{jinja_text(topic.name)}')) }}}}\n"
    )


__all__ = ["topic_model_sql", "topic_properties"]
