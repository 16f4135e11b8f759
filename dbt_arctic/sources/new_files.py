"""Decides which files of a source a model has to read. Pure."""

from __future__ import annotations

from collections.abc import Collection

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.errors import SourceFileChanged
from dbt_arctic.human_readable import counted
from dbt_arctic.sources.file_settings import FileSource

_SHOWN = 3


def new_files(
    source: FileSource,
    present: Collection[ListedFile],
    listed: Collection[ListedFile],
    consumed: Collection[ListedFile] | None,
    model: str,
) -> list[ListedFile]:
    """The files that a model has not read, in the order of their paths.

    :param present: the files in the folder now.
    :param listed: the file list as it is: what the model has read, and what runs that failed have found.
    :param consumed: the file list at the version that the model has consumed; ``None`` if it has consumed
        nothing. It then reads every file that is present.
    :raises SourceFileChanged: a file has changed since the model read it, and the source has
        ``changed_files: fail``; or a file that the model has not read is gone.
    """
    if consumed is None:
        return sorted(present)
    unread = set(present).difference(consumed)
    # In most runs, the list has no other files than those that were read.
    only_found = set() if listed is consumed else set(listed).difference(consumed)
    if not unread and not only_found:
        return []
    read = {file.path for file in consumed}
    changed = sorted(file for file in unread if file.path in read)
    if changed and source.changed_files == "fail":
        raise SourceFileChanged(
            f"{_count(changed)} of the source {source.name} changed after {model} had read "
            f"{'it' if len(changed) == 1 else 'them'}: {_shown(changed)}",
            where=model,
            why="rows that are no longer in the file stay in the table, and the others would be read again",
            fix=f"read all files again: dbt run --full-refresh --select {model}; or set in the source's "
            "meta.arctic changed_files: reread (right if each row has a key) or changed_files: ignore",
        )
    if source.changed_files == "ignore":
        unread.difference_update(changed)
    paths = {file.path for file in present} if only_found else set()
    gone = sorted(file for file in only_found if file.path not in paths and file.path not in read)
    if gone and source.changed_files != "ignore":
        raise SourceFileChanged(
            f"{_count(gone)} of the source {source.name} disappeared before {model} read "
            f"{'it' if len(gone) == 1 else 'them'}: {_shown(gone)}",
            where=model,
            why=f"an earlier run found {'it' if len(gone) == 1 else 'them'} in {source.path}",
            fix="put the files back, corrected or without rows; or set changed_files: ignore in the source's "
            "meta.arctic for one run, which leaves them out; or build the table from the other files: "
            f"dbt run --full-refresh --select {model}",
        )
    return sorted(unread)


def _count(files: Collection[ListedFile]) -> str:
    return "a file" if len(files) == 1 else counted(len(files), "file")


def _shown(files: list[ListedFile]) -> str:
    rest = "" if len(files) <= _SHOWN else ", ..."
    return ", ".join(file.path for file in files[:_SHOWN]) + rest


__all__ = ["new_files"]
