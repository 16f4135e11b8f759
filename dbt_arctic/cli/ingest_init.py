"""``dbt-arctic ingest init``: writes the sources, models and tests that load a folder or a database."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.cli.options import FOLDER
from dbt_arctic.cli.output import print_table
from dbt_arctic.engine.file_sample import sample_file
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.database_scaffold import database_model_sql, database_properties
from dbt_arctic.sources.draft_database_tables import (
    DatabaseTableDraft,
    choose_tables,
    draft_database_table,
    draft_names,
    table_setting,
)
from dbt_arctic.sources.infer_tables import SAMPLED_FILES, SAMPLED_ROWS, TableDraft, draft_tables
from dbt_arctic.sources.scaffold import model_sql, properties, source_name

_URL_OF_PROFILE = ""


@dataclass(frozen=True)
class NewFiles:
    """Where the files of a new source are written.

    :param prefix: of the models' names.
    :param into: the folder; ``None`` for that of the source in the project's models.
    :param is_dry_run: whether the files are only printed.
    """

    project: Path
    prefix: str
    into: str | None
    is_dry_run: bool

    def folder(self, source: str) -> Path:
        """The folder of a source, relative to the project."""
        from dbt_arctic.adapter.project import model_folders

        return Path(self.into) if self.into else Path(model_folders(self.project)[0], source)

    def write(self, source: str, declared: Mapping[str, Any], models: Mapping[str, str]) -> list[Path]:
        """Write the files, or print them.

        :param declared: the content of the YAML file.
        :param models: SQL by name, without the prefix.
        :return: the files that were written.
        :raises ConfigError: a file or a model of a name exists.
        """
        folder = self.folder(source)
        text = yaml.safe_dump(dict(declared), sort_keys=False, allow_unicode=True)
        texts = {
            folder / f"{source}.yml": text,
            **{folder / f"{self.prefix}{name}.sql": sql for name, sql in models.items()},
        }
        if self.is_dry_run:
            for path, text in texts.items():
                click.echo(f"# {path}\n{text}")
            return []
        self._refuse_existing(texts)
        for path, text in texts.items():
            target = self.project / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return list(texts)

    def _refuse_existing(self, texts: Mapping[Path, str]) -> None:
        """Refuse to change a file, or to define a model that the project has."""
        from dbt_arctic.adapter.project import model_folders

        existing = [f"file {path}" for path in texts if (self.project / path).exists()]
        names = {path.stem for path in texts if path.suffix == ".sql"}
        models = (
            path
            for folder in model_folders(self.project)
            for path in sorted((self.project / folder).rglob("*"))
        )
        existing += [
            f"model {path.stem}" for path in models if path.suffix in (".sql", ".py") and path.stem in names
        ]
        if existing:
            raise ConfigError(
                f"the project has the {existing[0]} already",
                where=str(self.project),
                why="existing files are never changed",
                fix="choose other names with --prefix, --into or another source, or delete the file",
            )


@click.command()
@click.argument("folder", metavar="FOLDER_OR_SOURCE")
@click.option("--source", help="Name of the dbt source. Default: the name of the folder.")
@click.option(
    "--jdbc",
    is_flag=False,
    flag_value=_URL_OF_PROFILE,
    metavar="[URL]",
    help="Load tables of this database. Default: the url in the profile, under jdbc and the source.",
)
@click.option("--table", "tables", multiple=True, metavar="GLOB", help="Only these tables. Repeatable.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Not these tables. Repeatable.")
@click.option("--compare-deletes", is_flag=True, help="Delete rows that are no longer in the database.")
@click.option("--prefix", default="", help="Put this before the name of each model.")
@click.option("--into", metavar="FOLDER", help="Folder of the new files. Default: models/<source>.")
@click.option("--dry-run", is_flag=True, help="Only print the files.")
@click.option("--project-dir", type=FOLDER, help="Folder of dbt_project.yml.")
@click.option("--profiles-dir", type=FOLDER, help="Folder of profiles.yml.")
@click.option("--target", "-t", help="Target of the profile.")
def init(
    folder: str,
    source: str | None,
    jdbc: str | None,
    tables: tuple[str, ...],
    exclude: tuple[str, ...],
    compare_deletes: bool,
    prefix: str,
    into: str | None,
    dry_run: bool,
    project_dir: Path | None,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Write a source, models and tests for a folder of data files, or for the tables of a database.

    In a folder, each subfolder is a table. Files next to them are one table for each beginning of their
    names: orders_1.csv and orders_2.csv are orders. The columns, types and keys are guessed from a sample.

    With --jdbc, the argument is the name of the new source, and columns and keys are those of the database:

    \b
        dbt-arctic ingest init crm --jdbc postgresql://reader@db.example.com/crm --table 'public.*'

    The password is in the profile: jdbc: {crm: {password: ...}}. No data is loaded, Spark does not start, and
    an existing file is never changed.
    """
    from dbt_arctic.adapter.project import find_project  # imports dbt, which takes a second

    files = NewFiles(find_project(project_dir), prefix, into, dry_run)
    if jdbc is None:
        if tables or exclude or compare_deletes:
            raise click.UsageError("--table, --exclude and --compare-deletes need --jdbc")
        _init_folder(files, folder, source)
        return
    if source is not None:
        raise click.UsageError("with --jdbc, the argument is the name of the source, without --source")
    logins = _logins(files.project, profiles_dir, target)
    _init_database(files, folder, jdbc, logins, tables, exclude, compare_deletes)


