"""Drops a table and its files by Iceberg's catalog. Spark would start several jobs to list the files.

Only for catalogs in a database. A catalog that is a service may have its own way to delete files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbt_arctic.engine.iceberg_api import iceberg_catalog, loaded_table, table_identifier
from dbt_arctic.engine.lexer import without_comments

if TYPE_CHECKING:
    from dbt_arctic.engine.statement import Statement

_NAME = r"`((?:[^`]|``)+)`"
_DROP = re.compile(rf"\s*DROP TABLE IF EXISTS {_NAME}\.{_NAME}\.{_NAME} PURGE\s*")
_JDBC = "org.apache.iceberg.jdbc.JdbcCatalog"


def purge(session: Any, statement: Statement) -> bool:
    """Run a statement that drops a table and its files.

    :returns: whether it was run. Otherwise it is another statement, the table does not exist, or its metadata
        does not list all of its files.
    """
    if statement.verb != "DROP":
        return False
    dropped = _DROP.fullmatch(without_comments(statement.sql))
    if dropped is None:
        return False
    catalog_name, schema, name = (part.replace("``", "`") for part in dropped.groups())
    catalog = iceberg_catalog(session, catalog_name)
    if catalog is None or catalog.getClass().getName() != _JDBC:
        return False
    table = table_identifier(session, schema, name)
    loaded = loaded_table(catalog, table)
    if loaded is None or not _lists_its_files(loaded):
        return False
    catalog.dropTable(table, True)
    return True


def _lists_its_files(table: Any) -> bool:
    """Whether the current metadata names each older metadata file, and its files may be deleted.

    Metadata names a limited number of older files, and a setting may have changed the number.
    """
    metadata = table.operations().current()
    older = metadata.previousFiles()
    oldest = older.get(0).file() if older.size() else metadata.metadataFileLocation()
    return table.properties().get("gc.enabled") in (None, "true") and _is_first_version(oldest)


def _is_first_version(metadata_file: str) -> bool:
    """Whether a metadata file is that of the table's creation, by its number.

    >>> _is_first_version("file:/data/shop/orders/metadata/00000-6f1c.metadata.json")
    True
    >>> _is_first_version("s3://data/shop/orders/metadata/00012-6f1c.gz.metadata.json")
    False
    """
    return metadata_file.rpartition("/")[2].startswith("00000-")
