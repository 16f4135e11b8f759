"""``dbt-arctic ingest init``: writes the sources, models and tests that load data from outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dbt_arctic.cli.ingest_database import init_database
from dbt_arctic.cli.ingest_folder import init_folder
from dbt_arctic.cli.ingest_topics import init_topics
from dbt_arctic.cli.options import FOLDER
from dbt_arctic.cli.scaffold_writer import ScaffoldWriter
from dbt_arctic.sources.database_scaffold import Deletes

_URL_OF_PROFILE = ""


@click.command(short_help="Write a source, models and tests for data to load.")
@click.argument("folder", metavar="FOLDER_OR_SOURCE")
@click.option("--source", help="Name of the dbt source.  [default: the name of the folder]")
@click.option(
    "--jdbc",
    is_flag=False,
    flag_value=_URL_OF_PROFILE,
    metavar="[URL]",
    help="Load tables of this database.  [default: the url in the profile, under jdbc and the source]",
)
@click.option("--kafka", metavar="HOST:PORT", help="Load topics of this broker.")
@click.option("--registry", metavar="URL", help="Look up Avro schemas in this registry.")
@click.option("--topic", "topics", multiple=True, metavar="GLOB", help="Only these topics. Repeatable.")
@click.option("--table", "tables", multiple=True, metavar="GLOB", help="Only these tables. Repeatable.")
@click.option(
    "--exclude", multiple=True, metavar="GLOB", help="Leave out these tables or topics. Repeatable."
)
@click.option(
    "--slot",
    metavar="NAME",
    help="Capture all changes from the log of a PostgreSQL database, through this slot.",
)
@click.option("--follow", is_flag=True, help="Capture all changes from the log of a MariaDB database.")
@click.option("--compare-deletes", is_flag=True, help="Delete rows that are no longer in the database.")
@click.option("--prefix", default="", help="Prefix for the name of each model.")
@click.option("--into", metavar="FOLDER", help="Folder of the new files.  [default: models/<source>]")
@click.option("--dry-run", is_flag=True, help="Only print the files.")
@click.option("--project-dir", type=FOLDER, help="Folder of dbt_project.yml.")
@click.option("--profiles-dir", type=FOLDER, help="Folder of profiles.yml.")
@click.option("--target", "-t", help="Target of the profile.")
def init(
    folder: str,
    source: str | None,
    jdbc: str | None,
    kafka: str | None,
    registry: str | None,
    topics: tuple[str, ...],
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    slot: str | None,
    follow: bool,
    compare_deletes: bool,
    prefix: str,
    into: str | None,
    dry_run: bool,
    project_dir: Path | None,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Write a source, models and tests for a folder of data files, tables of a database, or Kafka topics.

    In a folder, each subfolder is a table. Files next to the subfolders are grouped into tables by the
    beginning of their names: orders_1.csv and orders_2.csv are orders. The columns, types and keys are
    guessed from a sample.

    With --jdbc or --kafka, the argument is the name of the new source:

    \b
        dbt-arctic ingest init crm --jdbc postgresql://reader@db.example.com/crm --table 'public.*'
        dbt-arctic ingest init shop --kafka broker.example.com:9092 --topic 'shop.*'

    Passwords belong in the profile, under jdbc and kafka. No data is loaded, Spark does not start, and an
    existing file is never changed.
    """
    from dbt_arctic.adapter.project import find_project, load_target  # imports dbt, which takes a second

    if kafka is None and registry is not None:
        raise click.UsageError("--registry needs --kafka")
    if (slot is not None or follow) and (jdbc is None or compare_deletes):
        option = "--follow" if follow else "--slot"
        raise click.UsageError(f"{option} needs --jdbc, and finds deleted rows without --compare-deletes")
    _check_options(source, jdbc, kafka, topics, tables, exclude, compare_deletes)
    files = ScaffoldWriter(find_project(project_dir), prefix, into, dry_run)
    if jdbc is None and kafka is None:
        init_folder(files, folder, source)
        return
    profile = load_target(files.project, profiles_dir, target).credentials
    if kafka is not None:
        init_topics(files, folder, kafka, profile.kafka_properties, topics, exclude, registry)
    elif jdbc is not None:
        deletes: Deletes = "from_log" if slot or follow else "compare" if compare_deletes else "ignore"
        init_database(files, folder, jdbc, profile.databases, tables, exclude, deletes, slot or "")


def _check_options(
    source: str | None,
    jdbc: str | None,
    kafka: str | None,
    topics: Sequence[str],
    tables: Sequence[str],
    exclude: Sequence[str],
    compare_deletes: bool,
) -> None:
    """Refuse options that belong to another kind of source.

    :raises UsageError: there is one.
    """
    if jdbc is not None and kafka is not None:
        raise click.UsageError("choose one of --jdbc and --kafka")
    if jdbc is None and (tables or compare_deletes):
        raise click.UsageError("--table and --compare-deletes need --jdbc")
    if kafka is None and topics:
        raise click.UsageError("--topic needs --kafka")
    if jdbc is None and kafka is None and exclude:
        raise click.UsageError("--exclude needs --jdbc or --kafka")
    if source is not None and (jdbc is not None or kafka is not None):
        raise click.UsageError("with --jdbc or --kafka, the argument is the name of the source, not --source")


__all__ = ["init"]
