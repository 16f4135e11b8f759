"""``dbt-arctic adopt``: converts an existing Iceberg table to a keyed one without copying files, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import confirmation_options, json_option, project_options, require_confirmation
from dbt_arctic.cli.output import print_json
from dbt_arctic.cli.progress import progress, watched
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.adopt import (
    Adoption,
    adopt_table,
    find_unfinished,
    finish_adoption,
    plan_adoption,
)
from dbt_arctic.maintenance.undo_adoption import undo_adoption

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command()
@click.argument("table")
@click.option(
    "--key", "keys", multiple=True, metavar="COLUMN", help="A key column. Repeatable, in the key's order."
)
@click.option("--undo", is_flag=True, help="Convert a keyed table back to a plain table.")
@confirmation_options
@json_option
@project_options
def adopt(
    target: Target,
    table: str,
    keys: tuple[str, ...],
    undo: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Convert an existing Iceberg table to a keyed table. No rows are copied, and the name stays the same.

    Older versions of the table stay readable. The table's model continues as an incremental model
    with this unique_key, without a full refresh.
    """
    from dbt_arctic.adapter.target_session import target_session

    if undo and (keys or dry_run):
        raise click.UsageError("--undo takes neither --key nor --dry-run")
    with target_session(target, "adopt") as session:
        name = session.to_write(table)
        if undo:
            question = f"Make {name} a plain table, and drop its change table and previous generation?"
            require_confirmation(question, yes, as_json)
            undo_adoption(session.context, name)
            _print_result(as_json, {"table": name.dotted, "keyed": False}, f"{name} is a plain table.")
            return
        begun = find_unfinished(session.catalog, name)
        if begun is not None and keys and {one.lower() for one in keys} != {one.lower() for one in begun.key}:
            raise ConfigError(
                f"an adoption of {name} with the key {', '.join(begun.key)} was interrupted",
                where=name.dotted,
                why=f"it is completed with that key, not with {', '.join(keys)}",
                fix=f"complete it: dbt-arctic adopt {table}; for another key, undo it afterwards (--undo)",
            )
        if begun is not None and dry_run:
            result = {"table": name.dotted, "keyed": False, "key": list(begun.key)}
            _print_result(
                as_json,
                result,
                f"The adoption of {name} was interrupted; run without --dry-run to complete it.",
            )
            return
        shown = finish_adoption(session.context, name)
        if shown is not None:
            _print_result(
                as_json,
                {"table": name.dotted, "keyed": True, "key": list(shown.key)},
                f"The interrupted adoption of {name} is complete; it is a keyed table now.",
            )
            return
        if not keys:
            raise click.UsageError("name each key column: --key COLUMN")
        _adopt(session, name, keys, dry_run, yes, as_json)


def _adopt(
    session: TargetSession,
    name: Name,
    keys: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    with progress(f"check that the keys of {name} are unique", quiet=as_json):
        plan = plan_adoption(session.context, name, keys)
    if not as_json:
        _show(plan)
    if dry_run:
        if as_json:
            print_json(_as_json(plan, False))
        return
    require_confirmation(f"Adopt {name}?", yes, as_json)
    with progress(f"adopt {name}", quiet=as_json) as bar:
        adopt_table(watched(session.context, bar), plan)
    _print_result(
        as_json,
        _as_json(plan, True),
        f"{name} is a keyed table with the key {', '.join(plan.table.key)}.\nIts model: {_config(plan)}",
    )


def _config(plan: Adoption) -> str:
    """The config that the table's model needs. Its strategy is the default one."""
    layout = plan.table.layout
    settings: dict[str, Any] = {"materialized": "incremental", "unique_key": list(plan.table.key)}
    if layout.partition_by:
        settings["partition_by"] = list(layout.partition_by)
    if layout.buckets:
        settings["buckets"] = layout.buckets
    return "config(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ")"


def _print_result(as_json: bool, value: dict[str, Any], text: str) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def _show(plan: Adoption) -> None:
    table = plan.table
    click.echo(f"{table.name}: the keys are unique and not NULL.")
    lines = [
        ("key", ", ".join(table.key)),
        ("base", f"{table.base.identifier}, which is the table under a new name"),
        ("change table", table.change.identifier),
        ("partitioning", ", ".join(plan.state.partitioning or ()) or "none"),
    ]
    if plan.upgrades:
        lines.append(("format", "upgraded to version 3, which older programs cannot read"))
    if not plan.joins_in_place:
        lines.append(("joins", "need a shuffle, as the table has no key buckets; a full refresh adds them"))
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