def _init_folder(files: NewFiles, folder: str, source: str | None) -> None:
    root = _local(folder, files.project)
    sampler = partial(sample_file, rows=SAMPLED_ROWS)
    tables = draft_tables(str(root), list_files(str(root), {}), sampler)
    source = source or source_name(root.name)
    folders = {
        table.name: os.path.relpath(table.folder, files.project)
        if Path(table.folder).is_relative_to(files.project)
        else table.folder
        for table in tables
    }
    declared = properties(source, tables, folders, files.prefix)
    written = files.write(source, declared, {table.name: model_sql(source, table) for table in tables})
    if not written:
        return
    _show_files(tables)
    _conclude(
        files.folder(source),
        written,
        f"The columns and keys were guessed from {SAMPLED_FILES} files of each table at most, and from the "
        f"first {SAMPLED_ROWS:,} rows of each. Review them, and then load the data:",
    )


def _init_database(
    files: NewFiles,
    source: str,
    url: str,
    logins: Mapping[str, Mapping[str, str]],
    patterns: Sequence[str],
    excluded: Sequence[str],
    compares_keys: bool,
) -> None:
    from dbt_arctic.adapter.database_sources import database_of, list_tables

    if not url and not logins.get(source, {}).get("url"):
        raise ConfigError(
            f"the profile has no database {source}",
            where="profiles.yml, jdbc",
            why="--jdbc without a URL takes that of the profile",
            fix=f"write --jdbc postgresql://user@host:5432/database, or add jdbc: {{{source}: {{url: ...}}}}",
        )
    settings = {"from": "jdbc", **({"url": url} if url else {})}
    where = f"the database of {source}"
    declared = {"name": f"{source}.tables", "settings": settings, "where": where}
    chosen = choose_tables(list_tables(declared, logins), patterns, excluded, where)
    drafts = []
    for listed, name in draft_names(chosen).items():
        one = {**declared, "settings": {**settings, "table": table_setting(listed)}}
        seen = database_of(one, logins).begin()
        seen.close()
        drafts.append(draft_database_table(name, listed, seen.table))
    keyed = [draft for draft in drafts if draft.key]
    if not keyed:
        raise ConfigError(
            "none of these tables has a primary key",
            where=where,
            why=f"rows of {', '.join(draft.table for draft in drafts[:10])} cannot be distinguished",
            fix="write the source yourself, with a unique_key in its model: see docs/how-to/"
            "load-a-database-table.md",
        )
    written = files.write(
        source,
        database_properties(source, url, keyed, files.prefix, compares_keys),
        {draft.name: database_model_sql(source, draft, compares_keys) for draft in keyed},
    )
    if not written:
        return
    _show_database(drafts)
    _conclude(
        files.folder(source),
        written,
        "The cursors were guessed from the names of columns. A cursor must grow with each change of a row: "
        "otherwise, changes are not found. Remove it where that is not certain. A run then compares a "
        "fingerprint of all rows, and reads all if it differs. Review the files, and then load the data:",
    )


def _logins(project: Path, profiles_dir: Path | None, target: str | None) -> Mapping[str, Mapping[str, str]]:
    from dbt_arctic.adapter.project import load_target

    return load_target(project, profiles_dir, target).credentials.databases


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
            "path in the YAML file that it writes; for a database, add --jdbc",
        )
    for place in (Path(local).resolve(), Path(project, local).resolve()):
        if place.is_dir():
            return place
    raise ConfigError(
        f"the folder {folder} does not exist",
        where=str(Path(local).resolve()),
        fix="name the folder that contains the files; for the tables of a database, add --jdbc",
    )


def _conclude(folder: Path, written: Sequence[Path], text: str) -> None:
    click.echo()
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"\n{text}\n    dbt build --select {folder}")


def _show_files(tables: Sequence[TableDraft]) -> None:
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


def _show_database(drafts: Sequence[DatabaseTableDraft]) -> None:
    print_table(
        {
            "table": "name",
            "rows": "number",
            "columns": "number",
            "left out": "name",
            "key": "name",
            "cursor": "name",
            "model": "name",
        },
        [
            [
                draft.table,
                "unknown" if draft.rows is None else f"{draft.rows:,}",
                str(len(draft.columns)),
                ", ".join(draft.left_out),
                ", ".join(draft.key) or "none",
                draft.cursor if draft.key else "",
                draft.name if draft.key else "not written: it has no primary key",
            ]
            for draft in drafts
        ],
    )


__all__ = ["NewFiles", "init"]
