"""Reads and checks the ``meta.arctic`` of a source that is a Kafka topic."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from dbt_arctic.brokers.api import REGISTRY_PREFIX
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.sources.avro_settings import AVRO, AVRO_SETTINGS, AvroMessages, avro_of
from dbt_arctic.sources.change_settings import (
    CHANGE_FORMATS,
    ChangeEvents,
    ChangeFormat,
    known_settings,
    parse_changes,
)
from dbt_arctic.sources.common_settings import (
    OnBadRow,
    columns_of,
    on_bad_row_of,
    one_of,
    refuse_inferred,
    reject_unknown,
    required_of,
    texts,
)

Format = Literal["json", "text", "binary", ChangeFormat]
KeyFormat = Literal["text", "json"]
"""Messages in Avro are decoded to JSON first."""
OnDataLoss = Literal["fail", "skip"]
Isolation = Literal["read_committed", "read_uncommitted"]

ADDED: Mapping[str, str] = {
    "_source_key": "BINARY",
    "_source_headers": "ARRAY<STRUCT<`key`: STRING, `value`: BINARY>>",
    "_source_timestamp": "TIMESTAMP",
    "_source_partition": "INT",
    "_source_offset": "BIGINT",
    "_action": "STRING",
}
"""What a pull adds to the declared columns, and the types."""

MALFORMED = "_source_malformed"
"""A column of Spark's reader of JSON, which a pull does not return."""

OF_CHANGES = ("_source_timestamp", "_source_partition", "_source_offset")
"""The columns of ``ADDED`` that rows of change events have."""

PLACE = "kafka"
"""In the place of a catalog in the name of a topic."""

