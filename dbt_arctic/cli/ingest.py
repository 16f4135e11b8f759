"""``dbt-arctic ingest``: loads data from outside.

Writes the dbt files that load it, shows what is new, and replays rejected rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.ingest_init import init
from dbt_arctic.cli.options import json_option, project_options
from dbt_arctic.cli.output import print_json, print_table
from dbt_arctic.cli.selection import SelectingCommand, select_option
from dbt_arctic.human_readable import shown_bytes
from dbt_arctic.sources.capture_preview import CapturePreview
from dbt_arctic.sources.database_preview import TablePreview
from dbt_arctic.sources.read_preview import ReadPreview, TopicPreview

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.source_commands import Preview


@click.group()
def ingest() -> None:
    """Load data from outside the warehouse."""


ingest.add_command(init)


@ingest.command(cls=SelectingCommand, short_help="Show what the next run of each model would read.")
@select_option
@json_option
@project_options
def plan(target: Target, select: tuple[str, ...], as_json: bool) -> None:
    """Show what the next run of each model would read from its sources.

    Spark does not start.
    """
    found = _look(target, select)
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        click.echo("No selected model pulls from files, a topic or a database.")
    else:
        _show_previews([one for one in found if isinstance(one, ReadPreview)])
        _show_topics([one for one in found if isinstance(one, TopicPreview)])
        _show_tables([one for one in found if isinstance(one, TablePreview)])
        _show_captures([one for one in found if isinstance(one, CapturePreview)])


@ingest.command(cls=SelectingCommand, short_help="Replay rejected rows after a fix.")
@select_option
@project_options
@click.pass_context
def replay(context: click.Context, target: Target, select: tuple[str, ...]) -> None:
    """Replay rejected rows after the columns of a source or its on_bad_row were changed.

    Runs the models that have rejected rows. Each row that fits now is removed from the rejected rows in the
    same commit that adds it to the model. What is new in the sources is read as well.
    """
    from dbt_arctic.adapter.source_commands import replay_rejected

    before = {(one.model, one.source): one for one in _with_rejected(target, select) if one.rejected}
    if not before:
        click.echo("No selected model has rejected rows.")
        return
    models = sorted({model for model, _ in before})
    succeeded = replay_rejected(target, models)
    after = {(one.model, one.source): one for one in _with_rejected(target, models)}
    print_table(
        {"model": "name", "source": "name", "rejected before": "number", "now": "number"},
        [
            [*key, f"{one.rejected:,}", f"{after[key].rejected:,}" if key in after else "?"]
            for key, one in sorted(before.items())
        ],
    )
    context.exit(0 if succeeded else 1)


def _with_rejected(target: Target, select: Sequence[str]) -> list[ReadPreview | TopicPreview | TablePreview]:
    return [
        one for one in _look(target, select) if isinstance(one, ReadPreview | TopicPreview | TablePreview)
    ]


def _look(target: Target, select: Sequence[str]) -> list[Preview]:
    from dbt_arctic.adapter.source_commands import preview_sources
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "ingest plan") as session:
        return preview_sources(session, target, select)


def _show_topics(found: Sequence[TopicPreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "messages": "number",
            "rejected": "number",
            "dropped": "number",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                f"{one.messages:,}" + (" (all)" if one.reads_all else ""),
                f"{one.rejected:,}" if one.rejected else "",
                f"{one.dropped:,}" if one.dropped else "",
                one.problem,
            ]
            for one in found
        ],
    )


def _show_tables(found: Sequence[TablePreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "rows": "number",
            "from": "name",
            "deletes": "text",
            "rejected": "number",
            "dropped": "number",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                f"about {one.rows:,} (all)" if one.reads_all else f"{one.rows:,}",
                one.since,
                "keys are compared" if one.deletes else "",
                f"{one.rejected:,}" if one.rejected else "",
                f"{one.dropped:,}" if one.dropped else "",
                one.problem,
            ]
            for one in found
        ],
    )


def _show_captures(found: Sequence[CapturePreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "changes": "number",
            "table": "text",
            "log kept": "number",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                "all rows" if one.reads_all else f"{one.changes:,}",
                "; ".join(one.table_changes),
                shown_bytes(one.kept_bytes),
                one.problem,
            ]
            for one in found
        ],
    )


def _show_previews(found: Sequence[ReadPreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "files": "number",
            "size": "number",
            "changed": "number",
            "rejected": "number",
            "dropped": "number",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                f"{one.files:,}" + (" (all)" if one.reads_all else ""),
                shown_bytes(one.size_bytes),
                f"{one.changed:,}" if one.changed else "",
                f"{one.rejected:,}" if one.rejected else "",
                f"{one.dropped:,}" if one.dropped else "",
                one.problem,
            ]
            for one in found
        ],
    )
