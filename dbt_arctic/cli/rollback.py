"""``dbt-arctic savepoint``, ``rollback`` and ``restore``: keep or restore a version, undo a full refresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.history import shown_kind
from dbt_arctic.cli.options import json_option, project_options, require_confirmation, yes_option
from dbt_arctic.cli.output import print_json, print_table, shown_time
from dbt_arctic.cli.tables import Abbreviated, Cell
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance import timeline
from dbt_arctic.maintenance.restore import previous_generation, restore_table, undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import drop_savepoint, make_savepoint
from dbt_arctic.maintenance.short_versions import abbreviated, abbreviated_token
from dbt_arctic.maintenance.versions import list_savepoints, resolve
from dbt_arctic.store.row_counts import with_rows
from dbt_arctic.store.state import load_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Keep a version under a name, or list the names.")
@click.argument("table")
@click.argument("name", required=False)
@click.option(
    "--at", "version", default="current", show_default=True, metavar="VERSION", help="The version to keep."
)
@click.option("--drop", is_flag=True, help="Drop the savepoint.")
@json_option
@project_options
def savepoint(target: Target, table: str, name: str | None, version: str, drop: bool, as_json: bool) -> None:
    """Keep a version of a keyed table under a name; without NAME, list the savepoints.

    Neither snapshot expiry nor `clean` removes a savepoint.
    """
    from dbt_arctic.adapter.target_session import target_session

    if name is None and (drop or version != "current"):
        raise click.UsageError(f"{'--drop' if drop else '--at'} needs the name of the savepoint")
    with target_session(target, "savepoint") as session:
        of = session.name(table)
        if name is None:
            _list(list_savepoints(session.catalog, load_keyed(session.catalog, of)), of, as_json)
            return
        session.to_write(table)
        if drop:
            drop_savepoint(session.context, of, name)
            result, text = None, f"{of}: dropped savepoint {name}."
        else:
            made = make_savepoint(session.context, of, name, version)
            result, text = made.token, f"{of}: savepoint {name} keeps version {made}."
    if as_json:
        print_json({"table": of.dotted, "savepoint": name, "version": result})
    else:
        click.echo(text)


def _list(known: Mapping[str, Version], of: Name, as_json: bool) -> None:
    """Print savepoints with their versions."""
    if as_json:
        print_json([{"savepoint": one, "version": version.token} for one, version in sorted(known.items())])
    elif not known:
        click.echo(f"{of} has no savepoints.")
    else:
        rows: list[list[Cell]] = [
            [one, Abbreviated(version.token, abbreviated_token(version.token))]
            for one, version in sorted(known.items())
        ]
        print_table({"savepoint": "name", "version": "name"}, rows)


@click.command(short_help="Restore the rows of an earlier version.")
@click.argument("table")
@click.argument("version")
@yes_option
@json_option
@project_options
def rollback(target: Target, table: str, version: str, yes: bool, as_json: bool) -> None:
    """Restore the rows of a keyed table as of VERSION: a version, a savepoint, or a time (UTC).

    This is a new commit. Models that pull from the table receive its changes, and it can be rolled back too.
    """
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "rollback") as session:
        name = session.to_write(table)
        to = resolve(session.catalog, load_keyed(session.catalog, name), version, name.dotted)
        entries = timeline.history(session.catalog, name)
        require_confirmation(f"Roll back {name} to {_described(to, entries)}?", yes, as_json)
        done = roll_back(session.context, name, to.token)
    if as_json:
        tokens = {"to": done.to.token, "before": done.before.token}
        print_json({"table": done.table, **tokens, "rows": done.rows})
        return
    click.echo(f"{done.table} is rolled back to {done.to} ({with_rows('rows written:', done.rows)}).")
    click.echo(f"To undo this: dbt-arctic rollback {table} {done.before}")


def _described(to: Version, entries: list[timeline.Entry]) -> str:
    """A version with its commit and the number of later commits, for a question."""
    short = abbreviated([entry.version for entry in entries if entry.version])
    places = [place for place, entry in enumerate(entries) if entry.version == to]
    if not places:
        return abbreviated_token(to.token)
    entry = entries[places[-1]]
    named = f", savepoint {', '.join(entry.savepoints)}" if entry.savepoints else ""
    later, kind = counted(places[-1], "later commit"), shown_kind(entry, short)
    kind = kind.short if isinstance(kind, Abbreviated) else kind
    return f"{short[to]} ({kind} at {shown_time(entry.time_ms)}{named}; {later})"


@click.command(short_help="Restore a dropped table, or undo a full refresh.")
@click.argument("table")
@click.option("--previous", is_flag=True, help="Undo the last full refresh: use the previous generation.")
@click.option("--generation", type=int, help="Use this generation.")
@yes_option
@json_option
@project_options
def restore(
    target: Target, table: str, previous: bool, generation: int | None, yes: bool, as_json: bool
) -> None:
    """Restore a keyed table whose view was dropped, replaced or damaged; or undo a full refresh."""
    from dbt_arctic.adapter.target_session import target_session

    if previous and generation is not None:
        raise click.UsageError("give --previous or --generation, not both")
    with target_session(target, "restore") as session:
        name = session.to_write(table)
        which = "its newest complete generation" if generation is None else f"generation {generation}"
        if previous:  # an error comes before the question
            number = previous_generation(session.catalog, name)
            which = f"generation {number}, from before the last full refresh"
        question = f"Make {name} use {which}?"
        require_confirmation(question, yes, as_json)
        if previous:
            shown = undo_full_refresh(session.context, name)
        else:
            shown = restore_table(session.context, name, generation)
    if as_json:
        print_json({"table": shown.name.dotted, "generation": shown.generation.number})
    else:
        click.echo(f"{shown.name} now uses generation {shown.generation.number}.")
