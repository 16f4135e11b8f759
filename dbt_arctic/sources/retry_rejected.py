"""Takes rejected rows again: parses their text with the columns that the source has now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.sources import bad_database_rows, bad_messages
from dbt_arctic.sources.bad_rows import data_columns, error_text, folder_columns, parsed
from dbt_arctic.sources.database_rows import TableRows
from dbt_arctic.sources.file_settings import POSITION, TEXT, FileSource
from dbt_arctic.sources.kafka_settings import KafkaSource
from dbt_arctic.store.context import Context
from dbt_arctic.store.rejected_table import COLUMNS, RejectedVersion

_FITS = "_arctic_fits"
_ROW = "_arctic_row"


@dataclass(frozen=True)
class ReplayedRows:
    """The rejected rows of a source that fit now, and those that do not.

    :param fitting: how many rows fit.
    :param rows: SQL of these rows, with the columns of a pull.
    :param kept: SQL of the rejected rows that stay, those of other sources included.
    """

    fitting: int
    rows: str
    kept: str


def retry_rejected_rows(
    context: Context, source: FileSource | KafkaSource | TableRows, version: RejectedVersion
) -> ReplayedRows | None:
    """Find out which rejected rows of a source fit now; ``None`` if nothing would change."""
    mine = [
        str(path)
        for name, path, position in context.catalog.of(version.name).read_rows(
            version.name.schema,
            version.name.identifier,
            ("source", "location", "position"),
            int(version.consumed.version),
        )
        if name == source.name and position is not None
    ]
    if not mine:
        return None
    if isinstance(source, KafkaSource):
        return _messages_again(context, source, version)
    if isinstance(source, TableRows):
        return _table_rows_again(context, source, version)
    folders = folder_columns(source, mine)
    again = _parsed_again(source, version, folders)
    ((fitting,),) = context.query(f"SELECT count(*)\nFROM (\n{again}\n)\nWHERE {quote(_FITS)}")
    if not fitting and source.on_bad_row != "drop":
        return None
    return ReplayedRows(int(fitting), _rows(source, folders, again), _kept(source, version, folders, again))


def _messages_again(context: Context, source: KafkaSource, version: RejectedVersion) -> ReplayedRows | None:
    ((fitting,),) = context.query(bad_messages.count_fitting(source, version))
    if not fitting and source.on_bad_row != "drop":
        return None
    # With the policy ``fail``, the messages that do not fit stay where they are.
    tolerant = replace(source, on_bad_row="quarantine") if source.on_bad_row == "fail" else source
    rows, kept = bad_messages.fitting_rows(tolerant, version), bad_messages.kept_rows(tolerant, version)
    return ReplayedRows(int(fitting), rows, kept)


def _table_rows_again(context: Context, table: TableRows, version: RejectedVersion) -> ReplayedRows | None:
    ((fitting,),) = context.query(bad_database_rows.count_fitting(table, version))
    if not fitting and table.on_bad_row != "drop":
        return None
    rows, kept = bad_database_rows.fitting_rows(table, version), bad_database_rows.kept_rows(table, version)
    return ReplayedRows(int(fitting), rows, kept)


def _rows(source: FileSource, folders: Collection[str], again: str) -> str:
    columns = ", ".join(f"{_value(source, name, folders)} AS {quote(name)}" for name in source.columns)
    position = f"`position` AS {quote(POSITION)}, " if source.positions else ""
    return (
        f"SELECT {columns}, `location` AS `_source_file`, `modified` AS `_source_modified`, "
        f"{position}'U' AS `_action`\n"
        f"FROM (\n{again}\n)\nWHERE {quote(_FITS)}"
    )


def _kept(source: FileSource, version: RejectedVersion, folders: Collection[str], again: str) -> str:
    error = error_text(
        source, f"{quote(_ROW)}.{quote(TEXT)}", folders, lambda column: _value(source, column, folders)
    )
    changed = {"error": f"{error} AS `error`"}
    if source.on_bad_row == "drop":
        changed |= {
            "raw": "CAST(NULL AS STRING) AS `raw`",
            "position": "CAST(NULL AS BIGINT) AS `position`",
        }
    kept = ", ".join(changed.get(name, quote(name)) for name in COLUMNS)
    return (
        f"SELECT {quote_all(COLUMNS)}\nFROM {version.rows}\nWHERE NOT ({_is_mine(source)})\n"
        f"UNION ALL\nSELECT {kept}\nFROM (\n{again}\n)\nWHERE NOT {quote(_FITS)}"
    )


def _is_mine(source: FileSource) -> str:
    return f"`source` = {literal(source.name)} AND `raw` IS NOT NULL"


def _parsed_again(source: FileSource, version: RejectedVersion, folders: Collection[str]) -> str:
    """SQL of the rejected rows of a source with their parsed text, and whether it fits."""
    row = parsed(source, "`raw`", data_columns(source, folders))
    required = "".join(f" AND ({_value(source, column, folders)}) IS NOT NULL" for column in source.required)
    return (
        f"SELECT *, {quote(_ROW)}.{quote(TEXT)} IS NULL{required} AS {quote(_FITS)}\n"
        f"FROM (\nSELECT *, {row} AS {quote(_ROW)}\nFROM {version.rows}\n"
        f"WHERE {_is_mine(source)}\n)"
    )


def _value(source: FileSource, column: str, folders: Collection[str]) -> str:
    """SQL of a column of a rejected row: from its text, or from the path of its file."""
    if column.lower() not in {name.lower() for name in folders}:
        return f"{quote(_ROW)}.{quote(column)}"
    folder = next(name for name in folders if name.lower() == column.lower())
    found = f"regexp_extract(`location`, {literal(f'/{_escaped(folder)}=([^/]*)/')}, 1)"
    decoded = f"url_decode(replace({found}, '+', '%2B'))"
    return f"CAST(nullif({decoded}, '__HIVE_DEFAULT_PARTITION__') AS {source.columns[column]})"


def _escaped(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign == "_" else f"\\{sign}" for sign in name)


__all__ = ["ReplayedRows", "retry_rejected_rows"]
