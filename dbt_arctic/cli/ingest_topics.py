"""``dbt-arctic ingest init SOURCE --kafka``: a source and models for Kafka topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dbt_arctic.brokers.api import Message
from dbt_arctic.brokers.kafka import KafkaBroker
from dbt_arctic.brokers.schema_registry import HttpRegistry
from dbt_arctic.cli.output import print_table
from dbt_arctic.cli.scaffold_writer import ScaffoldWriter
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.avro_settings import registry_address
from dbt_arctic.sources.avro_sql import AvroSchema, parse_schema
from dbt_arctic.sources.choose_by_globs import choose_by_globs
from dbt_arctic.sources.draft_avro import draft_avro
from dbt_arctic.sources.draft_topics import TopicDraft, draft_topic
from dbt_arctic.sources.kafka_settings import without_registry
from dbt_arctic.sources.topic_scaffold import topic_model_sql, topic_properties

_SAMPLED = 500
"""How many messages of each partition are looked at."""


def init_topics(
    files: ScaffoldWriter,
    source: str,
    servers: str,
    client: Mapping[str, str],
    patterns: Sequence[str],
    excluded: Sequence[str],
    registry: str | None = None,
) -> None:
    """Write a source and models for topics.

    :param servers: ``host:port``, separated by commas.
    :param client: properties of Kafka's client in the profile.
    :param patterns: globs for the topics; empty for all topics.
    :param registry: the address of a schema registry; ``None`` for none.
    :raises ConfigError: no source can be written for any of the topics.
    :raises UnknownRelation: no topic has such a name.
    :raises ServerUnreachable: the broker does not answer, or refuses.
    """
    broker = KafkaBroker(servers, client, f"--kafka {servers}")
    chosen = choose_by_globs(broker.topics(), lambda name: [name], patterns, excluded, "topic", servers)
    schemas = None if registry is None else _schemas(registry, client)
    drafts = [_drafted(topic, broker.newest_messages(topic, _SAMPLED), schemas) for topic in chosen]
    written_for = [draft for draft in drafts if not draft.problem]
    if not written_for:
        raise ConfigError(
            f"no source can be written for the topic {drafts[0].topic}",
            where=servers,
            why=drafts[0].problem,
            fix="write the source yourself: see docs/how-to/load-a-topic.md and load-change-events.md",
        )
    _refuse_same_names(written_for, servers)
    written = files.write(
        source,
        topic_properties(source, servers, written_for, files.prefix, registry or ""),
        {draft.name: topic_model_sql(source, draft) for draft in written_for},
    )
    if not written:
        return
    _show(drafts)
    files.conclude(
        source,
        written,
        f"Formats, columns and keys were guessed from the newest {_SAMPLED} messages of each partition. A "
        "topic with a key has one row for each key; without one, each message is a row. Review the files, "
        "and then load the data:",
    )


def _schemas(registry: str, client: Mapping[str, str]) -> Callable[[int], AvroSchema | None]:
    """Look up schemas by their ids."""
    where = f"--registry {registry}"
    found = HttpRegistry(registry_address(registry, where), without_registry(client)[1], where)

    def schema(number: int) -> AvroSchema | None:
        text = found.schema(number)
        return None if text is None else parse_schema(text, f"the schema {number}", where)

    return schema


def _drafted(
    topic: str, messages: Sequence[Message], schemas: Callable[[int], AvroSchema | None] | None
) -> TopicDraft:
    found = None if schemas is None else draft_avro(topic, messages, schemas)
    return draft_topic(topic, messages) if found is None else found


def _refuse_same_names(drafts: Sequence[TopicDraft], servers: str) -> None:
    by_name: dict[str, str] = {}
    for draft in drafts:
        other = by_name.setdefault(draft.name, draft.topic)
        if other != draft.topic:
            raise ConfigError(
                f"the topics {other} and {draft.topic} would have the same name, {draft.name}",
                where=servers,
                why="a model is named after the last part of its topic",
                fix=f"leave one out: --exclude {draft.topic}, and run the command for it with --prefix",
            )


def _show(drafts: Sequence[TopicDraft]) -> None:
    print_table(
        {
            "topic": "name",
            "sampled": "number",
            "format": "name",
            "columns": "number",
            "key": "name",
            "model": "name",
        },
        [
            [
                draft.topic,
                f"{draft.messages:,}",
                draft.format or "unknown",
                str(len(draft.columns)),
                ", ".join(draft.key) or "none: rows are only appended",
                f"not written: {draft.problem}" if draft.problem else draft.name,
            ]
            for draft in drafts
        ],
    )


__all__ = ["init_topics"]
