"""The files that ``dbt-arctic ingest init`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from dbt_arctic.errors import ConfigError


@dataclass(frozen=True)
class ScaffoldWriter:
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

    def conclude(self, source: str, written: Sequence[Path], text: str) -> None:
        """Print what was written, and what to do next."""
        click.echo()
        for path in written:
            click.echo(f"wrote {path}")
        click.echo(f"\n{text}\n    dbt build --select {self.folder(source)}")


__all__ = ["ScaffoldWriter"]
