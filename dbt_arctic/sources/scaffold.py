"""The files of a dbt project that load drafted tables: sources, models and tests. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_arctic.keyed.names import quote
from dbt_arctic.sources.infer_tables import TableDraft, table_name

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


def source_name(folder: str) -> str:
    """The name of the source of a folder."""
    return table_name(folder) or "files"


def properties(
    source: str, tables: Sequence[TableDraft], folders: Mapping[str, str], prefix: str = ""
) -> dict[str, Any]:
    """The content of the YAML file: the source with its tables, and a model with tests for each of them.

    :param folders: by table, the folder as the file shall name it.
    :param prefix: of the models' names.
    """
    return {
        "sources": [
            {"name": source, "tables": [_source_table(table, folders[table.name]) for table in tables]}
        ],
        "models": [key_properties(prefix + table.name, [table.key] if table.key else []) for table in tables],
    }


def _source_table(table: TableDraft, folder: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"from": "files", "path": folder, "format": table.format}
    if table.pattern:
        settings["pattern"] = table.pattern
    if table.options:
        settings["options"] = dict(table.options)
    settings["columns"] = dict(table.columns)
    return {"name": table.name, "config": {"meta": {"arctic": settings}}}


def model_sql(source: str, table: TableDraft) -> str:
    """The SQL of the model that pulls a table: keyed if the table has a key, otherwise append-only."""
    settings = ["materialized='incremental'"]
    if table.key:
        order = [f"'{jinja_text(table.changed_at)}'"] if table.changed_at else []
        latest = [*order, "'_source_modified'"]
        settings.append(f"unique_key='{jinja_text(table.key)}'")
        settings.append(f"deduplicate_by={latest[0] if len(latest) == 1 else '[' + ', '.join(latest) + ']'}")
    else:
        settings.append("incremental_strategy='append'")
    columns = ",\n".join(
        f"    {column_sql(name)}" for name in (*table.columns, "_source_file", "_source_modified")
    )
    return (
        f"{{{{ config({', '.join(settings)}) }}}}\n\nselect\n{columns}\n"
        f"from {{{{ incremental_pull(source('{jinja_text(source)}', '{jinja_text(table.name)}')) }}}}\n"
    )


def key_properties(model: str, key: Sequence[str]) -> dict[str, Any]:
    """The entry of a model in the YAML file, with tests of its key."""
    tests = ["unique", "not_null"] if len(key) == 1 else ["not_null"]
    columns = [{"name": column, "data_tests": list(tests)} for column in key]
    return {"name": model, **({"columns": columns} if columns else {})}


def key_setting(key: Sequence[str]) -> str:
    """The value of ``unique_key`` in a model's config.

    >>> key_setting(["id"]), key_setting(["a", "it's"])
    ("'id'", "['a', 'it\\\\'s']")
    """
    parts = [f"'{jinja_text(column)}'" for column in key]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def column_sql(name: str) -> str:
    """A column of a select list, in quotes if it needs them."""
    return name if _PLAIN.fullmatch(name) else quote(name)


def jinja_text(text: str) -> str:
    """The content of a string literal in Jinja, between single quotes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


__all__ = [
    "column_sql",
    "jinja_text",
    "key_properties",
    "key_setting",
    "model_sql",
    "properties",
    "source_name",
]
