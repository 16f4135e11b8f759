"""Options that several commands have."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dbt_arctic.adapter.operator import Operator

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+)\s*([smhdw])")


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """dbt's own options that say which project and which target are meant."""

    @click.option("--project-dir", type=_FOLDER, help="Folder of dbt_project.yml.")
    @click.option("--profiles-dir", type=_FOLDER, help="Folder of profiles.yml.")
    @click.option("--target", "-t", help="Target of the profile.")
    @functools.wraps(command)
    def with_target(
        *args: Any, project_dir: Path | None, profiles_dir: Path | None, target: str | None, **kwargs: Any
    ) -> Any:
        from dbt_arctic.adapter.project import load_target  # imports dbt, which takes a second

        return command(*args, load_target(project_dir, profiles_dir, target), **kwargs)

    return with_target


def schema_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which schemas a command is about."""
    chosen = click.option("--schema", "schemas", multiple=True, help="A schema; may be given several times.")
    everything = click.option("--all", "everything", is_flag=True, help="Every schema of the catalog.")
    return chosen(everything(command))


def chosen_schemas(operator: Operator, chosen: tuple[str, ...], everything: bool) -> list[str]:
    """The schemas that a command is about. Tells which of the project's are none of the target's.

    :raises UnknownRelation: there is no schema of a name.
    """
    found = operator.schemas(chosen, everything)
    if not chosen and not everything and (others := operator.other_schemas(found)):
        click.echo(
            f"left out: {', '.join(others)}, where the project has tables too; "
            f"to look there: --schema {others[0]}, or --all",
            err=True,
        )
    return found


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The tables that a command is about: those that are named, or all of some schemas."""
    return click.argument("tables", nargs=-1, metavar="[TABLE]...")(schema_options(command))


def asking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Of a command that shows what it is about to do, and asks."""
    only_shown = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    unasked = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
    return only_shown(unasked(command))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def duration_ms(context: click.Context, param: click.Parameter, value: str) -> int:
    """A callback for ``90s``, ``30m``, ``24h`` or ``7d``: milliseconds."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a duration; write for instance 30m, 24h or 7d")
    return int(match.group(1)) * _UNITS[match.group(2)] * 1000


def optional_duration_ms(context: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The same where nothing may be said."""
    return None if value is None else duration_ms(context, param, value)
