"""``dbt-arctic ingest init SOURCE --jdbc``: a source and models for the tables of a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.cli.output import print_table
from dbt_arctic.cli.scaffold_writer import ScaffoldWriter
from dbt_arctic.databases.address import kind_of_url
from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.replication_slot import capture_statements
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.database_scaffold import Deletes, database_model_sql, database_properties
from dbt_arctic.sources.draft_database_tables import (
    DatabaseTableDraft,
    choose_tables,
    draft_database_table,
    draft_names,
)


def init_database(
    files: ScaffoldWriter,
    source: str,
    url: str,
    logins: Mapping[str, Mapping[str, str]],
    patterns: Sequence[str],
    excluded: Sequence[str],
    deletes: Deletes,
    slot: str = "",
) -> None:
    """Write a source and models for tables of a database that have a primary key.

    :param url: of the database; empty for that of the profile.
    :param logins: of the profile, by name of a source.
    :param patterns: globs for the tables; empty for all tables.
    :param slot: the replication slot from which the changes are captured, for ``from_log`` of PostgreSQL.
    :raises ConfigError: the database is not known, or no table has a primary key.
    :raises UnknownRelation: no table has such a name.
    :raises ServerUnreachable: the database does not answer, or refuses.
    """
    from dbt_arctic.adapter.database_sources import read_schema

    if not url and not logins.get(source, {}).get("url"):
        raise ConfigError(
            f"the profile has no database {source}",
            where="profiles.yml, jdbc",
            why="--jdbc without a URL takes that of the profile",
            fix=f"write --jdbc postgresql://user@host:5432/database, or add jdbc: {{{source}: {{url: ...}}}}",
        )
    kind = kind_of_url(url or logins[source]["url"])
    if deletes == "from_log" and (kind == "postgresql") != bool(slot):
        raise ConfigError(
            f"the database of {source} is {kind}, which this option cannot follow",
            where="dbt-arctic ingest init",
            fix="use --slot NAME for PostgreSQL, and --follow for MariaDB",
        )
    settings = {"from": "jdbc", **({"url": url} if url else {})}
    where = f"the database of {source}"
    declared = {"name": f"{source}.tables", "settings": settings, "where": where}
    with read_schema(declared, logins) as schema:
        chosen = choose_tables(schema.tables(), patterns, excluded, where)
        drafts = [
            draft_database_table(
                name,
                listed,
                schema.describe(TableName(listed.schema, listed.name)),
                is_followed=deletes == "from_log",
            )
            for listed, name in draft_names(chosen).items()
        ]
    keyed = [draft for draft in drafts if draft.key]
    if not keyed:
        raise ConfigError(
            "none of these tables has a primary key",
            where=where,
            why=f"rows of {', '.join(draft.table for draft in drafts[:10])} cannot be distinguished",
            fix="write the source yourself, with a unique_key in its model: see docs/how-to/"
            "load-a-database-table.md",
        )
    written = files.write(
        source,
        database_properties(source, url, keyed, files.prefix, deletes, slot),
        {draft.name: database_model_sql(source, draft, deletes) for draft in keyed},
    )
    if not written:
        return
    _show(drafts, has_cursors=deletes != "from_log")
    if slot:
        statements = capture_statements(slot, [draft.table for draft in keyed])
        files.conclude(
            source,
            written,
            "Review the files. Changes are read from a replication slot. Create it in the database, once:\n"
            + "".join(f"    {one};\n" for one in statements)
            + "Then load the data:",
        )
        return
    if deletes == "from_log":
        files.conclude(
            source,
            written,
            "Review the files. Changes are read from the binary log, which needs binlog_format=ROW and "
            "binlog_row_metadata=FULL. Then load the data:",
        )
        return
    files.conclude(
        source,
        written,
        "The cursors were guessed from the names of columns. A cursor must grow with each change of a row: "
        "otherwise, changes are not found. Remove it where that is not certain. A run then compares a "
        "fingerprint of all rows, and reads all if it differs. Review the files, and then load the data:",
    )


def _show(drafts: Sequence[DatabaseTableDraft], has_cursors: bool) -> None:
    print_table(
        {
            **{"table": "name", "rows": "number", "columns": "number", "left out": "name", "key": "name"},
            **({"cursor": "name"} if has_cursors else {}),
            "model": "name",
        },
        [
            [
                draft.table,
                "unknown" if draft.rows is None else f"{draft.rows:,}",
                str(len(draft.columns)),
                ", ".join(draft.left_out),
                ", ".join(draft.key) or "none",
                *([draft.cursor if draft.key else ""] if has_cursors else []),
                draft.name if draft.key else "not written: it has no primary key",
            ]
            for draft in drafts
        ],
    )


__all__ = ["init_database"]
