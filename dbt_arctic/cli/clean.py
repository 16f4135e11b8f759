"""``dbt-arctic clean``: shows what is left over in a target's schemas, asks, and removes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.table import Table

from dbt_arctic.cli.options import (
    duration_ms,
    json_option,
    print_json,
    project_options,
    schema_options,
    wide_console,
)
from dbt_arctic.maintenance.clean import clean as remove
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import Kept, Removal, Retention, find_leftovers

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator
    from dbt_arctic.adapter.project import Target


@click.command()
@schema_options
@click.option("--older-than", default="24h", callback=duration_ms, help="What is younger stays [24h].")
@click.option(
    "--keep-previous",
    default="7d",
    callback=duration_ms,
    help="How long the generation before a full refresh stays [7d].",
)
@click.option("--dropped", is_flag=True, help="Also the side tables of keyed tables whose view is gone.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@project_options
@click.pass_context
def clean(
    context: click.Context,
    target: Target,
    schemas: tuple[str, ...],
    everything: bool,
    older_than: int,
    keep_previous: int,
    dropped: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove what runs that were cut off left behind: generations, branches, staging tables."""
    from dbt_arctic.adapter.operator import operating

    retention = Retention(older_than, keep_previous, dropped)
    with operating(target, "clean") as operator:
        found = _find(operator, target.credentials.database, operator.schemas(schemas, everything), retention)
        if as_json:
            _print_as_json(found)
        else:
            _show(found)
        if dry_run or not found.removals:
            return
        if not yes and not click.confirm(f"Remove {_counted(len(found.removals))}?", err=as_json):
            context.exit(1)
        gone = remove(
            operator.edge,
            target.credentials.database,
            found.removals,
            retention,
            lambda removal, done: click.echo(
                f"{'removed' if done else 'left   '}  {removal.what}", err=as_json
            ),
        )
    click.echo(f"{_counted(gone)} removed.", err=as_json)


@dataclass(frozen=True)
class _Found:
    removals: list[Removal]
    kept: list[Kept]


def _find(operator: Operator, catalog: str, schemas: list[str], retention: Retention) -> _Found:
    found = _Found([], [])
    for schema in schemas:
        inventory = take_inventory(operator.catalog, catalog, schema)
        leftovers = find_leftovers(inventory, operator.edge.now_ms(), retention)
        found.removals.extend(leftovers.removals)
        found.kept.extend(leftovers.kept)
    return found


def _show(found: _Found) -> None:
    if not found.removals and not found.kept:
        click.echo("Nothing is left over.")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("", "kind", "what", "why"):
        table.add_column(heading, overflow="fold")
    for removal in found.removals:
        table.add_row("goes", removal.kind, removal.what, removal.why)
    for kept in found.kept:
        table.add_row("stays", kept.kind, kept.target.dotted, kept.why)
    wide_console().print(table)


def _print_as_json(found: _Found) -> None:
    print_json(
        {
            "removals": [
                {"kind": one.kind, "target": one.target.dotted, "branch": one.branch, "why": one.why}
                for one in found.removals
            ],
            "kept": [{"kind": one.kind, "target": one.target.dotted, "why": one.why} for one in found.kept],
        }
    )


def _counted(number: int) -> str:
    return "1 thing" if number == 1 else f"{number} things"
