"""The files of a dbt project that load tables of a database: a source, models and tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dbt_arctic.sources.change_settings import SEQUENCE
from dbt_arctic.sources.draft_database_tables import DatabaseTableDraft
from dbt_arctic.sources.scaffold import column_sql, jinja_text, key_properties, key_setting

Deletes = Literal["ignore", "compare", "from_log"]
"""How a model learns of deleted rows. ``from_log``: the tables are captured from the log of the database."""


def database_properties(
    source: str, url: str, tables: Sequence[DatabaseTableDraft], prefix: str, deletes: Deletes, slot: str = ""
) -> dict[str, Any]:
    """The content of the YAML file: the source with its tables, and a model with tests for each of them.

    :param url: of the database; empty if it is in the profile.
    :param tables: each has a key.
    :param prefix: of the models' names.
    :param slot: a replication slot, for ``from_log`` of PostgreSQL.
    """
    followed = "postgres" if slot else "mariadb"
    settings = {"from": followed if deletes == "from_log" else "jdbc", **({"url": url} if url else {})}
    if slot:
        settings["slot"] = slot
    declared = [_source_table(table, deletes) for table in tables]
    return {
        "sources": [{"name": source, "config": {"meta": {"arctic": settings}}, "tables": declared}],
        "models": [key_properties(prefix + table.name, table.key) for table in tables],
    }


def _source_table(table: DatabaseTableDraft, deletes: Deletes) -> dict[str, Any]:
    settings: dict[str, Any] = {"table": table.table}
    if table.cursor and deletes != "from_log":
        settings["cursor"] = table.cursor
        if table.has_null_cursor:
            settings["null_cursor"] = "read"
    if deletes == "compare":
        settings["deletes"] = "compare"
    if table.left_out:
        settings["columns"] = list(table.columns)
    return {"name": table.name, "config": {"meta": {"arctic": settings}}}


def database_model_sql(source: str, table: DatabaseTableDraft, deletes: Deletes) -> str:
    """The SQL of the model that pulls a table."""
    added = {"ignore": (), "compare": ("_action",), "from_log": (SEQUENCE, "_action")}[deletes]
    columns = ",\n".join(f"    {column_sql(name)}" for name in (*table.columns, *added))
    config = f"materialized='incremental', unique_key={key_setting(table.key)}"
    config += f", sequence_by='{SEQUENCE}'" if deletes == "from_log" else ""
    return (
        f"{{{{ config({config}) }}}}\n\nselect\n{columns}\n"
        f"from {{{{ incremental_pull(source('{jinja_text(source)}', '{jinja_text(table.name)}')) }}}}\n"
    )


__all__ = ["Deletes", "database_model_sql", "database_properties"]
