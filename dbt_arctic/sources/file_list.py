"""The file list of a model and a source: a table with every file of the source that the model has found.

A model consumes its file list as it consumes any other Iceberg table: its commit records the snapshot up to
which it has read the list. So which files a model has read is a part of its own commit, in a few bytes.

Columns: ``path`` STRING, ``modified_ms`` BIGINT (UTC milliseconds since the epoch), ``size_bytes`` BIGINT,
``found_at`` TIMESTAMP. Two runs may append the same file, so rows are a set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dbt_arctic.catalog.api import CatalogReader, ListedFile
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.version import FILE_LIST, PROPERTY_SOURCE, Consumed, is_outside, of_relations
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.store.state import plain_id

COLUMNS = ("path", "modified_ms", "size_bytes")
_S3 = ("s3", "s3a", "s3n")


def file_list_name(model: Name, source: str) -> Name:
    """The name of a model's file list of a source."""
    return model.sibling(f"{model.identifier}__{source.replace('.', '__')}{FILE_LIST}")


def replace_statement(name: Name, source: str, view: str) -> str:
    """SQL that creates a file list, or replaces its rows, with those of a view as in ``append_statement``.

    Earlier snapshots stay, so what earlier commits have consumed can still be read.
    """
    return (
        f"CREATE OR REPLACE TABLE {name.sql}\nUSING iceberg\n"
        f"TBLPROPERTIES ('format-version'='3', {literal(PROPERTY_SOURCE)}={literal(source)})\n"
        f"AS {_rows(view)}"
    )


def append_statement(name: Name, view: str) -> str:
    """SQL that appends files to a list.

    :param view: a temporary view with the columns of ``COLUMNS`` as strings.
    """
    return f"INSERT INTO {name.sql} ({quote_all((*COLUMNS, 'found_at'))})\n{_rows(view)}"


def empty_statement(name: Name) -> str:
    """SQL that removes all files from a list. Earlier snapshots stay, as in ``replace_statement``."""
    return f"DELETE FROM {name.sql}"


def file_lists(catalog: CatalogReader, model: Name) -> list[Name]:
    """A model's file lists that have files, also of sources that it no longer reads."""
    found, start = [], f"{model.identifier}__".lower()
    for entry in catalog.of(model).list_names(model.schema):
        lowered = entry.name.lower()  # some catalogs store names in lower case
        if not (lowered.startswith(start) and lowered.endswith(FILE_LIST)):
            continue
        state = catalog.of(model).load_table(model.schema, entry.name)
        if state is None or state.current_snapshot_id is None:
            continue
        # The list of another model, whose name only begins with this one's, does not have this name.
        own = file_list_name(model, state.properties.get(PROPERTY_SOURCE, ""))
        if own.identifier.lower() == lowered:
            found.append(own)
    return found


def _rows(view: str) -> str:
    return (
        "SELECT /*+ COALESCE(1) */ `path`, CAST(`modified_ms` AS BIGINT) AS `modified_ms`, "
        "CAST(`size_bytes` AS BIGINT) AS `size_bytes`, current_timestamp() AS `found_at`\n"
        f"FROM {quote(view)}"
    )


def last_list(
    catalog: CatalogReader, name: Name, source: str, last_consumed: Mapping[str, Consumed]
) -> tuple[Name, Consumed] | None:
    """The file list of a source that a model has consumed, and up to which version; ``None`` for none.

    A clone, or a table that was renamed, has consumed the list of its original.

    :param name: of the model's own list.
    :param last_consumed: what the model has consumed, by dotted name.
    """
    if name.dotted in last_consumed:
        return name, last_consumed[name.dotted]
    for dotted, consumed in of_relations(last_consumed).items():
        if is_outside(consumed):
            continue
        other = Name(*dotted.split(".", 2))
        state = catalog.of(other).load_table(other.schema, other.identifier)
        if state is None or state.properties.get(PROPERTY_SOURCE) != source:
            continue
        if plain_id(state) == consumed.table_id:
            return other, consumed
    return None


