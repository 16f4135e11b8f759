"""``dbt-arctic check``: compares automatic models with a full refresh, on a copy, after random changes."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import json_option, project_options
from dbt_arctic.cli.output import print_json
from dbt_arctic.cli.progress import progress
from dbt_arctic.human_readable import counted

if TYPE_CHECKING:
    from dbt_arctic.adapter.check_report import CheckReport
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Compare automatic models with their full queries.")
@click.argument("select", nargs=-1)
@click.option(
    "--automatic",
    multiple=True,
    metavar="SELECTION",
    help="Treat these models as automatic, regardless of their config. Repeatable.",
)
@click.option("--rounds", default=5, show_default=True, help="Number of rounds of changes.")
@click.option("--seed", type=int, help="Seed of the random changes; the same seed repeats them.")
@click.option("--keep", is_flag=True, help="Keep the copy for inspection.")
@json_option
@project_options
def check(
    target: Target,
    select: tuple[str, ...],
    automatic: tuple[str, ...],
    rounds: int,
    seed: int | None,
    keep: bool,
    as_json: bool,
) -> None:
    """Compare automatic models with the result of their full query, after rounds of random changes.

    The command works on a copy of the project's sources in a separate schema. It does not write to your
    tables. The exit code is 1 if a model differs, and 2 if no model could be compared or dbt failed to build
    one.
    """
    from dbt_arctic.adapter.checking import Checks, check_project
    from dbt_arctic.adapter.target_session import target_session

    chosen = random.randrange(10**6) if seed is None else seed
    click.echo(f"seed {chosen}", err=True)
    with target_session(target, "check") as session, progress("check on a copy") as bar:

        def report_progress(text: str) -> None:
            bar.echo(text, err=True)
            bar.now(text)

        found = check_project(
            session, target, Checks(select, automatic, rounds, chosen, keep), report_progress
        )
    if as_json:
        print_json(_as_json(found, chosen))
    else:
        _print(found)
    sys.exit(found.exit_code)


def _as_json(found: CheckReport, seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "refreshes": found.refreshes,
        "differences": [
            {"model": model, "round": number, "rows": count}
            for (model, number), count in sorted(found.differences.items())
        ],
        "nondeterministic": {
            model: {"rows": count, "why": why}
            for model, (count, why) in sorted(found.nondeterministic.items())
        },
        "not_compared": found.not_compared,
        "empty": sorted(found.empty),
        "failures": {
            model: {"round": number, "why": why} for model, (number, why) in sorted(found.failures.items())
        },
        "result": found.last_line,
    }


def _print(found: CheckReport) -> None:
    for model, ways in sorted(found.refreshes.items()):
        click.echo(f"{model}: {', '.join(f'{count} {way}' for way, count in ways.most_common())}")
    for (model, number), count in sorted(found.differences.items(), key=lambda entry: entry[0][1]):
        click.echo(f"round {number}: {model} differs in {counted(count, 'row')}")
    for model, (count, why) in sorted(found.nondeterministic.items()):
        rows = counted(count, "row")
        click.echo(f"{model} differs in {rows}, because its query is not deterministic ({why})")
    for model, why in sorted(found.not_compared.items()):
        click.echo(f"{model} was not compared: {why}")
    for model in sorted(found.empty):
        click.echo(f"{model} was empty in every round and was not compared")
    for model, (number, why) in sorted(found.failures.items()):
        click.echo(f"round {number}: {model} failed: {why}")
    click.echo(found.last_line)
