"""``dbt-arctic history``: the versions of a keyed table, and the compactions of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import (
    print_json,
    print_table,
    record_as_dict,
    shown_time,
    verification_as_dict,
)
from dbt_arctic.cli.tables import Abbreviated, Cell
from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.run import FAILED
from dbt_arctic.keyed.operations import Record
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance import timeline
from dbt_arctic.maintenance.short_versions import abbreviated, abbreviated_token

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command(short_help="List the versions of a keyed table, or compactions.")
@click.argument("table", required=False)
@click.option(
    "--limit", type=COUNT, default=20, show_default=True, help="Number of entries, newest first; 0 for all."
)
@click.option("--compaction", is_flag=True, help="Show the compaction history of the table, or of all.")
@json_option
@project_options
def history(target: Target, table: str | None, limit: int, compaction: bool, as_json: bool) -> None:
    """List the versions of a keyed table with time, kind, rows and run. Reads metadata only.

    The commands rollback, savepoint and changes and the macro at_version() accept these versions.
    """
    from dbt_arctic.adapter.target_session import target_session

    if table is None and not compaction:
        raise click.UsageError("name a table, or add --compaction")
    with target_session(target, "history") as session:
        if compaction or table is None:
            _operations(session, table, limit, as_json)
            return
        entries = timeline.history(session.catalog, session.name(table))
    if as_json:
        print_json([_as_json(entry) for entry in entries[: limit or None]])
    else:
        print_entries(entries, limit)


def print_entries(entries: list[timeline.Entry], limit: int) -> None:
    """Print the newest entries of a history as a table.

    :param limit: how many; 0 for all.
    """
    shown = entries[: limit or None]
    short = abbreviated([entry.version for entry in entries if entry.version])
    verified = any(entry.verified is not None for entry in shown)
    print_table(
        {
            "time (UTC)": "name",
            "kind": "text",
            "rows": "number",
            "version": "name",
            "savepoints": "text",
            "by": "text",
            **({"verified": "text"} if verified else {}),
        },
        (
            [
                shown_time(entry.time_ms),
                shown_kind(entry, short),
                f"{entry.rows:,}",
                Abbreviated(entry.version.token, short[entry.version]) if entry.version else "expired",
                ", ".join(entry.savepoints),
                _by(entry),
                *([str(entry.verified or "")] if verified else []),
            ]
            for entry in shown
        ),
    )
    if len(shown) < len(entries):
        click.echo(f"{len(entries) - len(shown)} more: --limit 0", err=True)


def shown_kind(entry: timeline.Entry, short: Mapping[Version, str]) -> Cell:
    """What a commit did; of a rollback with the version to which it went, short on a terminal."""
    kind, to, token = entry.kind.partition(" to ")
    if kind != "rollback":
        return entry.kind
    tokens = {version.token: text for version, text in short.items()}
    return Abbreviated(entry.kind, f"{kind}{to}{tokens.get(token) or abbreviated_token(token)}")


def _by(entry: timeline.Entry) -> Cell:
    """The invocation and what it ran. The first digits of an invocation are enough to find it in a log."""
    invocation, colon, node = entry.run.partition(":")
    return Abbreviated(entry.run, f"{invocation[:8]}{colon}{node}")


def _operations(session: TargetSession, table: str | None, limit: int, as_json: bool) -> None:
    """Print the compaction operations recorded in the operations table."""
    of = "" if table is None else session.name(table).dotted
    found = read_operations(session.catalog, session.own_schema, of)
    shown = found[: limit or None]
    if as_json:
        print_json([record_as_dict(one) for one in shown])
        return
    if not found:
        click.echo(f"No compaction{'' if table is None else f' of {of}'} has run yet.")
        return
    print_table(
        {
            "time (UTC)": "name",
            "kind": "text",
            "table": "name",
            "scope": "text",
            "outcome": "text",
            "took": "number",
            "read cost": "number",
            "files": "number",
        },
        (_operation_row(one, session.own_schema.catalog) for one in shown),
    )
    if len(shown) < len(found):
        click.echo(f"{len(found) - len(shown)} more: --limit 0", err=True)


def _operation_row(one: Record, own: str) -> list[str]:
    failed = one.outcome == FAILED
    return [
        shown_time(one.at_ms),
        one.kind,
        one.table_name.removeprefix(f"{own}."),
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
        "verified": None if entry.verified is None else verification_as_dict(entry.verified),
    }
