"""Reads and checks the settings of a topic whose messages are Avro."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.avro_sql import AvroSchema, parse_schema

AVRO: Literal["avro"] = "avro"
AVRO_SETTINGS = ("registry", "schema")


@dataclass(frozen=True)
class AvroMessages:
    """How the parts of messages are decoded that are Avro.

    :param parts: those that are Avro, ``value`` and ``key``, each with the field of a value without fields.
    :param registry: the address of the registry that has the schemas; empty if all messages have one schema.
    :param file: with the schema of messages without the id of a schema; empty with a registry.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    registry: str = ""
    file: str = ""

    def schema(self, where: str) -> AvroSchema:
        """The schema in the file.

        :param where: the model, for errors.
        :raises ConfigError: the file cannot be read, or has no schema of Avro.
        """
        try:
            text = Path(self.file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"the schema {self.file} cannot be read",
                where=where,
                why=str(error),
                fix="correct schema in the source's meta.arctic: the path of a file, relative to the project",
            ) from error
        return parse_schema(text, self.file, where)


def avro_of(
    settings: Mapping[str, Any], columns: Mapping[str, str], name: str, where: str, root: str | None
) -> AvroMessages | None:
    """How the messages of a source are decoded; ``None`` if they are not Avro.

    :param settings: the source's ``meta.arctic``.
    :param columns: its declared columns.
    :param root: of the project, below which the file of a schema is; ``None`` for the current folder.
    :raises ConfigError: a setting is missing or wrong.
    """
    given = [setting for setting in AVRO_SETTINGS if settings.get(setting)]
    of_changes = settings.get("format") not in (AVRO, "json", "text", "binary", None)
    has_value = settings.get("format") == AVRO or (of_changes and bool(given))
    has_key = settings.get("key_format") == AVRO
    if not has_value and not has_key:
        if given:
            raise _unused(given[0], name, where)
        return None
    if len(given) != 1:
        raise ConfigError(
            f"the source {name} is Avro, and has {'both registry and schema' if given else 'no schema'}",
            where=where,
            fix="set registry: the address of a schema registry, or schema: a file .avsc of the project",
        )
    key = settings.get("key")
    names = [key] if isinstance(key, str) else list(key or ())
    values = [column for column in columns if column not in names]
    parts: dict[str, str] = {"value": values[0] if len(values) == 1 else "value"} if has_value else {}
    if has_key:
        parts["key"] = names[0] if len(names) == 1 else "key"
    if given == ["registry"]:
        return AvroMessages(parts, registry_address(settings["registry"], where))
    if has_key:
        raise ConfigError(
            f"the source {name} has key_format: avro and a schema in a file",
            where=where,
            why="the file has the schema of the values",
            fix="set registry, or another key_format",
        )
    return AvroMessages(parts, file=str(Path(root or ".", str(settings["schema"]))))


def registry_address(given: Any, where: str) -> str:
    """The address of a schema registry.

    :param where: what has the address, for errors.
    :raises ConfigError: it is none, or contains a login.
    """
    parts = urlsplit(str(given))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "the schema registry has no address that can be used",
            where=where,
            why="it does not begin with http:// or https:// and a host",
            fix="write https://host:port",
        )
    if parts.username or parts.password:
        raise ConfigError(
            "the address of the schema registry contains a login",
            where=where,
            why="dbt writes the settings of a source to target/manifest.json",
            fix="set it in profiles.yml: kafka: {schema.registry.basic.auth.user.info: "
            "\"{{ env_var('DBT_ENV_SECRET_REGISTRY') }}\"}",
        )
    return str(given).rstrip("/")


def _unused(setting: str, name: str, where: str) -> ConfigError:
    return ConfigError(
        f"the source {name} has {setting}, and no part of its messages is Avro",
        where=where,
        fix=f"set format: avro, or remove {setting}",
    )


__all__ = ["AVRO", "AVRO_SETTINGS", "AvroMessages", "avro_of", "registry_address"]
