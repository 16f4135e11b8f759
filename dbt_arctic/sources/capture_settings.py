"""Reads and checks the ``meta.arctic`` of a source that is captured from the log of a database. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dbt_arctic.data_type import has_kind
from dbt_arctic.databases.api import Column, Table, TableName, TableVersion
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources.change_settings import ADDED, ChangeEvents, Unavailable, column_type, listed_columns
from dbt_arctic.sources.column_changes import RecordedTable
from dbt_arctic.sources.common_settings import flag, one_of, reject_unknown
from dbt_arctic.sources.database_columns import ReadColumn, read_columns
from dbt_arctic.sources.database_settings import DatabaseSource, parse_database
from dbt_arctic.store.duration import parse_duration

PLACE = "capture"
"""In the place of a catalog in the name of a source."""
DEFAULT_RETENTION_DAYS = 7

_SHOWN = 3
"""The most partitions that an error names."""
_DAY_S = 24 * 60 * 60
_OF_TABLE = ("table", "columns", "partitions", "partition_column")
"""Settings that a table has in the same form if it is read without its log."""
_SHARED = (
    *("from", "url", "connection", "retention", "key", "optional", "initial_load", "schema_changes"),
    *("truncate", *_OF_TABLE),
)
FollowedDatabase = Literal["postgres", "mariadb"]
_SETTINGS: Mapping[FollowedDatabase, tuple[str, ...]] = {
    "postgres": (*_SHARED, "slot", "publication", "unavailable"),
    "mariadb": _SHARED,
}
SchemaChanges = Literal["evolve", "fail"]
"""What a run does if the columns of the table have changed."""
Truncation = Literal["fail", "apply"]


@dataclass(frozen=True)
class CaptureSource:
    """A table of a database, followed by its log.

    :param name: ``<source>.<table>``, as in ``source('<source>', '<table>')``.
    :param kind: the value of ``from``.
    :param slot: the replication slot of PostgreSQL. All tables of one slot are captured together.
    :param retention_days: how long captured changes are kept.
    :param table: how the rows of the table are read, for the initial load.
    :param key: the columns of the primary key; empty for those of the database.
    :param loads: whether the first run reads the rows of the table.
    :param truncation: what a run does if the table was truncated.
    """

    name: str
    kind: FollowedDatabase
    slot: str
    publication: str
    retention_days: int
    table: DatabaseSource
    key: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    unavailable: Unavailable = "fail"
    loads: bool = True
    schema_changes: SchemaChanges = "evolve"
    truncation: Truncation = "fail"


@dataclass(frozen=True)
class CapturedColumns:
    """The columns of a source, as the database has them.

    :param read: how the initial load reads them.
    :param events: how the changes are read.
    :param table: as the database has it.
    """

    read: list[ReadColumn] = field(repr=False)
    events: ChangeEvents
    table: Table

    @property
    def table_id(self) -> str:
        """Differs for another table of the same name."""
        return self.table.table_id.rpartition("/")[2]

    def recorded(
        self, before: RecordedTable | None, captured: TableVersion | None = None
    ) -> RecordedTable | None:
        """What the commit of a model records of the table.

        :param before: what its last commit has recorded.
        :param captured: the table before the changes were captured; ``None`` for the table as it is now.
        """
        version = captured or self.table.version
        return version and RecordedTable.of(version, self.events.columns, self.events.key, before)


def parse_capture(name: str, settings: Mapping[str, Any], where: str = "") -> CaptureSource:
    """Read the settings of a source, apart from how to connect.

    :param name: ``<source>.<table>``.
    :param settings: the source's ``meta.arctic``.
    :param where: the file that declares the source.
    :raises ConfigError: a setting is unknown or wrong.
    """
    where = where or name
    kind: FollowedDatabase = "mariadb" if settings.get("from") == "mariadb" else "postgres"
    reject_unknown(name, settings, _SETTINGS[kind], where)
    slot = str(settings.get("slot") or "")
    if kind == "postgres" and not slot:
        raise ConfigError(
            f"the source {name} has no slot",
            where=where,
            why="a replication slot keeps the changes of the database until they are read, and each target "
            "needs its own",
            fix='add slot: "arctic_{{ target.name }}" to the source\'s meta.arctic, and create the slot in '
            "the database",
        )
    loads = flag("initial_load", settings, True, name, where)

    def chosen(setting: str, values: tuple[Any, ...], default: str) -> Any:
        return one_of(values, setting, settings.get(setting, default), name, where)

    of_table = {key: settings[key] for key in _OF_TABLE if key in settings}
    return CaptureSource(
        name,
        kind,
        slot,
        str(settings.get("publication") or slot),
        _days(settings.get("retention"), name, where),
        parse_database(name, of_table, where),
        _names(settings.get("key")),
        _names(settings.get("optional")),
        chosen("unavailable", get_args(Unavailable), "fail"),
        loads,
        chosen("schema_changes", get_args(SchemaChanges), "evolve"),
        chosen("truncate", get_args(Truncation), "fail"),
    )


def resolve_columns(source: CaptureSource, table: Table, place: TableName, where: str) -> CapturedColumns:
    """The columns and the key of a source.

    :param place: the name of the table.
    :param where: the model, for errors.
    :raises ConfigError: a declared column does not exist or has another type, a column has the name of one
        that each row gets, or no key is known.
    """
    read = read_columns(source.table, _without_generated(source, table, where), where)
    names = {one.column.name.lower(): one.column.name for one in read}
    for added in ADDED:
        if added in names:
            raise ConfigError(
                f"the table {place.dotted} has a column {names[added]}",
                where=where,
                why="each row of the source gets a column of that name",
                fix="list the other columns in columns of the source's meta.arctic",
            )
    types = {one.column.name: _type_of(one, source, where) for one in read}

    def listed(given: Sequence[str], setting: str) -> tuple[str, ...]:
        named = [names.get(one.lower(), one) for one in given]
        return listed_columns(named, setting, types, source.name, where)

    key = listed(source.key or table.key, "key")
    if not key:
        raise ConfigError(
            f"the key of the source {source.name} is not known: the table {place.dotted} has no primary key",
            where=where,
            why="a change applies to the row of a key",
            fix="add key: the columns that identify a row, to the source's meta.arctic",
        )
    if unlogged := [one for one in key if one not in table.identity]:
        raise _unlogged(source, table, place, unlogged[0], where)
    events = ChangeEvents(
        "capture",
        types,
        key,
        place.dotted,
        optional=listed(source.optional, "optional"),
        unavailable=source.unavailable,
        binary="hex",
        sends_all=source.kind == "mariadb",
        in_utc=tuple(
            one.column.name
            for one in read
            if one.column.family == "timestamptz" and has_kind(types[one.column.name], "string")
        ),
        single=tuple(
            one.column.name
            for one in read
            if one.column.spark_type == "FLOAT" and has_kind(types[one.column.name], "double")
        ),
    )
    return CapturedColumns(read, events, table)


def _unlogged(source: CaptureSource, table: Table, place: TableName, column: str, where: str) -> ConfigError:
    """The error if the log does not have the old values of a column of the key."""
    lacking = [name for name, logged in table.partitions.items() if column not in logged] or [place]
    statements = [
        f"ALTER TABLE {'.'.join(map(_quoted, name))} REPLICA IDENTITY FULL" for name in lacking[:_SHOWN]
    ]
    rest = len(lacking) - len(statements)
    others = f"; and the same for {counted(rest, 'other partition')}" if rest else ""
    owner = "of the table" if lacking == [place] else "of the partitions, which have a replica identity each"
    return ConfigError(
        f"the log does not have the old values of {column}, a column of the key of the source {source.name}",
        where=where,
        why="an update that changes the key, or a delete, would leave the old row",
        fix=f"run this in the database, as the owner {owner}: {'; '.join(statements)}{others}",
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _without_generated(source: CaptureSource, table: Table, where: str) -> Table:
    """The table without the generated columns that the log does not have.

    :raises ConfigError: one of them is declared.
    """
    logged = () if table.version is None or source.kind == "mariadb" else table.version.logged

    def is_missing(column: Column) -> bool:
        return column.is_generated and column.name not in logged

    for name in source.table.columns:
        column = table.column(name)
        if column is not None and is_missing(column):
            raise ConfigError(
                f"the column {column.name} of the source {source.name} is a generated one",
                where=where,
                why="the log does not have its values",
                fix="remove it from columns, and compute it in the model; or publish it, since PostgreSQL 18 "
                "with publish_generated_columns = stored"
                if source.kind == "postgres"
                else "remove it from columns, and compute it in the model",
            )
    return table._replace(columns=tuple(one for one in table.columns if not is_missing(one)))


def upstream_of(source: CaptureSource) -> Name:
    """``capture.<source>.<table>``: the same for all models, because each records its own progress."""
    return Name(PLACE, *source.name.split(".", 1))


def _type_of(column: ReadColumn, source: CaptureSource, where: str) -> str:
    kind = column_type(column.type.lower())
    database = column.column
    is_text = has_kind(kind, "string")
    is_other = database.family == "timestamptz" and not (has_kind(kind, "timestamp") or is_text)
    if kind and not is_other and not (source.kind == "mariadb" and is_text and _is_coded(database)):
        return kind
    raise ConfigError(
        f"the column {database.name} of the source {source.name} cannot be read as {column.type.lower()}",
        where=where,
        why=f"its type in the database is {database.type}",
        fix=f"declare it as {database.spark_type.lower()}, and cast it in the model",
    )


def _is_coded(column: Column) -> bool:
    """Whether the log of MariaDB has another text of a value than SQL gives, or none: ``0000-00-00``."""
    is_padded = "zerofill" in column.type.lower() or column.type.lower().startswith("year")
    return is_padded or column.family in ("date", "timestamp", "timestamptz", "float")


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given or ()))


def _days(given: Any, name: str, where: str) -> int:
    days = parse_duration(name, "retention", given, DEFAULT_RETENTION_DAYS * _DAY_S) // _DAY_S
    if days < 1:
        raise ConfigError(
            f"the source {name} has retention: {given}",
            where=where,
            why="captured changes are removed by days",
            fix="write at least one day, for instance retention: 7 days",
        )
    return int(days)


__all__ = [
    "CaptureSource",
    "CapturedColumns",
    "FollowedDatabase",
    "parse_capture",
    "resolve_columns",
    "upstream_of",
]
