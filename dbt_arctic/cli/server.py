"""``dbt-arctic server``: keeps Spark running for a project, so that `dbt run` does not start it each time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.options import json_option, project_options
from dbt_arctic.cli.output import print_json
from dbt_arctic.cli.progress import progress
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.server import Server, read_server, start_server, stop_server, usable_server
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ProfileError

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.group(short_help="Keep Spark running, so that runs start in a second.")
def server() -> None:
    """Keep Spark running for this project; `dbt run` uses it and starts in a second."""


@server.command()
@project_options
def start(target: Target) -> None:
    """Start the project's server with the settings of a target."""
    settings = _embedded_settings(target)
    with progress("server"):
        running = start_server(target.project_root, settings)
        # The first statement loads most of Spark's classes. Running one here makes the first `dbt run` fast.
        connection = ConnectEngine(running.connect_settings(settings)).connect()
        connection.cursor().execute(f"SHOW SCHEMAS IN `{settings.catalog}`")
        connection.close()
    click.echo(f"The server of target {target.name} is running: process {running.pid}, port {running.port}.")
    click.echo("dbt uses it from now on. Stop it with: dbt-arctic server stop")


@server.command()
@project_options
def stop(target: Target) -> None:
    """Stop the project's server."""
    ended = stop_server(target.project_root)
    click.echo("This project has no running server." if ended is None else f"Stopped process {ended.pid}.")


@server.command()
@json_option
@project_options
@click.pass_context
def status(context: click.Context, target: Target, as_json: bool) -> None:
    """Show the project's server. Exits with 1 if the target has no server that it can use."""
    project = target.project_root
    settings = _embedded_settings(target)
    found = read_server(project)
    if found is None or not found.is_alive():
        if as_json:
            print_json(None)
        click.echo("This project has no running server. Start one with: dbt-arctic server start", err=as_json)
        context.exit(1)
    is_used = target.credentials.use_server and usable_server(project, settings) is not None
    described = _described(found, target, is_used)
    if as_json:
        print_json({**described, "usable": is_used})
    else:
        for name, value in described.items():
            click.echo(f"{name + ':':<11}{value}")
    if not is_used:
        click.echo(_why_unused(target), err=as_json)
        context.exit(1)


def _embedded_settings(target: Target) -> SparkSettings:
    """The settings of a target that runs an embedded Spark.

    :raises ProfileError: the target does not use an embedded Spark.
    """
    if target.credentials.method != "session":
        raise ProfileError(
            f"The target already uses a server, by method: {target.credentials.method}.",
            where=f"profiles.yml, target {target.name}",
            why="the project's own server replaces the embedded Spark of method: session",
            fix="choose a target with method: session: --target NAME",
        )
    return target.credentials.spark_settings(str(target.project_root))


def _why_unused(target: Target) -> str:
    """Why a target does not use a running server, and what to do."""
    if not target.credentials.use_server:
        return f"Target {target.name} uses no server: the profile sets use_server: false."
    return (
        "The server runs with settings that differ from this target's. "
        "Run dbt-arctic server stop, then dbt-arctic server start."
    )


def _described(found: Server, target: Target, is_used: bool) -> dict[str, str]:
    started = dt.datetime.fromtimestamp(found.started_at, dt.timezone.utc)
    return {
        "project": found.project,
        "used by": f"target {target.name}" if is_used else f"not by target {target.name}",
        "process": str(found.pid),
        "port": str(found.port),
        "since": f"{started:%Y-%m-%d %H:%M:%S} UTC",
        "warehouse": found.warehouse,
        "master": f"{found.master}, {found.driver_memory} of memory",
        "log": found.log,
    }
