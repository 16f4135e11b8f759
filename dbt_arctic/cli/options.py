"""Options shared by several commands."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+)\s*(?:([smhdw])|(second|minute|hour|day|week)s?)")


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """dbt's options that choose the project and the target."""

    @click.option("--project-dir", type=FOLDER, help="Folder of dbt_project.yml.")
    @click.option("--profiles-dir", type=FOLDER, help="Folder of profiles.yml.")
    @click.option("--target", "-t", help="Target of the profile.")
    @functools.wraps(command)
    def with_target(
        *args: Any, project_dir: Path | None, profiles_dir: Path | None, target: str | None, **kwargs: Any
    ) -> Any:
        from dbt_arctic.adapter.project import load_target  # imports dbt, which takes a second
        from dbt_arctic.cli.progress import report_start
        from dbt_arctic.engine.start_notices import report_to

        report_to(report_start)
        return command(*args, load_target(project_dir, profiles_dir, target), **kwargs)

    return with_target


def catalog_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``project_options``, and which catalog of the profile to look at."""

    @click.option(
        "--catalog", metavar="NAME", help="Use this catalog of the profile.  [default: that of the target]"
    )
    @functools.wraps(command)
    def in_catalog(target: Target, *args: Any, catalog: str | None, **kwargs: Any) -> Any:
        return command(target.in_catalog(catalog), *args, **kwargs)

    return project_options(in_catalog)


def schema_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that choose schemas."""
    chosen = click.option("--schema", "schemas", multiple=True, help="Use this schema. Repeatable.")
    everything = click.option("--all", "everything", is_flag=True, help="Use every schema of the catalog.")
    return chosen(everything(command))


def chosen_schemas(session: TargetSession, chosen: tuple[str, ...], everything: bool) -> list[str]:
    """The chosen schemas. Prints which schemas of the project are left out by default.

    :raises UnknownRelation: a named schema does not exist.
    """
    found = session.schemas(chosen, everything)
    if not chosen and not everything and (others := session.other_schemas(found)):
        click.echo(
            f"left out: {', '.join(others)}; the project has tables there too. "
            f"To include them: --schema {others[0]}, or --all",
            err=True,
        )
    if not chosen and (others := session.other_catalogs()):
        click.echo(
            f"left out: {', '.join(others)}; the project has tables in "
            f"{'this catalog' if len(others) == 1 else 'these catalogs'}, too. "
            f"To look there: --catalog {others[0]}",
            err=True,
        )
    return found


def no_tables_text(session: TargetSession, chosen: tuple[str, ...], everything: bool) -> str:
    """What a command prints that found no tables: where it looked, and how to look elsewhere."""
    if everything:
        return "There are no tables yet."
    schemas = ", ".join(session.schemas(chosen)) or "the schema of the target"
    return f"There are no tables in {schemas}. To look in every schema of the catalog: --all"


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Arguments that choose tables: by name, or all tables of some schemas."""
    return click.argument("tables", nargs=-1, metavar="[TABLE]...")(schema_options(command))


def confirmation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a command that shows what it will do and asks for confirmation."""
    dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    return dry_run(yes_option(command))


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def require_confirmation(question: str, yes: bool, as_json: bool = False) -> None:
    """Ask a question, and end the command unless the answer is yes.

    :param as_json: whether stdout is for JSON, so that the question belongs on stderr.
    :raises click.UsageError: there is no terminal, as in a scheduled job.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=as_json)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("there is no terminal to answer this question; --yes answers it") from None
    if not agreed:
        click.get_current_context().exit(1)


COUNT = click.IntRange(min=0)
"""The type of an option that limits what is shown; 0 usually shows all."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def duration_ms(context: click.Context, param: click.Parameter, value: str) -> int:
    """A callback that converts ``90s``, ``30m``, ``24h``, ``7d`` or ``10 minutes`` to milliseconds."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a duration; examples: 30m, 24h, 7d")
    return int(match.group(1)) * _UNITS[match.group(2) or match.group(3)[0]] * 1000


def optional_duration_ms(context: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """As ``duration_ms``, for an optional value."""
    return None if value is None else duration_ms(context, param, value)
