"""dbt sources that are Kafka topics: from a source's declaration and the profile to settings and a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.brokers.kafka import KafkaBroker
from dbt_arctic.brokers.schema_registry import HttpRegistry
from dbt_arctic.errors import ConfigError
from dbt_arctic.secret import is_secret
from dbt_arctic.sources.kafka_settings import KafkaSource, parse_kafka


def kafka_source(
    declared: Mapping[str, Any], client: Mapping[str, str], root: str | None = None
) -> KafkaSource:
    """The settings of a declared source.

    :param client: properties of Kafka's client in the profile.
    :param root: the folder of the project; ``None`` for the current one.
    :raises ConfigError: a setting is unknown, missing or wrong, or a secret.
    """
    options = declared["settings"].get("options")
    for name in options if isinstance(options, Mapping) else ():
        if is_secret(str(name)):
            raise ConfigError(
                f"the source {declared['name']} has the option {name}",
                where=declared["where"],
                why="dbt writes the settings of a source to target/manifest.json",
                fix=f"set it in profiles.yml: kafka: {{{str(name).removeprefix('kafka.')}: "
                "\"{{ env_var('DBT_ENV_SECRET_KAFKA') }}\"}",
            )
    return parse_kafka(
        declared["name"], declared["settings"], declared["columns"], client, declared["where"], root
    )


def broker_of(source: KafkaSource, where: str) -> KafkaBroker:
    """The cluster that has the topic of a source."""
    return KafkaBroker(source.servers, source.client, where)


def registry_of(source: KafkaSource, where: str) -> HttpRegistry | None:
    """The registry that has the schemas of a source; ``None`` if it has none."""
    if source.avro is None or not source.avro.registry:
        return None
    return HttpRegistry(source.avro.registry, source.registry_client, where)


__all__ = ["broker_of", "kafka_source", "registry_of"]
