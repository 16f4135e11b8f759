"""``dbt-arctic report``: one HTML page on the tables' state, history and due work. Reads metadata only."""

from __future__ import annotations

from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.catalog.once import Once
from dbt_arctic.cli.options import (
    catalog_options,
    chosen_schemas,
    duration_ms,
    json_option,
    schema_options,
)
from dbt_arctic.cli.output import operation_as_dict, print_json, record_as_dict, shareable, shown_time
from dbt_arctic.cli.status import as_dict
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.human_readable import counted, shown_bytes
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import OPERATIONS
from dbt_arctic.maintenance.expire_plan import shown_hold
from dbt_arctic.maintenance.report import Report, collect_report

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.run_results import RunResults


@click.command(short_help="Write one HTML page about all tables, with charts.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write.  [default: arctic_report.html in dbt's target folder]",
)
@click.option(
    "--since",
    default="30d",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="Start of the period: 12h, 30d.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="TABLE",
    help="Include only this table. * matches anything: sales.*. Repeatable.",
)
@schema_options
@json_option
@catalog_options
def report(
    target: Target,
    output: Path | None,
    since: int,
    select: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    as_json: bool,
) -> None:
    """Write one HTML page with charts: pending changes, read cost, lag, past and due compaction.

    The page works offline and contains neither secrets nor paths of this machine.
    """
    from dbt_arctic.adapter.run_results import read_run_results
    from dbt_arctic.adapter.target_session import target_session
    from dbt_arctic.cli.report_page import Page

    with target_session(target, "report") as session:
        found = collect_report(
            replace(session.context, catalog=Once(session.catalog)),
            target.catalog,
            chosen_schemas(session, schemas, everything),
            session.own_schema,
            session.context.now_ms() - since,
            session.compaction_of,
            lambda name: name in session.models or name.identifier == OPERATIONS,
            lambda name: _is_selected(name, select),
        )
        if select and not found.tables:
            raise UnknownRelation(
                f"no table matches {' '.join(select)}", where="--select", fix="dbt-arctic status lists all"
            )
        results = read_run_results(session.target_folder)
        if as_json:
            print_json(report_as_dict(found, results))
            return
        file = output or session.target_folder / "arctic_report.html"
    html = Page(found, results, f"{session.project} ({target.name})").html()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(html, encoding="utf-8")
    click.echo(f"{file}: {counted(len(found.tables), 'table')}, {shown_bytes(len(html.encode()))}")
    for one in found.unreadable:
        click.echo(f"{one.table} cannot be read. {one.why.rstrip('.')}: dbt-arctic verify", err=True)


def _is_selected(name: Name, select: tuple[str, ...]) -> bool:
    ways = (name.identifier, f"{name.schema}.{name.identifier}", name.dotted)
    return not select or any(fnmatchcase(way, pattern) for way in ways for pattern in select)


def report_as_dict(found: Report, results: RunResults | None) -> dict[str, Any]:
    """The data behind the page. Times in UTC, sizes in bytes, durations in seconds."""
    return {
        "since": shown_time(found.since_ms),
        "until": shown_time(found.now_ms),
        "tables": [_table(found, at) for at in range(len(found.tables))],
        "due": [operation_as_dict(one) for one in found.due],
        "operations": [{**record_as_dict(one), "detail": shareable(one.detail)} for one in found.operations],
        "refreshes": [
            {
                "at": shown_time(one.at_ms),
                "table": one.name.dotted,
                "strategy": one.strategy,
                "seconds": one.seconds,
                "changed_rows": one.changed,
            }
            for one in found.refreshes
        ],
        "commits": [
            {"from": shown_time(one.at_ms), "kind": one.kind, "count": one.count} for one in found.writes
        ],
        "held_back": [
            {"table": held.name.dotted, "by": [shareable(shown_hold(hold)) for hold in held.holds]}
            for held in found.held
        ],
        "unreadable": [{"table": one.table, "why": shareable(one.why)} for one in found.unreadable],
        "last_run": None if results is None else _results(results),
    }


def _table(found: Report, at: int) -> dict[str, Any]:
    seen = found.tables[at]
    entry = as_dict(seen, found.now_ms)
    past = next((one for one in found.past if one.name == seen.name), None)
    if past is not None:
        entry["series"] = [{**asdict(point), "at_ms": shown_time(point.at_ms)} for point in past.points]
        entry["lag"] = [{"at": shown_time(lag.at_ms), "seconds": lag.seconds} for lag in past.lags]
    return entry


def _results(results: RunResults) -> dict[str, Any]:
    entry = asdict(results)
    entry["refreshes"] = [{**asdict(one), "reason": shareable(one.reason)} for one in results.refreshes]
    return entry
