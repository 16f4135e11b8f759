"""What the next run of a model would read of a source of files, from listings and metadata alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.unread import find_unread_files
from dbt_arctic.store.rejected_table import counts, last_rejected, rejected_name


@dataclass(frozen=True)
class ReadPreview:
    """The next run of a model, as far as one source is concerned.

    :param reads_all: whether the model has read nothing of the source yet.
    :param files: how many files it would read.
    :param changed: how many files have changed since the model read them.
    :param rejected: how many rows are stored because they did not fit.
    :param dropped: how many rows were dropped because they did not fit.
    :param problem: why the run would fail; empty if nothing is in its way.
    """

    model: str
    source: str
    reads_all: bool
    files: int
    size_bytes: int
    changed: int
    rejected: int
    dropped: int
    problem: str = ""


def preview_read(
    catalog: CatalogReader,
    source: FileSource,
    model: str,
    target: Name,
    consumed: Mapping[str, Consumed],
) -> ReadPreview:
    """What the next run would read.

    :param target: the table of the model.
    :param consumed: what it has consumed, by dotted name.
    """
    unread = find_unread_files(catalog, source, model, target, consumed)
    rejected = last_rejected(catalog, rejected_name(target), consumed)
    kept, dropped = (0, 0) if rejected is None else counts(catalog, rejected).get(source.name, (0, 0))
    return ReadPreview(
        model,
        source.name,
        unread.reads_all,
        len(unread.files),
        sum(file.size_bytes for file in unread.files),
        unread.changed,
        kept,
        dropped,
        unread.problem,
    )


__all__ = ["ReadPreview", "preview_read"]
