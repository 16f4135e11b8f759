"""The files of a dbt project that load tables of a database: a source, models and tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_arctic.sources.draft_database_tables import DatabaseTableDraft
from dbt_arctic.sources.scaffold import column_sql, jinja_text, key_properties, key_setting


def database_properties(
    source: str, url: str, tables: Sequence[DatabaseTableDraft], prefix: str, compares_keys: bool
) -> dict[str, Any]:
    """The content of the YAML file: the source with its tables, and a model with tests for each of them.

    :param url: of the database; empty if it is in the profile.
    :param tables: each has a key.
    :param prefix: of the models' names.
    :param compares_keys: whether keys that are no longer in a table are deleted.
    """
    settings = {"from": "jdbc", **({"url": url} if url else {})}
    declared = [_source_table(table, compares_keys) for table in tables]
    return {
        "sources": [{"name": source, "config": {"meta": {"arctic": settings}}, "tables": declared}],
        "models": [key_properties(prefix + table.name, table.key) for table in tables],
    }


def _source_table(table: DatabaseTableDraft, compares_keys: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {"table": table.table}
    if table.cursor:
        settings["cursor"] = table.cursor
    if table.has_null_cursor:
        settings["null_cursor"] = "read"
    if compares_keys:
        settings["deletes"] = "compare"
    if table.left_out:
        settings["columns"] = list(table.columns)
    return {"name": table.name, "config": {"meta": {"arctic": settings}}}


def database_model_sql(source: str, table: DatabaseTableDraft, compares_keys: bool) -> str:
    """The SQL of the model that pulls a table."""
    added = ("_action",) if compares_keys else ()
    columns = ",\n".join(f"    {column_sql(name)}" for name in (*table.columns, *added))
    config = f"materialized='incremental', unique_key={key_setting(table.key)}"
    return (
        f"{{{{ config({config}) }}}}\n\nselect\n{columns}\n"
        f"from {{{{ incremental_pull(source('{jinja_text(source)}', '{jinja_text(table.name)}')) }}}}\n"
    )


__all__ = ["database_model_sql", "database_properties"]
