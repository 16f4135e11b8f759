"""The ``dbt-arctic`` command line: reads arguments, calls the layer below, prints.

It must not decide anything about tables or plans.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import click

from dbt_arctic.cli.adopt import adopt
from dbt_arctic.cli.check import check
from dbt_arctic.cli.clean import clean
from dbt_arctic.cli.compact import compact
from dbt_arctic.cli.doctor import examine
from dbt_arctic.cli.erase import erase
from dbt_arctic.cli.expire import expire
from dbt_arctic.cli.history import changes, history
from dbt_arctic.cli.plan import plan
from dbt_arctic.cli.report import report
from dbt_arctic.cli.rollback import restore, rollback, savepoint
from dbt_arctic.cli.server import server
from dbt_arctic.cli.sql import sql
from dbt_arctic.cli.status import status
from dbt_arctic.cli.verify import verify
from dbt_arctic.errors import ArcticError


class Commands(click.Group):
    """Our errors on the terminal as they are, without Python's traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ArcticError as error:
            click.echo(str(error), err=True)
            context.exit(2)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("dbt-arctic"), prog_name="dbt-arctic")
def main() -> None:
    """Look after the keyed tables of a dbt project."""


@main.command()
def doctor() -> None:
    """Check this machine: packages and Java. `dbt debug` checks a profile."""
    checks = list(examine())
    for part in checks:
        click.echo(f"{'ok' if part.ok else '!!'}  {part.name:<14} {part.detail}")
        if part.fix:
            click.echo(f"    fix: {part.fix}")
    if not all(part.ok for part in checks):
        sys.exit(1)


for command in (
    adopt,
    changes,
    check,
    clean,
    compact,
    erase,
    expire,
    history,
    plan,
    report,
    restore,
    rollback,
    savepoint,
    server,
    sql,
    status,
    verify,
):
    main.add_command(command)