def load_files(catalog: CatalogReader, name: Name, snapshot_id: int | None) -> frozenset[ListedFile]:
    """The files of a list at a snapshot; none without a snapshot."""
    if snapshot_id is None:
        return frozenset()
    rows = catalog.of(name).read_rows(name.schema, name.identifier, COLUMNS, snapshot_id)
    return frozenset(map(ListedFile._make, rows))


def as_addressed(files: frozenset[ListedFile], folder: str) -> frozenset[ListedFile]:
    """Listed files with the scheme of a folder: ``s3``, ``s3a`` and ``s3n`` name the same objects.

    >>> one = ListedFile("s3a://shop/clicks/a.json", 1, 2)
    >>> [file.path for file in as_addressed(frozenset([one]), "s3://shop/clicks")]
    ['s3://shop/clicks/a.json']
    """
    scheme = folder.partition("://")[0]
    first = next(iter(files), None)  # all files of a list have the scheme of one run
    if first is None or scheme not in _S3 or first.path.startswith(f"{scheme}://"):
        return files
    parts = ((file, file.path.partition("://")) for file in files)
    return frozenset(
        file._replace(path=f"{scheme}://{rest}") if other in _S3 else file for file, (other, _, rest) in parts
    )


def refuse_renamed(
    catalog: CatalogReader,
    source: FileSource,
    declared: Collection[str],
    present: Collection[ListedFile],
    last_consumed: Mapping[str, Consumed],
    model: str,
) -> None:
    """Refuse to read files again that a model has read as a source that is no longer declared.

    :param source: which the model has not read.
    :param declared: the names of all sources.
    :param present: the files of the source.
    :raises ConfigError: the model has read some of them.
    """
    for dotted, consumed in of_relations(last_consumed).items():
        if is_outside(consumed):
            continue
        name = Name(*dotted.split(".", 2))
        state = catalog.of(name).load_table(name.schema, name.identifier)
        other = "" if state is None else state.properties.get(PROPERTY_SOURCE, "")
        if not other or other in declared:
            continue
        read = consumed_files(catalog, (name, consumed), model) or frozenset()
        if not as_addressed(read, source.path).isdisjoint(present):
            raise ConfigError(
                f"{model} has read files of the source {source.name} as the source {other}",
                where=model,
                why=f"{other} is no longer declared, and a run would read its files again",
                fix=f"keep the name {other}; or build the table again: "
                f"dbt run --full-refresh --select {model}",
            )


def as_rows(files: Iterable[ListedFile]) -> list[tuple[str, int, int]]:
    """The rows that list files, in the order of ``COLUMNS``."""
    return [(file.path, file.modified_ms, file.size_bytes) for file in sorted(files)]


def consumed_files(
    catalog: CatalogReader, last: tuple[Name, Consumed] | None, model: str
) -> frozenset[ListedFile] | None:
    """The files that a model has read; ``None`` if it has read nothing.

    :param last: what its last commit consumed, and of which file list.
    :raises VersionUnavailable: the file list has lost that version.
    """
    if last is None:
        return None
    name, consumed = last
    state = catalog.of(name).load_table(name.schema, name.identifier)
    at = consumed.snapshot_id
    if state is None or consumed.table_id != plain_id(state):
        why = f"{name} was dropped, so it is unknown which files the model has read"
    elif at not in {None, *(snapshot.snapshot_id for snapshot in state.snapshots)}:
        why = f"the snapshot {at} of {name} was expired by another tool than dbt-arctic expire"
    else:
        return load_files(catalog, name, at)
    raise VersionUnavailable(
        f"the list of the files that {model} has read is not available",
        where=model,
        why=why,
        fix=f"read all files again: dbt run --full-refresh --select {model}",
    )


__all__ = [
    "COLUMNS",
    "PROPERTY_SOURCE",
    "append_statement",
    "as_addressed",
    "as_rows",
    "consumed_files",
    "empty_statement",
    "file_list_name",
    "file_lists",
    "last_list",
    "load_files",
    "refuse_renamed",
    "replace_statement",
]
