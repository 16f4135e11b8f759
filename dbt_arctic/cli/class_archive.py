"""``dbt-arctic class-archive``: manages archives of Spark's classes, with which Spark starts faster."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from dbt_arctic.engine import class_archive_build
from dbt_arctic.engine.class_archive import existing
from dbt_arctic.human_readable import shown_bytes


@click.group(short_help="Halve Spark's start time with an archive of classes.")
def class_archive() -> None:
    """Halve Spark's start time with an archive of its classes that every later run uses."""


@class_archive.command()
@click.option("--java-home", help="The Java to use; needed if the profile sets java_home.")
def create(java_home: str | None) -> None:
    """Create the archive for this Java and pyspark. Takes about a minute and 200 MB of disk space."""
    with Console(stderr=True).status("Running Spark to record the classes it loads"):
        archive = class_archive_build.create(java_home)
    click.echo(f"Created {_described(archive)}")
    click.echo("Every Spark that dbt or dbt-arctic starts on this machine uses it from now on.")


@class_archive.command()
def show() -> None:
    """List the class archives on this machine."""
    found = existing()
    for archive in found:
        click.echo(_described(archive))
    if not found:
        click.echo("There is no class archive. Create one with: dbt-arctic class-archive create")


@class_archive.command()
def remove() -> None:
    """Remove all class archives on this machine."""
    removed = class_archive_build.remove()
    for archive in removed:
        click.echo(f"Removed {archive}")
    if not removed:
        click.echo("There is no class archive.")


def _described(archive: Path) -> str:
    return f"{archive} ({shown_bytes(archive.stat().st_size)})"
