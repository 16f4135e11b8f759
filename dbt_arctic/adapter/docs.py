"""Compares the documentation of a model with the comments in the catalog.

Pure functions that write nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.catalog.api import CatalogColumn


@dataclass(frozen=True)
class DocsChange:
    """The difference between a project's documentation and a relation's comments.

    :param comment: the new comment of the relation; ``None`` keeps it.
    :param columns: new comments by column, in the spelling of the relation.
    :param missing: documented columns that the relation does not have.
    """

    comment: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def column_dict(self) -> dict[str, dict[str, str]]:
        """The column comments in the form of dbt's macros."""
        return {name: {"description": text} for name, text in self.columns.items()}


def documented(
    columns: Mapping[str, Mapping[str, Any]], existing: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Descriptions by the names of a relation's columns, and the names that it does not have.

    Names are case-insensitive, except those that the project quotes.

    >>> documented({"ID": {"description": "the key"}, "Gone": {"quote": True}}, ["id", "gone"])
    ({'id': 'the key'}, ('Gone',))
    """
    by_lower = {name.lower(): name for name in existing}
    found: dict[str, str] = {}
    missing = []
    for name, column in columns.items():
        actual = by_lower.get(name.lower())
        if actual is None or (column.get("quote") and name not in existing):
            missing.append(name)
        else:
            found[name if name in existing else actual] = str(column.get("description") or "")
    return found, tuple(missing)


def changed_docs(
    model: Mapping[str, Any],
    comment: str,
    columns: Sequence[CatalogColumn],
    for_relation: bool,
    for_columns: bool,
) -> DocsChange:
    """The comments that must be written to match the documentation.

    A removed description is removed from the catalog, too. Columns that the project does not mention are
    unchanged.
    """
    description = str(model.get("description") or "")
    new_comment = description if for_relation and description != comment else None
    if not for_columns:
        return DocsChange(new_comment)
    found, missing = documented(model.get("columns") or {}, [column.name for column in columns])
    now = {column.name: column.comment for column in columns}
    changed = {name: text for name, text in found.items() if now[name] != text}
    return DocsChange(new_comment, changed, missing)


def persists(model: Mapping[str, Any], what: str) -> bool:
    """Whether the config of a model requests comments on its ``relation`` or its ``columns``."""
    return bool((model["config"].get("persist_docs") or {}).get(what))
