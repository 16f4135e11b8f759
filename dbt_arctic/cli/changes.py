"""``dbt-arctic changes``: what changed in a keyed table between two versions, by key, old and new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import print_grid, print_json, shown_value, terminal_width
from dbt_arctic.cli.tables import Kind
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.read import Images
from dbt_arctic.maintenance.generations import generation_of
from dbt_arctic.maintenance.versions import resolve
from dbt_arctic.refresh.pull import plan_changes_of
from dbt_arctic.store.state import load_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target

_ACTION = "_action"


@click.command(short_help="Show what changed in a table between two versions.")
@click.argument("table")
@click.option("--from", "start", required=True, metavar="VERSION", help="A version, savepoint or time (UTC).")
@click.option("--to", "end", default="current", show_default=True, metavar="VERSION", help="As for --from.")
@click.option(
    "--images",
    type=click.Choice(["after", "both"]),
    default="both",
    show_default=True,
    help="both: the old row of each changed or deleted key, too. after is cheaper to read.",
)
@click.option("--limit", type=COUNT, default=100, show_default=True, help="Number of keys; 0 for all.")
@click.option("--sql", "only_sql", is_flag=True, help="Print the query instead of running it.")
@json_option
@project_options
def changes(
    target: Target,
    table: str,
    start: str,
    end: str,
    images: Images,
    limit: int,
    only_sql: bool,
    as_json: bool,
) -> None:
    """Show what changed in a keyed table between two versions, sorted by key.

    A changed value is shown as old → new. With --json, each key has its old row, in which _action is -U, and
    a row with U if it is new or changed, or D if it is deleted.
    """
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "changes") as session:
        name = session.name(table)
        keyed = load_keyed(session.catalog, name)
        first, last = (resolve(session.catalog, keyed, text, name.dotted) for text in (start, end))
        if first.generation == last.generation:
            keyed = generation_of(session.catalog, keyed, first.generation)
        sql = plan_changes_of(session.catalog, keyed, first, last, images, name.dotted)
        if only_sql:
            click.echo(sql)
            return
        order = ", ".join(quote(column) for column in (*keyed.key, _ACTION))
        # Rows of one more key than shown, to find out whether there are more.
        most = f"\nLIMIT {2 * (limit + 1)}" if limit > 0 else ""
        query = f"SELECT *\nFROM (\n{sql}\n)\nORDER BY {order}{most}"
        columns, rows = session.read(query, as_cells=not as_json)
    found = changes_by_key(columns, rows, keyed.key)
    shown = found[: limit or None]
    if as_json:
        print_json([row for change in shown for row in (change.old, change.new) if row is not None])
    else:
        _print(columns, keyed.key, shown, {} if images == "both" else {"new": "new or changed"})
    if len(shown) < len(found):
        click.echo(f"There are more than {counted(limit, 'changed key')}; --limit 0 shows all.", err=True)


@dataclass(frozen=True)
class Change:
    """The rows of one key, by column.

    The old one (``-U``), if there is one and it was requested, and that of ``U`` or ``D``.
    """

    old: dict[str, Any] | None
    new: dict[str, Any]

    @property
    def kind(self) -> str:
        """A word for what happened to the key."""
        if self.new[_ACTION] == "D":
            return "deleted"
        return "new" if self.old is None else "changed"

    def shown(self, column: str) -> str:
        """A value, and the value before if it differs."""
        now = self.new[column]
        # Unlike `==`, the text distinguishes the two zeros of a float, and NaN has one.
        if self.kind != "changed" or self.old is None or repr(self.old[column]) == repr(now):
            return shown_value(now)
        return f"{shown_value(self.old[column])} → {shown_value(now)}"


def changes_by_key(columns: Sequence[str], rows: Sequence[Sequence[Any]], key: Sequence[str]) -> list[Change]:
    """The rows of a change query, which are sorted by key and ``_action``, as one change for each key.

    >>> rows = [(1, 10, "-U"), (1, 11, "U"), (2, 20, "-U"), (2, 20, "D"), (3, 30, "U")]
    >>> [(one.kind, one.shown("n")) for one in changes_by_key(["id", "n", "_action"], rows, ["id"])]
    [('changed', '10 → 11'), ('deleted', '20'), ('new', '30')]
    >>> rows = [(float("nan"), -0.0, "-U"), (float("nan"), 0.0, "U")]
    >>> [(one.kind, one.shown("n")) for one in changes_by_key(["id", "n", "_action"], rows, ["id"])]
    [('changed', '-0.0 → 0.0')]
    """
    names = {column.lower(): column for column in columns}
    found: list[Change] = []
    old: dict[str, Any] | None = None
    for values in rows:
        row = dict(zip(columns, values, strict=True))
        if row[_ACTION] == "-U":
            old = row
            continue
        same = old is not None and all(
            _is_same(old[names[one.lower()]], row[names[one.lower()]]) for one in key
        )
        found.append(Change(old if same else None, row))
        old = None
    return found


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values of a key are equal in Spark, where NaN equals itself."""
    return bool(one == other) or repr(one) == repr(other)


def _print(
    columns: Sequence[str], key: Sequence[str], found: Sequence[Change], words: Mapping[str, str]
) -> None:
    names = {column.lower(): column for column in columns}
    ordered = [names[column.lower()] for column in key]
    ordered += [column for column in columns if column not in (*ordered, _ACTION)]
    headings: list[tuple[str, Kind]] = [("change", "name"), *((column, "value") for column in ordered)]
    print_grid(headings, ([words.get(one.kind, one.kind), *map(one.shown, ordered)] for one in found))
    click.echo(counted(len(found), "changed key"), err=terminal_width() is None)
