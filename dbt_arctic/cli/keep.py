"""``dbt-arctic keep``: refreshes models as their target lag or schedule requires, until it is stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.options import duration_ms, json_option, optional_duration_ms, project_options
from dbt_arctic.cli.selection import SelectingCommand, select_option

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(cls=SelectingCommand, short_help="Refresh models when they are due, until stopped.")
@select_option
@click.option(
    "--for", "for_ms", callback=optional_duration_ms, metavar="DURATION", help="End after this time: 20s, 1h."
)
@click.option(
    "--grace",
    default="30s",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="How long a running refresh may take after SIGTERM or Ctrl-C, before it is cancelled.",
)
@json_option
@project_options
@click.pass_context
def keep(
    context: click.Context,
    target: Target,
    select: tuple[str, ...],
    for_ms: int | None,
    grace: int,
    as_json: bool,
) -> None:
    """Refresh the models with target_lag or schedule when they are due, and compact in between.

    Runs until SIGTERM, Ctrl-C or the end of --for. Exits with 1 if the last refresh of a model failed.
    """
    from dbt_arctic.adapter.keep_actions import Keeper
    from dbt_arctic.adapter.keep_loop import KeepLoop
    from dbt_arctic.adapter.kept_models import load_project
    from dbt_arctic.adapter.stop_signals import StopSignals
    from dbt_arctic.adapter.target_session import target_session
    from dbt_arctic.cli.keep_report import KeepReport, shown_end, shown_models

    def stopping(name: str) -> None:
        click.echo(
            f"{name}: ends after the running action, which is cancelled after {grace // 1000} s.", err=True
        )

    with StopSignals(grace / 1000, stopping) as stop:
        project = load_project(target, select)
        models = {one.model: one.settings for one in project.models}
        click.echo(f"Keeping {shown_models(models)}.", err=True)
        if project.not_kept:
            click.echo(f"Read by them, and not refreshed: {', '.join(project.not_kept)}.", err=True)
        with target_session(project.target, "keep") as session:
            keeper = Keeper(project, session, lambda text: click.echo(text, err=True))
            until = None if for_ms is None else time.time() + for_ms / 1000
            totals = KeepLoop(project, keeper, stop, KeepReport(project, as_json), until).run()
        counts = (totals.refreshes, totals.compactions, totals.failures)
        click.echo(shown_end(stop.requested, *counts, totals.failing), err=True)
    context.exit(1 if totals.failing else 0)
