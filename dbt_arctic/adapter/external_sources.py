"""dbt sources whose rows are outside the catalog: how they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from dbt_arctic.databases.address import kind_of_url
from dbt_arctic.engine.connectors import S3
from dbt_arctic.errors import ArcticError, ConfigError, StatementError, UnknownRelation
from dbt_arctic.sources.avro_settings import AVRO_SETTINGS

Kind = Literal["files", "kafka", "jdbc", "postgres", "mariadb"]
"""The values of ``from``."""
CAPTURED: tuple[Kind, ...] = ("postgres", "mariadb")
"""Those of databases that are followed by their log."""

_CALLED: Mapping[str, str] = {
    "files": "a folder of files",
    "kafka": "a Kafka topic",
    "jdbc": "a table of another database",
    "postgres": "a table of another database",
    "mariadb": "a table of another database",
}

_READ_AS: dict[str, Mapping[str, Any]] = {}
"""The declared sources, by the SQL that ``source()`` gives where they are not pulled."""


def remember(sql: str, declared: Mapping[str, Any]) -> None:
    """Remember the SQL name of a source, which names no table."""
    _READ_AS[sql] = declared


def explained(error: StatementError) -> ArcticError:
    """The error of a statement, with advice if the statement reads such a source like a table."""
    if "[TABLE_OR_VIEW_NOT_FOUND]" not in error.why:
        return error
    found = next((declared for sql, declared in _READ_AS.items() if sql in error.why), None)
    if found is None:
        return error
    return _no_table(found, error.where)


def _no_table(declared: Mapping[str, Any], where: str) -> UnknownRelation:
    schema, _, table = str(declared["name"]).partition(".")
    called = _CALLED.get(declared["settings"].get("from"), "outside the catalog")
    return UnknownRelation(
        f"the source {schema}.{table} is {called}, not a table",
        where=where,
        fix=f"read it with {{{{ incremental_pull(source('{schema}', '{table}')) }}}} in a model of another "
        "strategy than auto; to read all rows in other models, use ref() of that model",
    )


def require_tables(node: Any, sources: Mapping[str, Any]) -> None:
    """Refuse a model that reads a source outside the catalog like a table.

    :param sources: the sources of the project, by id.
    :raises UnknownRelation: it reads one.
    """
    for unique_id in node.depends_on.nodes:
        declared = declared_source(sources.get(unique_id))
        if declared is not None:
            raise _no_table(declared, str(node.name))


def declared_source(node: Any) -> Mapping[str, Any] | None:
    """The ``meta.arctic`` of a source's node with ``from``, and what else describes the source.

    Settings of the whole source hold for each of its tables that does not have its own.

    :returns: ``name``, ``where``, ``settings``, and ``columns`` (types by name); ``None`` for any other node.
    """
    if getattr(node, "resource_type", None) != "source":
        return None
    config = getattr(node, "config", None)
    settings = source_settings(
        getattr(node, "source_meta", None), getattr(node, "meta", None), getattr(config, "meta", None)
    )
    if settings is None:
        return None
    columns = {column.name: column.data_type for column in node.columns.values() if column.data_type}
    return {
        "name": f"{node.source_name}.{node.name}",
        "where": str(node.original_file_path),
        "settings": settings,
        "columns": columns,
    }


def require_meta(node: Any) -> None:
    """Refuse a source with ``arctic`` directly in its ``config``, where dbt accepts any name.

    :raises ConfigError: it would be read as a table of the catalog.
    """
    if getattr(node, "resource_type", None) == "source" and "arctic" in getattr(node.config, "_extra", {}):
        raise ConfigError(
            f"arctic is not in meta in the config of the source {node.source_name}.{node.name}",
            where=str(node.original_file_path),
            why="without meta, the source would be a table of the catalog",
            fix="write config: {meta: {arctic: ...}}",
        )


def source_settings(
    source_meta: Mapping[str, Any] | None,
    meta: Mapping[str, Any] | None,
    config_meta: Mapping[str, Any] | None,
) -> Mapping[str, Any] | None:
    """The ``meta.arctic`` of a source's table, with that of the whole source; ``None`` without ``from``.

    :param source_meta: that of the source; ``meta`` and ``config_meta`` are those of its table.
    """
    own = {**(config_meta or {}), **(meta or {})}
    # dbt replaces the whole `arctic` of the source by that of the table.
    levels = ((source_meta or {}).get("arctic"), own.get("arctic"))
    settings: dict[str, Any] = {}
    for level in levels:
        if isinstance(level, Mapping):
            settings.update(level)
    return settings if "from" in settings else None


def kind_of(declared: Mapping[str, Any]) -> Kind:
    """What a source is read from.

    :raises ConfigError: ``from`` has another value than those of ``Kind``.
    """
    kind, known = declared["settings"]["from"], get_args(Kind)
    if kind not in known:
        raise ConfigError(
            f"the source {declared['name']} has from: {kind}",
            where=declared["where"],
            fix=f"use from: {' or '.join(known)}",
        )
    found: Kind = kind
    return found


def connectors_of(nodes: Iterable[Any]) -> tuple[str, ...]:
    """The names of the connectors that these sources need and that are not a part of Spark."""
    found = [one["settings"] for node in nodes if (one := declared_source(node)) is not None]
    readers = {"kafka" for settings in found if settings["from"] == "kafka"}
    readers |= {"avro" for settings in found if _is_avro(settings)}
    readers |= {S3 for settings in found if settings["from"] == "files" and _is_on_s3(settings)}
    readers |= {"postgresql" for settings in found if settings["from"] == "postgres"}
    readers |= {"mariadb" for settings in found if settings["from"] == "mariadb"}
    databases = (kind_of_url(str(one.get("url") or "")) for one in found if one["from"] == "jdbc")
    return tuple(sorted(readers | {kind for kind in databases if kind is not None}))


def _is_on_s3(settings: Mapping[str, Any]) -> bool:
    return str(settings.get("path") or "").startswith(("s3://", "s3a://"))


def _is_avro(settings: Mapping[str, Any]) -> bool:
    of_topic = settings["from"] == "kafka" and any(settings.get(one) for one in AVRO_SETTINGS)
    return of_topic or (settings["from"] == "files" and settings.get("format") == "avro")


__all__ = [
    "CAPTURED",
    "Kind",
    "connectors_of",
    "declared_source",
    "explained",
    "kind_of",
    "remember",
    "require_meta",
    "require_tables",
]
