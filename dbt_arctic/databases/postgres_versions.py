"""Reads from PostgreSQL's catalog what distinguishes two states of a table's columns."""

from __future__ import annotations

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.client import Run
from dbt_arctic.databases.table_versions import ColumnVersion, TableVersion

# A partitioned table has no storage of its own. Before PostgreSQL 15, all columns are published, and
# PostgreSQL 11 has no generated ones.
_TABLE = """
SELECT c.relfilenode::text, c.relnatts, (
  SELECT to_jsonb(p) -> 'attnames' FROM pg_catalog.pg_publication_tables p
  WHERE p.pubname = %s AND p.schemaname = %s AND p.tablename = %s)
FROM pg_catalog.pg_class c WHERE c.oid = %s
"""
# The catalog keeps the transaction of an entry that is frozen. The labels of an enum are also those of its
# arrays, and of domains over either. One may have had another name in between.
_COLUMNS = """
SELECT a.attname, a.attnum, a.xmin::text, a.atthasmissing,
  coalesce(to_jsonb(a) ->> 'attgenerated', '') = '',
  ARRAY(
    SELECT e.enumlabel::text || ' ' || e.xmin::text FROM pg_catalog.pg_enum e
    WHERE e.enumtypid IN (t.oid, t.typelem, b.oid, b.typelem) ORDER BY e.oid)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""


def read_version(run: Run, oid: int, place: TableName, publication: str) -> TableVersion:
    """The version of a table.

    :param oid: of the table.
    :param publication: it may leave out columns.
    """
    found, columns = run(_TABLE, (publication, *place, oid)), run(_COLUMNS, (oid,))
    ((storage, last_number, published),) = found
    logged = [name for name, *_, is_logged, _ in columns if is_logged]
    return TableVersion(
        "" if storage == "0" else storage,
        int(last_number),
        {
            name: ColumnVersion(int(number), changed_by, tuple(labels), bool(fills_older))
            for name, number, changed_by, fills_older, _, labels in columns
        },
        tuple(name for name in logged if published is None or name in published),
    )


__all__ = ["read_version"]
