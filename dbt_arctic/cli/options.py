"""What several commands share: options, and how a time, a duration and JSON are written."""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

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


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def duration_ms(context: click.Context, param: click.Parameter, value: str) -> int:
    """A callback for ``90s``, ``30m``, ``24h`` or ``7d``: milliseconds."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a duration; write for instance 30m, 24h or 7d")
    return int(match.group(1)) * _UNITS[match.group(2)] * 1000


def shown_time(time_ms: int) -> str:
    """A moment in UTC, in the form in which a command takes it back.

    >>> shown_time(1500)
    '1970-01-01 00:00:01.500'
    """
    at = dt.datetime.fromtimestamp(time_ms / 1000, dt.timezone.utc)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03}"


def wide_console() -> Console:
    """As wide as it takes where nobody looks: a version that is cut off is of no use to a script."""
    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=1000)


def print_json(value: Any) -> None:
    """Anything that JSON does not know (a decimal, a date) as its text."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
