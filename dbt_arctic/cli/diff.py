"""``dbt-arctic diff``: how the rows of a project's models differ from those of another target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.diff_markdown import as_markdown
from dbt_arctic.cli.diff_values import by_count, note_of, sample_kind, shown_share, shown_values
from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import print_json, print_table, shown_value
from dbt_arctic.cli.progress import progress
from dbt_arctic.cli.selection import SelectingCommand, select_option

if TYPE_CHECKING:
    from dbt_arctic.adapter.diff_report import DiffReport, ModelDiff
    from dbt_arctic.adapter.project import Target


@click.command(cls=SelectingCommand, short_help="Compare the models of this target with another's.")
@click.option(
    "--base", required=True, metavar="TARGET", help="The target to compare with, such as production's."
)
@select_option
@click.option("--exclude", multiple=True, metavar="MODELS", help="Leave out these models, in dbt's syntax.")
@click.option("--state", type=click.Path(exists=True), help="dbt's --state, for state:modified.")
@click.option(
    "--max-changed", metavar="LIMIT", help="Exit with 1 if more rows of a model differ: 100, or 0.1%."
)
@click.option("--ignore-column", multiple=True, metavar="COLUMN", help="Do not compare it. Repeatable.")
@click.option(
    "--samples", type=COUNT, default=3, show_default=True, help="Number of rows of each kind to show."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="markdown: for a comment on a pull request.",
)
@json_option
@project_options
@click.pass_context
def diff(
    context: click.Context,
    target: Target,
    base: str,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    state: str | None,
    max_changed: str | None,
    ignore_column: tuple[str, ...],
    samples: int,
    form: str,
    as_json: bool,
) -> None:
    """Compare the models of this target with those of another one, by their keys.

    Shows schema differences, and for each model the rows that only one target has and the rows that differ,
    by column, with samples. Reads both and writes nothing. The exit code is 2 if a comparison failed, or if
    no selected model is built in this target.
    """
    from dbt_arctic.adapter.diff_report import Threshold
    from dbt_arctic.adapter.project import load_target
    from dbt_arctic.adapter.relation_diff import DiffOptions
    from dbt_arctic.adapter.target_diff import diff_targets
    from dbt_arctic.adapter.target_session import target_session

    threshold = None if max_changed is None else Threshold.parse(max_changed)
    other = load_target(target.project_root, target.profiles_dir, base)
    selection = [
        *(part for one in select for part in ("--select", *one.split())),
        *(part for one in exclude for part in ("--exclude", *one.split())),
        *(("--state", str(Path(state).resolve())) if state is not None else ()),
    ]
    ignored = frozenset(column.lower() for column in ignore_column)
    options = DiffOptions(selection, ignored, samples, threshold)
    with target_session(target, "diff") as session, progress("diff") as bar:
        found = diff_targets(session, target, other, options, bar.now)
    for column in found.unknown_columns(ignored):
        click.echo(f"--ignore-column {column}: no compared relation has this column", err=True)
    if as_json:
        print_json(as_dict(found))
    elif form == "markdown":
        click.echo(as_markdown(found))
    else:
        print_report(found)
    if found.exit_code:
        context.exit(found.exit_code)


def print_report(found: DiffReport) -> None:
    """Print a comparison for a terminal or a pipe."""
    exceeding = {one.model for one in found.exceeding}
    for one in found.models:
        for difference in one.schema:
            click.echo(f"{one.model}: {difference}")
    if any(one.schema for one in found.models):
        click.echo("")
    shown = [one for one in found.models if one.state != "not built"]
    if shown:
        print_table(
            {
                "model": "name",
                "rows": "number",
                f"in {found.base}": "number",
                "changed": "number",
                f"only {found.target}": "number",
                f"only {found.base}": "number",
                "differ": "number",
                "note": "text",
                "columns": "text",
            },
            (_row(one, one.model in exceeding) for one in shown),
        )
    for one in found.models:
        _print_samples(found, one)
    click.echo(("\n" if shown else "") + found.summary)


def _row(one: ModelDiff, is_exceeding: bool) -> list[str]:
    note = note_of(one)
    if is_exceeding:
        note = "over the threshold" + (f"; {note}" if note else "")
    columns = "\n".join(f"{name}: {count:,}" for name, count in by_count(one))
    if one.state != "compared":
        return [one.model, *[""] * 6, note, columns]
    counts = (one.rows, one.base_rows, one.changed, one.only_here, one.only_there)
    return [one.model, *(f"{count:,}" for count in counts), shown_share(one), note, columns]


def _print_samples(found: DiffReport, one: ModelDiff) -> None:
    if not one.samples:
        return
    click.echo(f"\n{one.model}")
    print_table(
        {"row": "name", "key" if one.key else "values": "value", f"{found.base} → {found.target}": "value"},
        (
            [
                sample_kind(found, sample),
                ", ".join(f"{name} = {shown_value(value)}" for name, value in sample.key.items()),
                shown_values(sample),
            ]
            for sample in one.samples
        ),
    )


def as_dict(found: DiffReport) -> dict[str, Any]:
    """A comparison as JSON."""
    exceeding = {one.model for one in found.exceeding}
    return {
        "target": found.target,
        "base": found.base,
        "exit_code": found.exit_code,
        "models": [
            {
                "model": one.model,
                "relation": one.here,
                "base_relation": one.there or None,
                "state": one.state,
                "why": one.why or None,
                "schema": [
                    {"column": each.column, "type": each.here or None, "base_type": each.there or None}
                    for each in one.schema
                ],
                "not_compared": list(one.not_compared),
                "key": list(one.key),
                "rows": one.rows,
                "base_rows": one.base_rows,
                "changed": one.changed,
                "only_target": one.only_here,
                "only_base": one.only_there,
                "share": float(one.share),
                "over_threshold": one.model in exceeding,
                "columns": dict(one.columns),
                "samples": [
                    {
                        "row": {"here": "only_target", "there": "only_base"}.get(each.kind, each.kind),
                        "key": dict(each.key),
                        "values": {
                            name: {"base": old, "target": new} for name, (old, new) in each.values.items()
                        },
                    }
                    for each in one.samples
                ],
            }
            for one in found.models
        ],
    }
