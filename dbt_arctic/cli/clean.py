"""``dbt-arctic clean``: lists leftovers in a target's schemas, asks, and removes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.options import (
    catalog_options,
    chosen_schemas,
    confirmation_options,
    duration_ms,
    json_option,
    require_confirmation,
    schema_options,
)
from dbt_arctic.cli.output import print_json, print_table
from dbt_arctic.cli.progress import progress
from dbt_arctic.human_readable import counted
from dbt_arctic.maintenance.clean import remove_leftovers
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import KeptLeftover, Removal, Retention, find_leftovers
from dbt_arctic.maintenance.orphans import DAY_MS, Orphans, Shared, find_orphans, remove_orphans
from dbt_arctic.store.other_catalogs import has_other_name

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command(short_help="Remove what interrupted runs left behind.")
@schema_options
@click.option(
    "--older-than",
    default="24h",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="Keep younger leftovers.",
)
@click.option(
    "--keep-previous",
    default="7d",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="How long to keep the generation before a full refresh.",
)
@click.option("--dropped", is_flag=True, help="Also remove side tables whose view no longer exists.")
@click.option("--files", is_flag=True, help="Also remove files that no version refers to. Starts Spark.")
@click.option(
    "--files-older-than",
    default="3d",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="Keep younger files; at least 24h.",
)
@confirmation_options
@json_option
@catalog_options
def clean(
    target: Target,
    schemas: tuple[str, ...],
    everything: bool,
    older_than: int,
    keep_previous: int,
    dropped: bool,
    files: bool,
    files_older_than: int,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove what interrupted runs left behind: generations, branches, staging tables, files."""
    from dbt_arctic.adapter.target_session import target_session

    if files_older_than < DAY_MS:
        raise click.BadParameter(
            "at least 24h: a younger file may belong to a commit in progress", param_hint="--files-older-than"
        )
    retention = Retention(older_than, keep_previous, dropped)
    with target_session(target, "clean") as session:
        chosen = chosen_schemas(session, schemas, everything)
        found = _find(session, target.catalog, chosen, retention)
        if files:
            orphans, shared = find_orphans(session.context, target.catalog, chosen, files_older_than)
            found.orphans.extend(orphans)
            found.shared.extend(shared)
        if as_json:
            _print_as_json(found)
        else:
            _show(found)
        if dry_run or not found.count:
            return
        require_confirmation(f"Remove {counted(found.count, 'item')}?", yes, as_json)
        with progress("clean", found.count, as_json) as bar:

            def report(removal: Removal, done: bool) -> None:
                bar.echo(f"{'removed' if done else 'kept   '}  {removal.what}", err=as_json)
                bar.advance()

            count = remove_leftovers(session.context, target.catalog, found.removals, retention, report)
            for one in found.orphans:
                bar.now(one.table.dotted, counted(len(one.files), "file"))
                remove_orphans(session.context, one, files_older_than)
                bar.echo(f"removed  {_described(one)}", err=as_json)
                bar.advance()
                count += 1
    click.echo(f"{counted(count, 'item')} removed.", err=as_json)


@dataclass(frozen=True)
class _SchemaLeftovers:
    removals: list[Removal]
    kept: list[KeptLeftover]
    orphans: list[Orphans] = field(default_factory=list)
    shared: list[Shared] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.removals) + len(self.orphans)


def _find(session: TargetSession, catalog: str, schemas: list[str], retention: Retention) -> _SchemaLeftovers:
    found = _SchemaLeftovers([], [])
    for schema in schemas:
        inventory = take_inventory(session.catalog, catalog, schema)
        leftovers = find_leftovers(inventory, session.context.now_ms(), retention)
        theirs = {
            side
            for identifier, table in inventory.keyed.items()
            if has_other_name(session.catalog, table, inventory.views.get(identifier))
            for side in table.side_tables
        }
        found.removals.extend(one for one in leftovers.removals if one.target not in theirs)
        found.kept.extend(leftovers.kept)
    return found


def _show(found: _SchemaLeftovers) -> None:
    if not found.count and not found.kept and not found.shared:
        click.echo("There are no leftovers.")
        return
    rows = [
        *(("remove", removal.kind, removal.what, removal.why) for removal in found.removals),
        *(("keep", kept.kind, kept.target.dotted, kept.why) for kept in found.kept),
        *(("remove", "files", _described(orphans), "no version refers to them") for orphans in found.orphans),
        *(("keep", "files", f"the folder of {shared.table}", shared.why) for shared in found.shared),
    ]
    print_table({"action": "text", "kind": "text", "what": "text", "why": "text"}, rows)


def _print_as_json(found: _SchemaLeftovers) -> None:
    print_json(
        {
            "removals": [
                {"kind": one.kind, "target": one.target.dotted, "branch": one.branch, "why": one.why}
                for one in found.removals
            ],
            "kept": [{"kind": one.kind, "target": one.target.dotted, "why": one.why} for one in found.kept],
            "files": [{"table": one.table.dotted, "files": list(one.files)} for one in found.orphans],
            "not_looked_into": [{"table": one.table.dotted, "why": one.why} for one in found.shared],
        }
    )


def _described(orphans: Orphans) -> str:
    return f"{counted(len(orphans.files), 'file')} in the folder of {orphans.table}"
