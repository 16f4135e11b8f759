"""Comments of a keyed table: on its view, and on the base table that other engines read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context
from dbt_arctic.store.publish_view import replace_view
from dbt_arctic.store.state import load_base, load_keyed


def describe(context: Context, name: Name, comment: str | None, columns: Mapping[str, str]) -> None:
    """Write the comments that have changed; runs no statement if none has.

    The base table comes first: the next run compares both and completes an interrupted update.

    :param comment: ``None`` keeps the comment of the table.
    :param columns: comments by column; other columns keep theirs.
    """
    try:
        _describe(context, name, comment, columns)
    except ConcurrentRun:
        # Another run has replaced the view at the same time, possibly with other columns. Try again with
        # these.
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
    view = context.catalog.of(name).load_view(name.schema, name.identifier)
    shown = view.comment if view else ""
    wanted = shown if comment is None else comment
    described = replace(
        table,
        columns=tuple(
            replace(column, comment=columns.get(column.name, column.comment)) for column in table.columns
        ),
    )
    if described != table or wanted != shown:
        # A replaced view keeps its old comment unless the new one has a different comment.
        cleared = {} if wanted else {"comment": ""}
        replace_view(context, described, before=table, where=name.dotted, comment=wanted, properties=cleared)
