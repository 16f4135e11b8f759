"""What a model has not read of a source outside the catalog: how much, and since when. Starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from dbt_arctic.brokers.api import Broker, FirstMessage
from dbt_arctic.catalog.api import CatalogReader, ListedFile
from dbt_arctic.errors import ArcticError, SourceFileChanged, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.database_preview import TablePreview
from dbt_arctic.sources.file_list import (
    as_addressed,
    consumed_files,
    file_list_name,
    last_list,
    load_files,
)
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.kafka_offsets import Range, plan_offsets
from dbt_arctic.sources.kafka_settings import KafkaSource
from dbt_arctic.sources.new_files import new_files


@dataclass(frozen=True)
class UnreadFiles:
    """The files of a source that the next run of a model would read.

    :param reads_all: whether the model has read nothing of the source yet.
    :param changed: how many files have changed since the model read them.
    :param read_ms: the time of the file list that the model has consumed; ``None`` if it has consumed none.
    :param problem: why the run would fail; empty if nothing prevents it.
    :param all_files: how many files the folder has, read or not.
    :param all_bytes: their size.
    """

    files: tuple[ListedFile, ...]
    reads_all: bool
    changed: int
    read_ms: int | None
    problem: str = ""
    all_files: int = 0
    all_bytes: int = 0


Unit = Literal["commit", "file", "message", "row", "change"]


class Positions(NamedTuple):
    """How far a model has read, and how far it could, in the terms of the upstream.

    :param read: empty if it has read nothing.
    :param end: empty if it is not known.
    """

    read: str = ""
    end: str = ""


NO_POSITIONS = Positions()


class RefreshSize(NamedTuple):
    """What a full refresh would read of an upstream.

    :param number: about how much; ``None`` if it is not known.
    :param size_bytes: ``None`` if it is not known.
    """

    unit: Unit
    number: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True)
class Unread:
    """What a model has not read of a source.

    :param since_ms: since when the oldest part has been waiting; ``None`` if nothing has.
    :param problem: why it is unknown, or why the next run would fail; else empty.
    """

    source: str
    unit: Unit
    count: int = 0
    since_ms: int | None = None
    size_bytes: int | None = None
    problem: str = ""
    positions: Positions = NO_POSITIONS
    full_refresh: RefreshSize | None = None


def find_unread_files(
    catalog: CatalogReader,
    source: FileSource,
    model: str,
    target: Name,
    consumed: Mapping[str, Consumed],
) -> UnreadFiles:
    """Compare the folder of a source with what a model has consumed.

    :param target: the table of the model.
    :param consumed: what it has consumed, by dotted name.
    """
    present = {file for file in catalog.list_files(source.path) if source.accepts(file.path)}
    name = file_list_name(target, source.name)
    last = last_list(catalog, name, source.name, consumed)
    read, problem = None, ""
    try:
        read = consumed_files(catalog, last, model)
        read = None if read is None else as_addressed(read, source.path)
    except VersionUnavailable as error:
        problem = error.what
    state = catalog.of(name).load_table(name.schema, name.identifier)
    stored = load_files(catalog, name, None if state is None else state.current_snapshot_id)
    listed = as_addressed(stored, source.path)
    paths = {file.path for file in read or ()}
    changed = sum(file.path in paths for file in present - (read or frozenset()))
    try:
        files = new_files(source, present, listed, read, model)
    except SourceFileChanged as error:
        problem = problem or error.what
        files = new_files(replace(source, changed_files="ignore"), present, (), read, model)
    if problem and read is None:
        files = []
    read_ms, size = _read_ms(catalog, last), sum(file.size_bytes for file in present)
    return UnreadFiles(tuple(files), last is None, changed, read_ms, problem, len(present), size)


def unread_files(
    catalog: CatalogReader,
    source: FileSource,
    model: str,
    target: Name,
    consumed: Mapping[str, Consumed],
) -> Unread:
    """What a model has not read of a file source.

    A file has been waiting since its modification. It was not in the folder when the model read the folder
    last, so it has not been waiting for longer than that, even if a copy has kept an older time.
    """
    try:
        found = find_unread_files(catalog, source, model, target, consumed)
    except ArcticError as error:
        return Unread(source.name, "file", problem=error.what)
    since = min((max(file.modified_ms, found.read_ms or 0) for file in found.files), default=None)
    size = sum(file.size_bytes for file in found.files)
    full_refresh = RefreshSize("file", found.all_files, found.all_bytes)
    return Unread(
        source.name, "file", len(found.files), since, size, found.problem, full_refresh=full_refresh
    )


def unread_messages(
    source: KafkaSource, broker: Broker, model: str, last: Consumed | None, read_ms: int | None
) -> Unread:
    """What a model has not read of a topic. Offsets without a message (markers of transactions) count too.

    :param last: what the model has consumed; ``None`` for nothing.
    :param read_ms: the time of the commit that consumed it; ``None`` for nothing. A message that arrived
        while that run was active counts from this time.
    """
    try:
        topic = broker.offsets(source.topic, source.isolation == "read_committed")
        ranges = plan_offsets(source, topic, last, model).ranges
        first = broker.first_since(source.topic, len(topic.ends), read_ms or 0) if ranges else ()
    except ArcticError as error:
        return Unread(source.name, "message", problem=error.what)
    times = [_waiting_since(one, first[one.partition], read_ms) for one in ranges]
    since = min((at for at in times if at is not None), default=None)
    unread = {one.partition: one.start for one in ranges}
    read = [unread.get(at, end) for at, end in enumerate(topic.ends)]
    positions = Positions("" if last is None else _listed(read), _listed(topic.ends))
    kept = sum(max(end - start, 0) for start, end in zip(topic.starts, topic.ends, strict=True))
    count = sum(one.end - one.start for one in ranges)
    full_refresh = RefreshSize("message", kept)
    return Unread(source.name, "message", count, since, positions=positions, full_refresh=full_refresh)


def _listed(offsets: Sequence[int]) -> str:
    return ",".join(map(str, offsets))


def unread_rows(preview: TablePreview, since_ms: int | None) -> Unread:
    """What a model has not read of a table of a database.

    :param since_ms: the time of the commit that read it last, or of the newest commit of a model that has
        never read it; ``None`` if it has none. No row counts as waiting for longer.
    """
    waits = bool(preview.rows or preview.reads_all or preview.since)
    since = since_ms if waits else None
    positions, full_refresh = Positions(preview.since), RefreshSize("row", preview.all_rows)
    problem = preview.problem
    return Unread(
        preview.source,
        "row",
        preview.rows,
        since,
        problem=problem,
        positions=positions,
        full_refresh=full_refresh,
    )


def _waiting_since(unread: Range, first: FirstMessage | None, read_ms: int | None) -> int | None:
    """Since when the oldest unread message of a partition has been waiting.

    :param first: the first message of the partition that is not older than ``read_ms``.
    :returns: ``None`` if the partition has markers of transactions only.
    """
    is_oldest = first is not None and (first.offset == unread.start or read_ms is None)
    return first.at_ms if first is not None and is_oldest else read_ms


def _read_ms(catalog: CatalogReader, last: tuple[Name, Consumed] | None) -> int | None:
    """The time of the snapshot of a file list that a model has consumed."""
    if last is None:
        return None
    name, consumed = last
    state = catalog.of(name).load_table(name.schema, name.identifier)
    snapshots = () if state is None else state.snapshots
    return next((one.timestamp_ms for one in snapshots if str(one.snapshot_id) == consumed.version), None)


__all__ = [
    "NO_POSITIONS",
    "Positions",
    "RefreshSize",
    "Unit",
    "Unread",
    "UnreadFiles",
    "find_unread_files",
    "unread_files",
    "unread_messages",
    "unread_rows",
]
