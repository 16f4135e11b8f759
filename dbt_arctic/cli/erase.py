"""``dbt-arctic erase``: erases every copy of some keys of a keyed table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import confirmation_options, json_option, project_options, require_confirmation
from dbt_arctic.cli.output import print_json, print_table
from dbt_arctic.cli.progress import progress, watched
from dbt_arctic.cli.tables import Kind
from dbt_arctic.human_readable import counted
from dbt_arctic.maintenance.consumers import Consumer
from dbt_arctic.maintenance.erase import ErasureResult, erase_keys
from dbt_arctic.maintenance.erase_plan import ErasePlan, plan_by_condition, plan_by_values
from dbt_arctic.maintenance.key_values import ColumnValue

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Erase keys for good, from every file and version.")
@click.argument("table")
@click.option("--key", "keys", multiple=True, metavar="COLUMN=VALUE", help="The value of one key column.")
@click.option("--where", metavar="SQL", help="Erase the keys of all rows that match, in any version.")
@click.option("--force", is_flag=True, help="Also remove savepoints, branches and leftovers with copies.")
@confirmation_options
@json_option
@project_options
@click.pass_context
def erase(
    context: click.Context,
    target: Target,
    table: str,
    keys: tuple[str, ...],
    where: str | None,
    force: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase keys for good: from every file and every version of a keyed table.

    Older versions of the table become unreadable as a whole. Models that pull from the table have their own
    copies; the command lists them, and the keys must be erased there as well.
    """
    from dbt_arctic.adapter.target_session import size_of, target_session

    if bool(keys) == bool(where):
        raise click.UsageError("give --key or --where")
    with target_session(target, "erase") as session:
        name = session.to_write(table)
        if where:
            plan = plan_by_condition(session.context, name, where)
        else:
            plan = plan_by_values(session.context, name, [_value(key) for key in keys])
        if not as_json:
            _show_plan(plan, force)
        if dry_run or not plan.keys:
            if as_json:
                print_json(_plan_as_json(plan))
            return
        if force or not plan.in_the_way:
            question = f"Erase {counted(plan.keys, 'key')} of {name} for good?"
            require_confirmation(question, yes, as_json)
        with progress(f"erase from {name}", quiet=as_json) as bar:
            done = erase_keys(
                watched(session.context, bar), plan, force, lambda path: isinstance(size_of(path), int)
            )
    if as_json:
        print_json(_done_as_json(done))
    else:
        _show_done(done)
    context.exit(1 if done.left else 0)


def _value(text: str) -> ColumnValue:
    column, equals, value = text.partition("=")
    if not equals or not column.strip():
        raise click.BadParameter(f"{text!r} is not COLUMN=VALUE", param_hint="--key")
    return ColumnValue(column.strip(), value)


def _show_plan(plan: ErasePlan, force: bool) -> None:
    if not plan.keys:
        click.echo(f"No row of {plan.table.name} matches the condition in any remaining version.")
        return
    click.echo(f"{counted(plan.keys, 'key')} of {plan.table.name}")
    _print(
        ("side table", "rows", "versions"),
        [(side.name.identifier, str(side.rows), str(side.versions)) for side in plan.sides],
    )
    if plan.in_the_way:
        click.echo(
            "These keep copies and are removed too:" if force else "These keep copies; --force removes them:"
        )
        _print(("kind", "what", "why"), [(one.kind, one.what, one.why) for one in plan.in_the_way])
    if plan.consumers:
        click.echo("Tables that read from it and may hold copies:")
        for consumer in plan.consumers:
            click.echo(f"  {_described(consumer)}")


def _show_done(done: ErasureResult) -> None:
    click.echo(f"{counted(done.plan.keys, 'key')} of {done.plan.table.name} erased.")
    _print(
        ("side table", "rows", "versions removed", "files removed"),
        [
            (side.name.identifier, str(side.rows), str(side.versions), str(len(side.files)))
            for side in done.sides
        ],
    )
    for item in done.removed:
        click.echo(f"removed  {item}")
    for item in done.left:
        click.echo(f"!! not removed: {item}")
    for consumer in done.going_on:
        click.echo(f"erase there too: {_described(consumer)}")
    for consumer in done.to_rebuild:
        click.echo(f"rebuild, or erase there: {_described(consumer)}; its next pull needs a full refresh")


def _described(consumer: Consumer) -> str:
    if consumer.is_clone:
        return f"{consumer.name} (a clone: it shows the same rows)"
    return f"{consumer.name} ({consumer.why})" if consumer.why else consumer.name


def _print(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    kinds: dict[str, Kind] = dict.fromkeys(headings, "text")
    for heading in headings:
        if heading.split(" ")[0] in ("rows", "versions", "files"):
            kinds[heading] = "number"
    print_table(kinds, rows)


def _plan_as_json(plan: ErasePlan) -> dict[str, Any]:
    return {
        "table": plan.table.name.dotted,
        "keys": plan.keys,
        "sides": [
            {"name": side.name.dotted, "rows": side.rows, "versions": side.versions} for side in plan.sides
        ],
        "in_the_way": [{"kind": one.kind, "what": one.what, "why": one.why} for one in plan.in_the_way],
        "consumers": [consumer.name for consumer in plan.consumers],
    }


def _done_as_json(done: ErasureResult) -> dict[str, Any]:
    return {
        "table": done.plan.table.name.dotted,
        "keys": done.plan.keys,
        "sides": [
            {
                "name": side.name.dotted,
                "rows": side.rows,
                "versions_gone": side.versions,
                "files_gone": list(side.files),
            }
            for side in done.sides
        ],
        "removed": list(done.removed),
        "left": list(done.left),
        "going_on": [consumer.name for consumer in done.going_on],
        "to_rebuild": [consumer.name for consumer in done.to_rebuild],
    }
