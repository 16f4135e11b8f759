"""``dbt-arctic openlineage``: OpenLineage events of what dbt last read and wrote. Starts no Spark."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.options import project_options
from dbt_arctic.errors import ArcticError, ConfigError, ServerUnreachable
from dbt_arctic.human_readable import counted
from dbt_arctic.secret import without_secrets

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target

KEY_VARIABLE = "OPENLINEAGE_API_KEY"
"""The environment variable with the token for a server, as in OpenLineage's own clients."""

_TIMEOUT_S = 30


@click.command(short_help="Write OpenLineage events of dbt's last command.")
@click.option(
    "--to",
    "destination",
    default="-",
    metavar="FILE|URL",
    help="A file to append to, one event per line, or the URL of a server.  [default: standard output]",
)
@click.option("--namespace", help="The namespace of the jobs.  [default: the project's name]")
@project_options
def openlineage(target: Target, destination: str, namespace: str | None) -> None:
    """Write OpenLineage events of dbt's last command: versions read and written, rows, bytes, column lineage.

    For a server, the variable OPENLINEAGE_API_KEY may contain a token.
    """
    from dbt_arctic.adapter.last_command import NodeRun, read_last_command
    from dbt_arctic.adapter.openlineage import Lineage, events_of
    from dbt_arctic.adapter.result_inputs import settings_of_meaning
    from dbt_arctic.adapter.target_session import target_session
    from dbt_arctic.auto.query_lineage import find_column_lineage
    from dbt_arctic.maintenance.written_versions import WrittenVersion, written_by

    command = read_last_command(target.artifacts)
    with target_session(target, "openlineage") as session:

        def written(node: NodeRun) -> WrittenVersion | None:
            since, until = (int(at.timestamp() * 1000) for at in (node.started, node.ended))
            run_id = f"{command.invocation_id}:{node.unique_id}"
            try:
                return written_by(session.catalog, node.name, run_id, since, until + 1)
            except ArcticError as error:  # of one table; the events of the others are sent
                click.echo(f"{node.name}: the event has no version\n{error}", err=True)
                return None

        def lineage(node: NodeRun) -> Lineage | None:
            if node.sql is None:
                return None
            settings = settings_of_meaning(target.credentials, node.config)
            return find_column_lineage(session.catalog, node.name, node.sql, settings)

        events = list(events_of(command, written, namespace, lineage))
    if destination == "-":
        for event in events:
            click.echo(json.dumps(event))
        return
    if destination.startswith(("http://", "https://")):
        send_events(events, destination)
    else:
        append_events(events, Path(destination))
    click.echo(f"{without_secrets(destination)}: {counted(len(events), 'event')}")


def append_events(events: Iterable[Any], file: Path) -> None:
    """Append events to a file, one a line. Its folder is created.

    :raises ConfigError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(event) + "\n" for event in events)
    except OSError as error:
        raise ConfigError(
            "the events could not be written",
            where=str(file),
            why=error.strerror or str(error),
            fix="give a file with --to, in a folder that you may write to",
        ) from error


def send_events(events: Iterable[Any], url: str) -> None:
    """Send events to a server, one after the other.

    :raises ConfigError: this is no URL.
    :raises ServerUnreachable: the server does not answer, or refuses an event.
    """
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {token}"
    for event in events:
        try:
            request = urllib.request.Request(url, json.dumps(event).encode(), headers, method="POST")
            urllib.request.urlopen(request, timeout=_TIMEOUT_S).close()
        except (InvalidURL, ValueError) as error:
            raise ConfigError(
                "the URL of --to cannot be used",
                where=without_secrets(url),
                why=str(error),
                fix="give it as http://host:port/path, with spaces as %20",
            ) from error
        except (HTTPException, OSError) as error:
            raise ServerUnreachable(
                "the events could not be sent",
                where=url,
                why=str(error),
                fix=f"check the URL of --to and {KEY_VARIABLE}; send again with the same command: the "
                "events have the same ids, so none counts twice",
            ) from error


__all__ = ["append_events", "openlineage", "send_events"]
