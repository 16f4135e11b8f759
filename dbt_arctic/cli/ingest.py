"""``dbt-arctic ingest``: writes the dbt files that load data from outside, shows what is new, and replays
rejected rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.cli.options import FOLDER, json_option, project_options
from dbt_arctic.cli.output import print_json, print_table, shown_bytes
from dbt_arctic.engine.file_sample import sample_file
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.database_preview import TablePreview
from dbt_arctic.sources.infer_tables import SAMPLED_FILES, SAMPLED_ROWS, TableDraft, draft_tables
from dbt_arctic.sources.read_preview import ReadPreview
from dbt_arctic.sources.scaffold import model_sql, properties, source_name

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.group()
def ingest() -> None:
    """Load data from outside the warehouse."""


@ingest.command()
@click.argument("folder")
@click.option("--source", help="Name of the dbt source. Default: the name of the folder.")
@click.option("--prefix", default="", help="Put this before the name of each model.")
@click.option("--into", metavar="FOLDER", help="Folder of the new files. Default: models/<source>.")
@click.option("--dry-run", is_flag=True, help="Only print the files.")
@click.option("--project-dir", type=FOLDER, help="Folder of dbt_project.yml.")
def init(
    folder: str, source: str | None, prefix: str, into: str | None, dry_run: bool, project_dir: Path | None
) -> None:
    """Write a source, models and tests for the data files in FOLDER.

    Each subfolder is a table. Files next to them are one table for each beginning of their names:
    orders_1.csv and orders_2.csv are orders. The columns, types and keys are guessed from a sample.
    No data is loaded, Spark does not start, and an existing file is never changed.
    """
    from dbt_arctic.adapter.project import find_project, model_folders  # imports dbt, which takes a second

    project = find_project(project_dir)
    root = _local(folder, project)
    sampler = partial(sample_file, rows=SAMPLED_ROWS)
    tables = draft_tables(str(root), list_files(str(root), {}), sampler)
    source = source or source_name(root.name)
    models = Path(into) if into else Path(model_folders(project)[0], source)
    texts = _texts(project, models, source, prefix, tables)
    if dry_run:
        for path, text in texts.items():
            click.echo(f"# {path}\n{text}")
        return
    _refuse_existing(project, model_folders(project), texts)
    for path, text in texts.items():
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    _show(tables)
    for path in texts:
        click.echo(f"wrote {path}")
    click.echo(
        f"\nThe columns and keys were guessed from {SAMPLED_FILES} files of each table at most, and from the "
        f"first {SAMPLED_ROWS:,} rows of each. Review them, and then load the data:\n"
        f"    dbt build --select {models}"
    )


_SELECT = click.option(
    "--select", "-s", multiple=True, help="Only these models, in dbt's syntax. Repeatable. Default: all."
)


@ingest.command()
@_SELECT
@json_option
@project_options
def plan(target: Target, select: tuple[str, ...], as_json: bool) -> None:
    """Show what the next run of each model would read from its sources of files and databases. Spark does not
    start."""
    found = _look(target, select)
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        click.echo("No selected model pulls from a source of files or a database.")
    else:
        _show_previews([one for one in found if isinstance(one, ReadPreview)])
        _show_tables([one for one in found if isinstance(one, TablePreview)])


@ingest.command()
@_SELECT
@project_options
@click.pass_context
def replay(context: click.Context, target: Target, select: tuple[str, ...]) -> None:
    """Take rejected rows again, after the columns of a source or its on_bad_row were changed.

    Runs the models that have rejected rows. Each row that fits now is removed from the rejected rows in the
    same commit that adds it to the model. New files are read as well.
    """
    from dbt_arctic.adapter.source_commands import replay_rejected

    before = {(one.model, one.source): one for one in _files(target, select) if one.rejected}
    if not before:
        click.echo("No selected model has rejected rows.")
        return
    models = sorted({model for model, _ in before})
    succeeded = replay_rejected(target, models)
    after = {(one.model, one.source): one for one in _files(target, models)}
    print_table(
        {"model": "name", "source": "name", "rejected before": "number", "now": "number"},
        [
            [*key, f"{one.rejected:,}", f"{after[key].rejected:,}" if key in after else "?"]
            for key, one in sorted(before.items())
        ],
    )
    context.exit(0 if succeeded else 1)


def _files(target: Target, select: Sequence[str]) -> list[ReadPreview]:
    return [one for one in _look(target, select) if isinstance(one, ReadPreview)]


def _look(target: Target, select: Sequence[str]) -> list[ReadPreview | TablePreview]:
    from dbt_arctic.adapter.operator import operating
    from dbt_arctic.adapter.source_commands import preview_sources

    with operating(target, "ingest plan") as operator:
        return preview_sources(operator, target, select)


def _show_tables(found: Sequence[TablePreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "rows": "number",
            "from": "text",
            "deletes": "text",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                f"about {one.rows:,} (all)" if one.reads_all else f"{one.rows:,}",
                one.since,
                "keys are compared" if one.deletes else "",
                one.problem,
            ]
            for one in found
        ],
    )


def _show_previews(found: Sequence[ReadPreview]) -> None:
    if not found:
        return
    print_table(
        {
            "model": "name",
            "source": "name",
            "files": "number",
            "size": "number",
            "changed": "number",
            "rejected": "number",
            "dropped": "number",
            "problem": "text",
        },
        [
            [
                one.model,
                one.source,
                f"{one.files:,}" + (" (all)" if one.reads_all else ""),
                shown_bytes(one.size_bytes),
                f"{one.changed:,}" if one.changed else "",
                f"{one.rejected:,}" if one.rejected else "",
                f"{one.dropped:,}" if one.dropped else "",
                one.problem,
            ]
            for one in found
        ],
    )


def _local(folder: str, project: Path) -> Path:
    """The folder of the data: as the shell names it, or below the project.

    :raises ConfigError: it does not exist, or is in an object store.
    """
    local = local_path(folder)
    if local is None:
        raise ConfigError(
            f"{folder} is not a local folder",
            where=folder,
            why="samples are read from the local disk only",
            fix="copy some files of each table to a local folder, run the command for it, and change the "
            "path in the YAML file that it writes",
        )
    for place in (Path(local).resolve(), Path(project, local).resolve()):
        if place.is_dir():
            return place
    raise ConfigError(
        f"the folder {folder} does not exist",
        where=str(Path(local).resolve()),
        fix="name the folder that contains the files",
    )


def _texts(
    project: Path, models: Path, source: str, prefix: str, tables: list[TableDraft]
) -> dict[Path, str]:
    """The content of each new file, by its path below the project."""
    folders = {
        table.name: os.path.relpath(table.folder, project)
        if Path(table.folder).is_relative_to(project)
        else table.folder
        for table in tables
    }
    declared = yaml.safe_dump(
        properties(source, tables, folders, prefix), sort_keys=False, allow_unicode=True
    )
    return {
        models / f"{source}.yml": declared,
        **{models / f"{prefix}{table.name}.sql": model_sql(source, table) for table in tables},
    }


def _refuse_existing(project: Path, folders: Iterable[str], texts: Mapping[Path, str]) -> None:
    """Refuse to change a file, or to define a model that the project has.

    :param folders: the folders of the project's models.
    """
    found = [f"file {path}" for path in texts if (project / path).exists()]
    names = {path.stem for path in texts if path.suffix == ".sql"}
    models = (path for folder in folders for path in sorted((project / folder).rglob("*")))
    found += [
        f"model {path.stem}" for path in models if path.suffix in (".sql", ".py") and path.stem in names
    ]
    if found:
        raise ConfigError(
            f"the project has the {found[0]} already",
            where=str(project),
            why="existing files are never changed",
            fix="choose other names with --prefix or --source, or delete the file",
        )


def _show(tables: list[TableDraft]) -> None:
    print_table(
        {"table": "name", "files": "number", "format": "name", "columns": "number", "key": "name"},
        [
            [
                table.name,
                f"{table.files:,}",
                table.format,
                str(len(table.columns)),
                table.key or "none: rows are only appended",
            ]
            for table in tables
        ],
    )
    click.echo()
