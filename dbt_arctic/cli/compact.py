"""``dbt-arctic compact``: runs the due compactions within a budget, in order of benefit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dbt_arctic.cli.options import (
    catalog_options,
    duration_ms,
    json_option,
    optional_duration_ms,
    table_options,
)
from dbt_arctic.cli.output import operation_as_dict, print_json, print_table
from dbt_arctic.cli.progress import progress
from dbt_arctic.cli.status import tables_to_show
from dbt_arctic.compaction.plan import (
    Kind,
    Operation,
    most_valuable_first,
    requested_operation,
)
from dbt_arctic.compaction.run import FAILED, OVER_BUDGET, OperationResult, run_operations
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted, shown_bytes, shown_gain, shown_seconds
from dbt_arctic.maintenance.overview import TableOverview
from dbt_arctic.maintenance.upkeep import durations_of, record_and_keep

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command(short_help="Compact files and merge pending changes, where due.")
@table_options
@click.option(
    "--plan",
    "--dry-run",
    "only_plan",
    is_flag=True,
    help="Only show what would be done. Reads metadata only.",
)
@click.option(
    "--kind",
    type=click.Choice(["minor", "major", "full", "trim", "merge"]),
    help="Run this kind on the named tables, whether or not it is due.",
)
@click.option(
    "--budget",
    callback=optional_duration_ms,
    metavar="DURATION",
    help="Start only what should end within this time: 90s, 5m.",
)
@click.option(
    "--trim-grace",
    default="10m",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="How long merged changes stay in the change table for active readers.",
)
@json_option
@catalog_options
@click.pass_context
def compact(
    context: click.Context,
    target: Target,
    tables: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    only_plan: bool,
    kind: Kind | None,
    budget: int | None,
    trim_grace: int,
    as_json: bool,
) -> None:
    """Compact files and merge pending changes where that is due (all tables, or those named)."""
    from dbt_arctic.adapter.target_session import target_session

    if kind is not None and not tables:
        raise click.UsageError("--kind needs the names of the tables")
    grace_s = trim_grace / 1000
    with target_session(target, "compact") as session:
        found = tables_to_show(session, tables, schemas, everything, trim_grace_s=grace_s)
        if any(seen.status is None for seen in found):
            # A full refresh may have finished while the tables were read one after the other.
            found = tables_to_show(session, tables, schemas, everything, trim_grace_s=grace_s)
        experience = durations_of(session.catalog, session.own_schema, _warn)
        operations = most_valuable_first(experience.applied(_planned(session, found, kind)))
        broken = [seen for seen in found if seen.status is None and (tables or seen.name in session.models)]
        for seen in broken:
            _warn(f"{seen.name.schema}.{seen.name.identifier} is skipped. {seen.problem}: dbt-arctic verify")
        if only_plan or not operations:
            _show_plan(operations, as_json)
            context.exit(2 if broken else 0)
        with progress("connecting to Spark", sum(one.cost_s for one in operations), as_json) as bar:
            session.read("SELECT 1")  # keeps Spark's start out of the first operation's time
            coming = iter([*(_coming(one, found) for one in operations), ("", "")])
            bar.now(*next(coming))

            def report(one: OperationResult) -> None:
                bar.echo(described(one), err=as_json)
                bar.advance(one.operation.cost_s)
                bar.now(*next(coming))

            done = run_operations(
                session.context,
                operations,
                None if budget is None else budget / 1000,
                grace_s,
                report,
            )
            bar.now("recording the operations")
            own, kept_s = session.own_schema, session.operations_kept_s
            record_and_keep(session.context, own, done, experience, kept_s, _warn)
    if as_json:
        print_json([_as_dict(one) for one in done])
    if broken or any(one.outcome == FAILED for one in done):
        context.exit(2)


def _warn(text: str) -> None:
    click.echo(text, err=True)


class _Coming(NamedTuple):
    """The next operation, and the size of its table, for the progress bar."""

    what: str
    size: str


def _coming(operation: Operation, found: list[TableOverview]) -> _Coming:
    name = operation.name
    status = next((seen.status for seen in found if seen.name == name), None)
    size = ""
    if status is not None:
        rows = status.pending.rows if operation.kind == "major" else status.base.live_rows
        what = "pending row" if operation.kind == "major" else "row"
        size = f"{counted(rows, what)}, {counted(status.files, 'file')}, {shown_bytes(status.size_bytes)}"
    return _Coming(f"{operation.kind} {name.schema}.{name.identifier}", size)


def _planned(session: TargetSession, found: list[TableOverview], kind: Kind | None) -> list[Operation]:
    if kind is None:
        return [operation for seen in found for operation in seen.due]
    broken = [seen for seen in found if seen.status is None]
    if broken:
        raise ConfigError(broken[0].problem, where=broken[0].name.dotted, fix="dbt-arctic verify")
    return [
        requested_operation(
            kind, seen.status, session.compaction_of(seen.name, seen.status.table is not None)
        )
        for seen in found
        if seen.status
    ]


def _show_plan(operations: list[Operation], as_json: bool) -> None:
    if as_json:
        print_json([operation_as_dict(operation) for operation in operations])
        return
    if not operations:
        click.echo("Nothing is due.")
        return
    print_table(
        {
            "kind": "name",
            "table": "name",
            "scope": "text",
            "why": "text",
            "estimated time": "number",
            "saved per read": "number",
        },
        (
            [
                one.kind,
                f"{one.name.schema}.{one.name.identifier}",
                one.scope,
                one.why,
                shown_seconds(one.cost_s),
                shown_gain(one.gain_s),
            ]
            for one in operations
        ),
    )
    click.echo(f"Runs in this order, estimated {shown_seconds(sum(one.cost_s for one in operations))}.")


def described(done: OperationResult) -> str:
    """One line about a finished operation."""
    operation = done.operation
    what = f"{operation.kind:<5}  {operation.name.schema}.{operation.name.identifier}"
    if done.outcome == OVER_BUDGET:
        return f"{what}: {OVER_BUDGET}, still due"
    detail = f" ({done.detail})" if done.detail and done.outcome != FAILED else ""
    text = f"{what}: {done.outcome}{detail}, {done.seconds:.1f} s"
    return f"{text}\n{done.detail}" if done.outcome == FAILED else text


def _as_dict(done: OperationResult) -> dict[str, Any]:
    return {
        **operation_as_dict(done.operation),
        "outcome": done.outcome,
        "detail": done.detail,
        "seconds": round(done.seconds, 2),
        "read_cost_before": round(done.before.read_amplification, 2) if done.before else None,
        "read_cost_after": round(done.after.read_amplification, 2) if done.after else None,
    }