_OF_ALL = ("from", "servers", "topic", "format", "columns", "options", "on_data_loss")
_SETTINGS = (*_OF_ALL, "key", "key_format", "on_bad_row", "required", *AVRO_SETTINGS)
_PREFIX = "kafka."
_OF_READER = (
    *("minPartitions", "maxRecordsPerPartition", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
)
"""Options of Spark's reader of Kafka that do not decide which messages are read."""
_WHOLE = {"text": "string", "binary": "binary"}
_PLANNED = ("bootstrap.servers", "group.id", "auto.offset.reset", "enable.auto.commit")


@dataclass(frozen=True)
class KafkaSource:
    """A dbt source whose rows are the messages of a Kafka topic.

    :param name: ``<source>.<table>``, as in ``source('<source>', '<table>')``.
    :param servers: ``host:port``, separated by commas.
    :param columns: Spark types by column name.
    :param key: the columns that are in the message's key and not in its value.
    :param options: of Spark's reader of JSON.
    :param reader: other options of Spark's reader of Kafka.
    :param client: properties of Kafka's Java client. They may contain passwords.
    :param changes: how the messages are read, if they are change events.
    :param on_bad_row: what to do about a message that does not fit.
    :param required: columns in which a message that fits is not NULL. A tombstone has those of the key only.
    :param avro: how the parts of the messages are decoded that are Avro; ``None`` if none is.
    :param registry_client: properties of the client of the schema registry. They may contain passwords.
    """

    name: str
    servers: str
    topic: str
    format: Format
    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    key_format: KeyFormat = "text"
    options: Mapping[str, str] = field(default_factory=dict)
    reader: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    on_data_loss: OnDataLoss = "fail"
    isolation: Isolation = "read_committed"
    changes: ChangeEvents | None = None
    on_bad_row: OnBadRow = "fail"
    required: tuple[str, ...] = ()
    avro: AvroMessages | None = None
    registry_client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def added(self) -> dict[str, str]:
        """The columns that each row has in addition to the declared ones, and their types."""
        if self.changes is None:
            return dict(ADDED)
        return {**{name: ADDED[name] for name in OF_CHANGES}, **self.changes.added}

    @property
    def value_columns(self) -> dict[str, str]:
        """The columns that are in the message's value."""
        return {name: kind for name, kind in self.columns.items() if name not in self.key}


def upstream_of(source: KafkaSource) -> Name:
    """The name under which the commits of all models record what they have consumed of a topic."""
    return Name(PLACE, *source.name.split(".", 1))


def parse_kafka(
    name: str,
    settings: Mapping[str, Any],
    columns: Mapping[str, str],
    client: Mapping[str, str],
    where: str = "",
    root: str | None = None,
) -> KafkaSource:
    """Read the settings of a source.

    :param name: ``<source>.<table>``.
    :param settings: the source's ``meta.arctic``.
    :param columns: types by name from the source's own ``columns``, used if the settings have none.
    :param client: properties of Kafka's client in the profile. Those of the source take precedence.
    :param where: the file that declares the source.
    :param root: the folder of the project; ``None`` for the current one.
    :raises ConfigError: a setting is unknown, missing or wrong.
    """
    where = where or name
    is_changes = settings.get("format") in CHANGE_FORMATS
    changed = (*_OF_ALL, *known_settings(settings["format"]), *AVRO_SETTINGS) if is_changes else ()
    known = changed or _SETTINGS
    reject_unknown(name, settings, known, where)
    servers = settings.get("servers")
    if isinstance(servers, list):
        servers = ",".join(map(str, servers))
    if not isinstance(servers, str) or not servers.strip():
        raise ConfigError(
            f"the source {name} has no servers", where=where, fix="add servers: host:port of a Kafka broker"
        )
    topic = str(settings.get("topic") or name.partition(".")[2])
    command = f"dbt-arctic ingest init {shlex.quote(name.partition('.')[0])} --kafka {shlex.quote(servers)}"
    command += f" --topic {shlex.quote(topic)} --dry-run"
    fix = f"copy the columns that this command prints, and review them: {command}"
    refuse_inferred(settings.get("columns"), fix, name, where)
    formats = (*get_args(Format), AVRO)
    form: Any = one_of(formats, "format", settings.get("format"), name, where)
    changes = parse_changes(name, form, settings, columns, ADDED, where) if is_changes else None
    declared = (
        dict(changes.columns)
        if changes is not None
        else columns_of(settings.get("columns") or columns, (*ADDED, MALFORMED), name, where)
    )
    avro = avro_of(settings, declared, name, where, root)
    if changes is not None and avro is not None and changes.decimals is None:
        changes = replace(changes, decimals="double")  # numbers in JSON, with each digit
    options, reader, own = _sorted(texts(settings.get("options") or {}, name, "options", where), where)
    if options and form != "json":
        raise ConfigError(
            f"the source {name} has the option {min(options)}",
            where=where,
            why=f"it belongs to the format json, and the format is {form}",
            fix="remove it",
        )
    form = "json" if form == AVRO else form
    properties, of_registry = without_registry({**client, **own})
    isolation: Isolation = one_of(
        get_args(Isolation),
        "kafka.isolation.level",
        properties.pop("isolation.level", "read_committed"),
        name,
        where,
    )
    made = KafkaSource(
        name,
        ",".join(part.strip() for part in servers.split(",")),
        topic,
        form,
        declared,
        () if is_changes else _key(settings.get("key"), declared, name, where),
        _key_format(settings.get("key_format", "text"), name, where),
        options,
        reader,
        properties,
        one_of(get_args(OnDataLoss), "on_data_loss", settings.get("on_data_loss", "fail"), name, where),
        isolation,
        changes,
        on_bad_row_of(settings, name, where),
        avro=avro,
        registry_client=of_registry,
    )
    if is_changes:
        return made
    whole = _with_whole_value(made, where)
    required = required_of(settings.get("required"), whole.columns, name, where)
    if whole.on_bad_row != "fail" and form == "binary" and not (required or whole.key):
        raise ConfigError(
            f"on_bad_row of the source {name} has no effect",
            where=where,
            why="each message fits the format binary",
            fix="remove the setting, or use another format",
        )
    return replace(whole, required=required)


def without_registry(properties: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide properties into those of Kafka's client and those of the schema registry."""
    of_registry = {name: one for name, one in properties.items() if name.startswith(REGISTRY_PREFIX)}
    return {name: one for name, one in properties.items() if name not in of_registry}, of_registry


def _key_format(given: Any, name: str, where: str) -> KeyFormat:
    found = one_of((*get_args(KeyFormat), AVRO), "key_format", given, name, where)
    made: KeyFormat = "json" if found == AVRO else found
    return made


def _sorted(options: Mapping[str, str], where: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The options of the format, of the reader, and of Kafka's client."""
    of_format, reader, client = {}, {}, {}
    planned = {"assign", "subscribe", "subscribepattern", "startingoffsets", "endingoffsets"}
    planned |= {"startingtimestamp", "endingtimestamp", "startingoffsetsbytimestamp", "failondataloss"}
    planned |= {"endingoffsetsbytimestamp", "includeheaders", "mode", "columnnameofcorruptrecord"}
    for name, value in options.items():
        if name.lower() in planned or name.removeprefix(_PREFIX) in _PLANNED:
            raise ConfigError(
                f"the option {name} cannot be set",
                where=where,
                why="dbt-arctic decides which messages are read, and reads them in strict mode",
                fix="remove it",
            )
        if name.startswith(_PREFIX):
            client[name.removeprefix(_PREFIX)] = value
        elif name.lower() in {known.lower() for known in _OF_READER}:
            reader[name] = value
        else:
            of_format[name] = value
    return of_format, reader, client


def _key(given: Any, columns: Mapping[str, str], name: str, where: str) -> tuple[str, ...]:
    key = (given,) if isinstance(given, str) else tuple(given or ())
    for column in key:
        if column not in columns:
            raise ConfigError(
                f"key of the source {name} names {column}, which is not one of its columns",
                where=where,
                why="key lists the columns that are in the message's key and not in its value",
                fix=f"add {column} to the columns, with its type",
            )
    return key


def _with_whole_value(source: KafkaSource, where: str) -> KafkaSource:
    """The source with the column of the value, if the format does not divide it into columns."""
    name, key = source.name, source.key
    if len(key) > 1 and source.key_format == "text":
        raise ConfigError(
            f"the source {name} has {counted(len(key), 'column')} in its key",
            where=where,
            why="a key with key_format: text is one value",
            fix="write key_format: json, if the key is a JSON object",
        )
    if source.format == "json":
        if not source.columns:
            raise ConfigError(
                f"the source {name} declares no columns",
                where=where,
                fix="add columns: {name: type} to its meta.arctic",
            )
        return source
    whole = _WHOLE[source.format]
    columns = source.value_columns or {"value": whole}
    if len(columns) != 1 or next(iter(columns.values())).lower() != whole:
        raise ConfigError(
            f"the source {name} has the columns {', '.join(map(quote, columns))} and format: {source.format}",
            where=where,
            why="the message is not divided into columns",
            fix=f"declare one column for the message, for instance value: {whole}; or use format: json",
        )
    keys = {column: source.columns[column] for column in key}
    return replace(source, columns={**keys, **columns})


__all__ = ["ADDED", "MALFORMED", "PLACE", "KafkaSource", "parse_kafka", "upstream_of", "without_registry"]
