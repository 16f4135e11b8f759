"""``dbt-arctic why``: the commits that wrote one row, what their runs had read, and what the row feeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli import output
from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import print_json, print_table, shown_time, shown_value
from dbt_arctic.cli.tables import Abbreviated, Cell, wrap
from dbt_arctic.data_type import parse_type
from dbt_arctic.keyed.version import Version, is_token
from dbt_arctic.maintenance.provenance import Feed, Gap, Provenance, Step, explain_row
from dbt_arctic.maintenance.row_change import MANUAL, TypedValues, Values
from dbt_arctic.maintenance.short_versions import abbreviated, abbreviated_token

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Explain one row: which runs wrote it, and from what.")
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@click.option(
    "--limit", type=COUNT, default=20, show_default=True, help="Number of commits, newest first; 0 for all."
)
@json_option
@project_options
@click.pass_context
def why(
    context: click.Context, target: Target, table: str, key: tuple[str, ...], limit: int, as_json: bool
) -> None:
    """Explain one row of a keyed table: which runs wrote it, from what, and what it feeds.

    KEY is COLUMN=VALUE for each column of the key, or one JSON object. Exits with 1 if no version of the
    table that is left has a row with this key.
    """
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "why") as session:
        name = session.name(table)
        found = explain_row(session.context, name, key, session.readers_of(name))
    shown = found.steps[: limit or None]
    if as_json:
        print_json(as_dict(found, shown))
    else:
        _print(found, shown)
    if not found.steps:
        context.exit(1)


def _print(found: Provenance, shown: tuple[Step, ...]) -> None:
    key = ", ".join(f"{column} = {value}" for column, value in found.key.items())
    _print_text(f"{found.table.name.dotted}: {key}")
    if not found.steps:
        _print_text("No row has this key in any version that is left. Strings must match exactly.")
    elif found.row is None:
        click.echo("The row is deleted.")
    else:
        values = _values(found, found.row) or "it has no columns other than the key"
        _print_text(f"The row now: {values}")
    if shown:
        click.echo("")
        _print_steps(found, shown)
    if len(shown) < len(found.steps):
        click.echo(f"{len(found.steps) - len(shown)} more: --limit 0", err=True)
    for gap in found.incomplete:
        _print_text(_gap(gap))
    if any(step.read for step in shown):
        click.echo("\nWhat these runs read:")
        _print_reads(shown)
    if found.feeds and found.steps:
        click.echo("\nTables that read this one:")
        _print_feeds(found)


def _print_text(text: str) -> None:
    width = output.terminal_width()
    click.echo("\n".join([text] if width is None else wrap(text, width)))


def _print_steps(found: Provenance, shown: tuple[Step, ...]) -> None:
    short = abbreviated([step.version for step in found.steps if step.version])
    print_table(
        {
            "time (UTC)": "name",
            "row": "name",
            "version": "name",
            "stored in": "text",
            "kind": "text",
            "by": "text",
            "values": "text",
        },
        (
            [
                _time(step.change.time_ms),
                step.change.effect,
                _version_of(step, short),
                step.change.stored,
                step.change.kind,
                _by(step),
                _difference(found, step),
            ]
            for step in shown
        ),
    )


def _print_reads(shown: tuple[Step, ...]) -> None:
    print_table(
        {"time (UTC)": "name", "upstream": "name", "after": "name", "up to": "name"},
        (
            [
                _time(step.change.time_ms),
                _relation(read.upstream),
                "all rows" if read.before is None else _version(read.before),
                _version(read.to),
            ]
            for step in shown
            for read in step.read
        ),
    )


def _print_feeds(found: Provenance) -> None:
    print_table(
        {
            "table": "name",
            "version read": "name",
            "of (UTC)": "name",
            "has its last change": "text",
        },
        (
            [
                _relation(feed.name),
                "" if feed.version is None else _version(feed.version),
                _time(feed.time_ms),
                _has_read(feed),
            ]
            for feed in found.feeds
        ),
    )


def _has_read(feed: Feed) -> str:
    if feed.has_read is None:
        return f"? {feed.why}" if feed.version is not None else feed.why
    if feed.has_read:
        return "yes"
    return f"no: {feed.why}" if feed.why else "no: its next run reads it"


def _gap(gap: Gap) -> str:
    if gap.since_ms is None:
        return f"Generation {gap.generation} is left out: {gap.why}."
    return f"Generation {gap.generation} is complete since {shown_time(gap.since_ms)} only: {gap.why}."


def _difference(found: Provenance, step: Step) -> str:
    """The values that a commit changed, a column a line: ``old → new``."""
    change = step.change
    if change.effect == "late":
        return "the row is newer"
    lines = []
    for column in change.changed:
        if column in found.key:
            continue
        shown = [_shown(found, column, row) for row in (change.before, change.after) if row is not None]
        lines.append(f"{column}: {' → '.join(shown)}")
    return "\n".join(lines)


def _shown(found: Provenance, column: str, row: Values) -> str:
    return shown_value(_cell(found, column, row)) if column in row else "no column"


def _values(found: Provenance, row: Values) -> str:
    return ", ".join(
        f"{column} = {shown_value(_cell(found, column, row))}" for column in row if column not in found.key
    )


def _cell(found: Provenance, column: str, row: Values) -> Any:
    from dbt_arctic.adapter.show import table_value

    types = row.types if isinstance(row, TypedValues) else found.types
    type_ = types.get(column)
    value = row.get(column)
    return value if type_ is None else table_value(value, parse_type(type_))


def _version_of(step: Step, short: Mapping[Version, str]) -> Cell:
    if step.version is not None:
        return Abbreviated(step.version.token, short[step.version])
    # A commit of the base table, or of another program, has no version of its own.
    return "" if step.change.is_base or step.change.kind == MANUAL else "expired"


def _version(token: str) -> Cell:
    """A version; the offsets of a topic and the snapshot of a plain table in full."""
    return Abbreviated(token, abbreviated_token(token)) if is_token(token) else token


def _relation(name: str) -> str:
    """A relation without its catalog; the name of a topic as it is."""
    _, _, rest = name.partition(".")
    return rest if "." in rest else name


def _time(time_ms: int | None) -> str:
    return "" if time_ms is None else shown_time(time_ms)


def _by(step: Step) -> Cell:
    run = step.change.run
    invocation, colon, node = run.partition(":")
    return Abbreviated(run, f"{invocation[:8]}{colon}{node}")


def as_dict(found: Provenance, shown: tuple[Step, ...]) -> dict[str, Any]:
    """The provenance of a row as JSON."""

    def row(values: Values | None) -> dict[str, Any] | None:
        return None if values is None else {column: _cell(found, column, values) for column in values}

    return {
        "table": found.table.name.dotted,
        "key": dict(found.key),
        "row": row(found.row),
        "commits": [
            {
                "time": _time(step.change.time_ms) or None,
                "kind": step.change.kind,
                "effect": step.change.effect,
                "before": row(step.change.before),
                "before_is_known": step.change.is_before_known,
                "after": row(step.change.after),
                "changed": list(step.change.changed),
                "run": step.change.run,
                "generation": step.generation,
                "version": step.version.token if step.version else None,
                "stored": step.change.stored,
                "side": "base" if step.change.is_base else "change",
                "snapshot": None if step.change.commit is None else step.change.commit.snapshot_id,
                "txn": step.change.txn,
                "offset": step.change.offset,
                "read": [{"upstream": one.upstream, "after": one.before, "to": one.to} for one in step.read],
            }
            for step in shown
        ],
        "incomplete": [
            {
                "generation": gap.generation,
                "complete_since": _time(gap.since_ms) or None,
                "why": gap.why,
            }
            for gap in found.incomplete
        ],
        "feeds": [
            {
                "table": feed.name,
                "version": feed.version,
                "time": _time(feed.time_ms) or None,
                "has_read": feed.has_read,
                "why": feed.why or None,
            }
            for feed in found.feeds
        ],
    }
