"""Comments of a keyed table: on its view, and on the base table that other engines read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_base, load_keyed
from dbt_arctic.store.view_switch import show_again


def describe(context: Context, name: Name, comment: str | None, columns: Mapping[str, str]) -> None:
    """Write the comments that changed; no statement where nothing did.

    The base first: a run that is cut off is finished by the next, which looks at both.

    :param comment: ``None`` leaves the table's.
    :param columns: comments by column; other columns keep theirs.
    """
    try:
        _describe(context, name, comment, columns)
    except ConcurrentRun:
        # Another run has replaced the view at the same moment, for other columns perhaps: now with these.
        _describe(context, name, comment, columns)


def _describe(context: Context, name: Name, comment: str | None, columns: Mapping[str, str]) -> None:
    table = load_keyed(context.catalog, name)
    base = load_base(context.catalog, table)
    stored = {column.name: column.comment for column in base.columns}
    stale = {column: text for column, text in columns.items() if stored.get(column, text) != text}
    if stale:
        context.run("comment_columns", create.comment_columns(table.base, stale), table)
    if comment is not None and base.properties.get("comment", "") != comment:
        context.run("comment_table", create.comment_table(table.base, comment), table)
    view = context.catalog.load_view(name.schema, name.identifier)
    shown = view.comment if view else ""
    wanted = shown if comment is None else comment
    described = replace(
        table,
        columns=tuple(
            replace(column, comment=columns.get(column.name, column.comment)) for column in table.columns
        ),
    )
    if described != table or wanted != shown:
        # Replacing a view keeps the comment of the old one, unless the new one has another.
        cleared = {} if wanted else {"comment": ""}
        show_again(context, described, before=table, where=name.dotted, comment=wanted, properties=cleared)
