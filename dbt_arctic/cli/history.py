"""``dbt-arctic history`` and ``changes``: the versions of a keyed table, and the changes between two of
them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import json_option, project_options
from dbt_arctic.cli.output import print_json, print_rows, print_table, record_as_dict, shown_time
from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.run import FAILED
from dbt_arctic.keyed.operations import Record
from dbt_arctic.keyed.read import Images
from dbt_arctic.maintenance import timeline
from dbt_arctic.maintenance.versions import resolve
from dbt_arctic.refresh.pull import plan_changes
from dbt_arctic.store.state import load_keyed

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator
    from dbt_arctic.adapter.project import Target


@click.command()
@click.argument("table", required=False)
@click.option("--limit", default=20, show_default=True, help="Number of entries, newest first; 0 for all.")
@click.option("--compaction", is_flag=True, help="Show the compaction history of the table, or of all.")
@json_option
@project_options
def history(target: Target, table: str | None, limit: int, compaction: bool, as_json: bool) -> None:
    """List the versions of a keyed table with time, kind, rows and run. Reads metadata only.

    The commands rollback, savepoint and changes and the macro at_version() accept these versions.
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
    verified = any(entry.verified is not None for entry in shown)
    print_table(
        {
            "time (UTC)": "name",
            "kind": "name",
            "rows": "number",
            "version": "text",
            "savepoints": "text",
            "by": "text",
            **({"verified": "text"} if verified else {}),
        },
        (
            [
                shown_time(entry.time_ms),
                entry.kind,
                str(entry.rows),
                entry.version.token if entry.version else "expired",
                ", ".join(entry.savepoints),
                entry.run,
                *([str(entry.verified or "")] if verified else []),
            ]
            for entry in shown
        ),
    )
    if len(shown) < len(entries):
        click.echo(f"{len(entries) - len(shown)} more: --limit 0")


@click.command()
@click.argument("table")
@click.option("--from", "start", required=True, metavar="VERSION", help="A version, savepoint or time (UTC).")
@click.option("--to", "end", default="current", show_default=True, metavar="VERSION", help="As for --from.")
@click.option(
    "--images",
    type=click.Choice(["after", "both"]),
    default="after",
    show_default=True,
    help="both: also show the old row of each changed or deleted key, with action -U.",
)
@click.option("--limit", default=100, show_default=True, help="Number of rows; 0 for all.")
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

    _action is U for a new or changed row, and D for a deleted row, which is shown with its old values.
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
        # One row more than shown, to find out whether there are more.
        columns, rows = operator.read(sql if limit <= 0 else f"SELECT *\nFROM (\n{sql}\n)\nLIMIT {limit + 1}")
    print_rows(columns, rows, limit, as_json)


def _operations(operator: Operator, table: str | None, limit: int, as_json: bool) -> None:
    """Print the compaction operations recorded in the operations table."""
    of = "" if table is None else operator.name(table).dotted
    found = read_operations(operator.catalog, operator.name("any"), of)
    shown = found[: limit or None]
    if as_json:
        print_json([record_as_dict(one) for one in shown])
        return
    if not found:
        click.echo("No compaction has run yet.")
        return
    print_table(
        {
            "time (UTC)": "text",
            "kind": "text",
            "table": "name",
            "scope": "text",
            "outcome": "text",
            "took": "number",
            "read cost": "number",
            "files": "number",
        },
        (_operation_row(one) for one in shown),
    )
    if len(shown) < len(found):
        click.echo(f"{len(found) - len(shown)} more: --limit 0")


def _operation_row(one: Record) -> list[str]:
    failed = one.outcome == FAILED
    return [
        shown_time(one.at_ms),
        one.kind,
        one.table_name.partition(".")[2],
        one.scope,
        one.detail.splitlines()[0] if failed else f"{one.outcome}: {one.detail}",
        f"{one.seconds:.1f} s",
        "" if failed else f"{one.read_cost_before:.1f} → {one.read_cost_after:.1f}",
        "" if failed else f"{one.files_before} → {one.files_after}",
    ]


def _as_json(entry: timeline.Entry) -> dict[str, Any]:
    return {
        "version": entry.version.token if entry.version else None,
        "time": shown_time(entry.time_ms),
        "kind": entry.kind,
        "rows": entry.rows,
        "run": entry.run,
        "savepoints": list(entry.savepoints),
        "verified": None if entry.verified is None else asdict(entry.verified),
    }
