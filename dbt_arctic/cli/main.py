"""The ``dbt-arctic`` command line: parses arguments, calls the layer below and prints the result.

It must not make decisions about tables or plans.
"""

from __future__ import annotations

import difflib
import gc
import shutil
import sys
import traceback
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from dbt_arctic.errors import ArcticError
from dbt_arctic.secret import without_secrets

COMMANDS = {
    "adopt": "adopt",
    "changes": "changes",
    "check": "check",
    "class-archive": "class_archive",
    "clean": "clean",
    "compact": "compact",
    "diff": "diff",
    "doctor": "doctor",
    "erase": "erase",
    "expire": "expire",
    "history": "history",
    "ingest": "ingest",
    "keep": "keep",
    "lag": "lag",
    "openlineage": "openlineage",
    "plan": "plan",
    "report": "report",
    "restore": "rollback",
    "rollback": "rollback",
    "savepoint": "rollback",
    "server": "server",
    "show": "show",
    "sql": "sql",
    "status": "status",
    "verify": "verify",
    "why": "why",
}
"""The module of each command. Only the module of the requested command is imported."""


class Commands(click.Group):
    """Prints dbt-arctic's errors without a Python traceback."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(f"dbt_arctic.cli.{COMMANDS[cmd_name]}"), cmd_name.replace("-", "_"))
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; the error for a misspelled one names the command that was probably meant."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            meant = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if not meant:
                raise
            raise click.UsageError(f"{error.message} Did you mean {meant[0]}?", context) from None

    def invoke(self, context: click.Context) -> Any:
        """Run a command, and print its error without a traceback."""
        try:
            return super().invoke(context)
        except ArcticError as error:
            click.echo(_shown(error), err=True)
            context.exit(2)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception:
            # Python would exit with 1, which several commands use for findings.
            click.echo(without_secrets(traceback.format_exc()), err=True)
            context.exit(2)


def _shown(error: ArcticError) -> str:
    """The text of an error, wrapped if it goes to a terminal."""
    if not sys.stderr.isatty():
        return str(error)
    from dbt_arctic.cli.messages import wrap_error

    return wrap_error(error, shutil.get_terminal_size().columns)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("dbt-arctic"), prog_name="dbt-arctic")
def main() -> None:
    """Inspect and maintain the keyed tables of a dbt project."""
    # Commands are short-lived. With hundreds of tables, garbage collection took a sixth of the time.
    gc.set_threshold(50_000, 20, 100)
