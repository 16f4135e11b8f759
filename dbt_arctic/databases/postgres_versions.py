"""Reads from PostgreSQL's catalog what distinguishes two states of a table's columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.client import Run
from dbt_arctic.databases.table_versions import ColumnVersion, TableVersion

# A partitioned table has no storage of its own. Before PostgreSQL 15, all columns are published but generated
# ones, which PostgreSQL 11 does not have. Since PostgreSQL 18, the list has those that are published, and
# before it may have others.
_TABLES = """
SELECT c.oid, c.relfilenode::text, c.relnatts, to_jsonb(p) -> 'attnames'
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_publication_tables p
  ON p.pubname = %s AND p.schemaname = n.nspname AND p.tablename = c.relname
WHERE c.oid = ANY (%s::oid[])
"""
# The catalog keeps the transaction of an entry that is frozen. The labels of an enum are also those of its
# arrays, of domains over either, and of arrays of domains. One may have had another name in between. A column
# of another type may have the same bytes, which are shown in another way: cidr and inet, xml and text.
_COLUMNS = """
SELECT a.attrelid, a.attname, a.attnum, a.xmin::text, a.atthasmissing,
  coalesce(to_jsonb(a) ->> 'attgenerated', '') = ''
    OR current_setting('server_version_num')::int >= 180000,
  ARRAY(
    SELECT e.enumlabel::text || ' ' || e.xmin::text FROM pg_catalog.pg_enum e
    WHERE e.enumtypid IN (t.oid, t.typelem, b.oid, b.typelem, d.typbasetype) ORDER BY e.oid),
  CASE WHEN coalesce(b.oid, t.oid) IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
    ELSE coalesce(b.oid, t.oid)::text END
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_type d ON d.oid = t.typelem
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""


def read_versions(
    run: Run, tables: Mapping[int, TableName], publication: str
) -> dict[TableName, TableVersion]:
    """The versions of tables. One that was dropped meanwhile is left out.

    :param tables: by oid.
    :param publication: it may leave out columns.
    """
    columns: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    found = run(_TABLES, (publication, list(tables)))
    for oid, *column in run(_COLUMNS, (list(tables),)):
        columns[int(oid)].append(tuple(column))
    return {
        tables[int(oid)]: _version(storage, last_number, published, columns[int(oid)])
        for oid, storage, last_number, published in found
    }


def _version(
    storage: str, last_number: int, published: list[str] | None, columns: list[tuple[Any, ...]]
) -> TableVersion:
    logged = [name for name, *_, is_logged, _, _ in columns if is_logged]
    return TableVersion(
        "" if storage == "0" else storage,
        int(last_number),
        {
            name: ColumnVersion(int(number), changed_by, tuple(labels), bool(fills_older), shown_as)
            for name, number, changed_by, fills_older, _, labels, shown_as in columns
        },
        tuple(name for name in logged if published is None or name in published),
    )


__all__ = ["read_versions"]
