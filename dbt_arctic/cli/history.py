"""``dbt-arctic history`` and ``changes``: what a keyed table was, and what changed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from dbt_arctic.cli.options import json_option, print_json, project_options, shown_time, wide_console
from dbt_arctic.compaction.run import FAILED
from dbt_arctic.keyed import operations
from dbt_arctic.keyed.read import Images
from dbt_arctic.maintenance import timeline
from dbt_arctic.maintenance.versions import resolve
from dbt_arctic.refresh.pull import plan_changes
from dbt_arctic.refresh.state import load_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator
    from dbt_arctic.adapter.project import Target


@click.command()
@click.argument("table", required=False)
@click.option("--limit", default=20, show_default=True, help="How many, newest first; 0 for all.")
@click.option("--compaction", is_flag=True, help="What compaction did, with this table or with all.")
@json_option
@project_options
def history(target: Target, table: str | None, limit: int, compaction: bool, as_json: bool) -> None:
    """List the versions of a keyed table: when, by what, how many rows. Reads metadata only.

    What stands under VERSION can be given to rollback, savepoint and changes, and to the macro at_version().
    """
    from dbt_arctic.adapter.operator import operating

    if table is None and not compaction:
        raise click.UsageError("name a table, or add --compaction")
    with operating(target, "history") as operator:
        if compaction or table is None:
            _operations(operator, table, limit, as_json)
            return
        entries = timeline.history(operator.catalog, operator.name(table))
    shown = entries[: limit or None]
    if as_json:
        print_json([_as_json(entry) for entry in shown])
        return
    printed = Table(box=None, pad_edge=False)
    for heading in ("time (UTC)", "kind"):
        printed.add_column(heading, no_wrap=True)
    printed.add_column("rows", justify="right", no_wrap=True)
    for heading in ("version", "savepoints", "by"):
        printed.add_column(heading, overflow="fold")
    for entry in shown:
        printed.add_row(
            shown_time(entry.time_ms),
            entry.kind,
            str(entry.rows),
            entry.version.token if entry.version else "expired",
            ", ".join(entry.savepoints),
            entry.run,
        )
    wide_console().print(printed)
    if len(shown) < len(entries):
        click.echo(f"{len(entries) - len(shown)} more: --limit 0")


@click.command()
@click.argument("table")
@click.option("--from", "start", required=True, metavar="VERSION", help="A version, savepoint or time (UTC).")
@click.option("--to", "end", default="current", show_default=True, metavar="VERSION", help="The same.")
@click.option(
    "--images",
    type=click.Choice(["after", "both"]),
    default="after",
    show_default=True,
    help="both: also the old row of each changed or deleted key, as -U.",
)
@click.option("--limit", default=100, show_default=True, help="How many rows; 0 for all.")
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
    """Show what changed in a keyed table between two versions.

    _action is U for a new or changed row, D for a deleted one with its old values.
    """
    from dbt_arctic.adapter.operator import operating

    with operating(target, "changes") as operator:
        name = operator.name(table)
        keyed = load_keyed(operator.catalog, name)
        first, last = (resolve(operator.catalog, keyed, text, name.dotted) for text in (start, end))
        sql = plan_changes(operator.catalog, name, first.token, last.token, images, name.dotted)
        if only_sql:
            click.echo(sql)
            return
        # One more than is shown, to know whether there are more.
        columns, rows = operator.read(sql if limit <= 0 else f"SELECT *\nFROM (\n{sql}\n)\nLIMIT {limit + 1}")
    shown = rows[: limit or None]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in shown])
    else:
        print_rows(columns, shown)
    if len(shown) < len(rows):
        click.echo(f"There are more than {limit}: --limit 0", err=True)


def print_rows(columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    printed = Table(box=None, pad_edge=False)
    for column in columns:
        printed.add_column(column, overflow="fold")
    for row in rows:
        printed.add_row(*("NULL" if value is None else str(value) for value in row))
    wide_console().print(printed)
    click.echo(f"{len(rows)} row{'' if len(rows) == 1 else 's'}")


def _operations(operator: Operator, table: str | None, limit: int, as_json: bool) -> None:
    """What the table of operations has. Spark reads it."""
    name = operator.name(operations.TABLE)
    rows: list[tuple[Any, ...]] = []
    columns = list(operations.COLUMNS)
    if operator.catalog.load_table(name.schema, name.identifier) is not None:
        of = "" if table is None else operator.name(table).dotted
        columns, rows = operator.read(operations.newest(name, of, limit))
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("Compaction has not done anything yet.")
        return
    printed = Table(box=None, pad_edge=False)
    for heading in ("time (UTC)", "kind", "table", "scope", "outcome"):
        printed.add_column(heading, overflow="fold")
    for heading in ("took", "read cost", "files"):
        printed.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        failed = one["outcome"] == FAILED
        printed.add_row(
            shown_time(round(one["at"].timestamp() * 1000)),
            one["kind"],
            one["table_name"].partition(".")[2],
            one["scope"],
            str(one["detail"]).splitlines()[0] if failed else f"{one['outcome']}: {one['detail']}",
            f"{one['seconds']:.1f} s",
            "" if failed else f"{one['read_cost_before']:.1f} → {one['read_cost_after']:.1f}",
            "" if failed else f"{one['files_before']} → {one['files_after']}",
        )
    wide_console().print(printed)


def _as_json(entry: timeline.Entry) -> dict[str, Any]:
    return {
        "version": entry.version.token if entry.version else None,
        "time": shown_time(entry.time_ms),
        "kind": entry.kind,
        "rows": entry.rows,
        "run": entry.run,
        "savepoints": list(entry.savepoints),
    }
