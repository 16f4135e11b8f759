"""``dbt-arctic savepoint``, ``rollback`` and ``restore``: keep or restore a version, undo a full refresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.options import project_options
from dbt_arctic.maintenance import restore as restoring
from dbt_arctic.maintenance import savepoint as savepoints
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.versions import list_savepoints
from dbt_arctic.store.row_counts import counted
from dbt_arctic.store.state import load_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command()
@click.argument("table")
@click.argument("name", required=False)
@click.option(
    "--at", "version", default="current", show_default=True, metavar="VERSION", help="The version to keep."
)
@click.option("--drop", is_flag=True, help="Drop the savepoint.")
@project_options
def savepoint(target: Target, table: str, name: str | None, version: str, drop: bool) -> None:
    """Keep a version of a keyed table under a name; without NAME, list the savepoints.

    Neither snapshot expiry nor `clean` removes a savepoint.
    """
    from dbt_arctic.adapter.operator import operating

    if name is None and drop:
        raise click.UsageError("--drop needs the name of the savepoint")
    with operating(target, "savepoint") as operator:
        of = operator.name(table)
        if name is None:
            known = list_savepoints(operator.catalog, load_keyed(operator.catalog, of))
            for savepoint_name, kept in sorted(known.items()):
                click.echo(f"{savepoint_name}  {kept}")
            if not known:
                click.echo(f"{of} has no savepoints.")
        elif drop:
            savepoints.drop_savepoint(operator.context, of, name)
            click.echo(f"{of}: dropped savepoint {name}.")
        else:
            made = savepoints.make_savepoint(operator.context, of, name, version)
            click.echo(f"{of}: savepoint {name} keeps version {made}.")


@click.command()
@click.argument("table")
@click.argument("version")
@project_options
def rollback(target: Target, table: str, version: str) -> None:
    """Restore the rows of a keyed table as of VERSION: a version, a savepoint, or a time (UTC).

    This is a new commit. Models that pull from the table receive its changes, and it can be rolled back too.
    """
    from dbt_arctic.adapter.operator import operating

    with operating(target, "rollback") as operator:
        done = roll_back(operator.context, operator.name(table), version)
    click.echo(f"{done.table} is rolled back to {done.to} ({counted('rows written:', done.rows)}).")
    click.echo(f"To undo this: dbt-arctic rollback {table} {done.before}")


@click.command()
@click.argument("table")
@click.option("--previous", is_flag=True, help="Undo the last full refresh: use the previous generation.")
@click.option("--generation", type=int, help="Use this generation.")
@project_options
def restore(target: Target, table: str, previous: bool, generation: int | None) -> None:
    """Restore a keyed table whose view was dropped, replaced or damaged; or undo a full refresh."""
    from dbt_arctic.adapter.operator import operating

    if previous and generation is not None:
        raise click.UsageError("give --previous or --generation, not both")
    with operating(target, "restore") as operator:
        name = operator.name(table)
        if previous:
            shown = restoring.undo_full_refresh(operator.context, name)
        else:
            shown = restoring.restore(operator.context, name, generation)
    click.echo(f"{shown.name} now uses generation {shown.generation.number}.")
