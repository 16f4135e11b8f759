"""``dbt-arctic adopt``: an existing Iceberg table as a keyed one, in its own files, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import asking_options, json_option, project_options
from dbt_arctic.cli.output import print_json
from dbt_arctic.cli.progress import progress, watched
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance import adopt as adopting
from dbt_arctic.maintenance.adopt import Adoption
from dbt_arctic.maintenance.release import release

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator
    from dbt_arctic.adapter.project import Target


@click.command()
@click.argument("table")
@click.option(
    "--key", "keys", multiple=True, metavar="COLUMN", help="A column of the key; in the key's order."
)
@click.option("--undo", is_flag=True, help="Make a keyed table a plain one again.")
@asking_options
@json_option
@project_options
@click.pass_context
def adopt(
    context: click.Context,
    target: Target,
    table: str,
    keys: tuple[str, ...],
    undo: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Make an existing Iceberg table a keyed one. No row is copied, and the name stays.

    Older versions of the table stay readable. The model that writes it goes on as an incremental model
    with this unique_key, without a full refresh.
    """
    from dbt_arctic.adapter.operator import operating

    if undo and (keys or dry_run):
        raise click.UsageError("--undo takes neither --key nor --dry-run")
    with operating(target, "adopt") as operator:
        name = operator.name(table)
        if undo:
            question = f"Make {name} a plain table, and drop its change table and the generation before?"
            if not yes and not click.confirm(question, err=as_json):
                context.exit(1)
            release(operator.context, name)
            _tell(as_json, {"table": name.dotted, "keyed": False}, f"{name} is a plain table.")
            return
        begun = adopting.find_unfinished(operator.catalog, name) if dry_run else None
        if begun is not None:
            told = {"table": name.dotted, "keyed": False, "key": list(begun.key)}
            _tell(
                as_json,
                told,
                f"The adoption of {name} was cut off; without --dry-run it is finished.",
            )
            return
        shown = adopting.finish_adoption(operator.context, name)
        if shown is not None:
            _tell(
                as_json,
                {"table": name.dotted, "keyed": True, "key": list(shown.key)},
                f"{name} was being adopted when that was cut off; it is a keyed table now.",
            )
            return
        if not keys:
            raise click.UsageError("give each column of the key: --key COLUMN")
        _adopt(context, operator, name, keys, dry_run, yes, as_json)


def _adopt(
    context: click.Context,
    operator: Operator,
    name: Name,
    keys: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    with progress(f"are the keys of {name} unique?", quiet=as_json):
        plan = adopting.plan_adoption(operator.context, name, keys)
    if not as_json:
        _show(plan)
    if dry_run:
        if as_json:
            print_json(_as_json(plan, False))
        return
    if not yes and not click.confirm(f"Adopt {name}?", err=as_json):
        context.exit(1)
    with progress(f"adopt {name}", quiet=as_json) as bar:
        adopting.adopt(watched(operator.context, bar), plan)
    _tell(
        as_json,
        _as_json(plan, True),
        f"{name} is a keyed table with the key {', '.join(plan.table.key)}.\nIts model: {_config(plan)}",
    )


def _config(plan: Adoption) -> str:
    """What the model's config says from now on; the default strategy is the one of keyed tables."""
    layout = plan.table.layout
    settings: dict[str, Any] = {"materialized": "incremental", "unique_key": list(plan.table.key)}
    if layout.partition_by:
        settings["partition_by"] = list(layout.partition_by)
    if layout.buckets:
        settings["buckets"] = layout.buckets
    return "config(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ")"


def _tell(as_json: bool, value: dict[str, Any], text: str) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def _show(plan: Adoption) -> None:
    table = plan.table
    click.echo(f"{table.name}: no key is there twice, and none is NULL.")
    lines = [
        ("key", ", ".join(table.key)),
        ("base", f"{table.base.identifier}, the table itself under another name"),
        ("change table", table.change.identifier),
        ("laid out by", ", ".join(plan.state.partitioning or ()) or "nothing"),
    ]
    if plan.upgrades:
        lines.append(("format", "version 3 from now on: older programs can no longer read it"))
    if not plan.joins_in_place:
        lines.append(("joins", "shuffle, since it has no buckets of its key; a full refresh makes them"))
    for label, text in lines:
        click.echo(f"  {label:<13} {text}")


def _as_json(plan: Adoption, done: bool) -> dict[str, Any]:
    return {
        "table": plan.table.name.dotted,
        "keyed": done,
        "key": list(plan.table.key),
        "base": plan.table.base.dotted,
        "change": plan.table.change.dotted,
        "partitioned_by": list(plan.state.partitioning or ()),
        "upgrades_format": plan.upgrades,
        "joins_in_place": plan.joins_in_place,
    }
