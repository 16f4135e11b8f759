"""``dbt-arctic ingest init FOLDER``: a source and models for a folder of data files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.cli.output import print_table
from dbt_arctic.cli.scaffold_writer import ScaffoldWriter
from dbt_arctic.engine.file_sample import sample_file
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.infer_tables import SAMPLED_FILES, SAMPLED_ROWS, TableDraft, draft_tables
from dbt_arctic.sources.scaffold import model_sql, properties, source_name


def init_folder(files: ScaffoldWriter, folder: str, source: str | None) -> None:
    """Write a source and models for a folder of data files.

    :param source: the name of the source; ``None`` for that of the folder.
    :raises ConfigError: the folder does not exist, or its files cannot be read.
    """
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
    _show(tables)
    files.conclude(
        source,
        written,
        f"The columns and keys were guessed from {SAMPLED_FILES} files of each table at most, and from the "
        f"first {SAMPLED_ROWS:,} rows of each. Review them, and then load the data:",
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
            fix="copy some files of each table to a local folder (from S3: aws s3 cp --recursive), run the "
            "command for it, and change path in the YAML file that it writes to the folder in the store; for "
            "a database, add --jdbc, and for topics --kafka",
        )
    for place in (Path(local).resolve(), Path(project, local).resolve()):
        if place.is_dir():
            return place
    raise ConfigError(
        f"the folder {folder} does not exist",
        where=str(Path(local).resolve()),
        fix="name the folder that contains the files; for the tables of a database, add --jdbc, and for "
        "topics --kafka",
    )


def _show(tables: Sequence[TableDraft]) -> None:
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


__all__ = ["init_folder"]
