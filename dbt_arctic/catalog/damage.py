"""Errors for files that a catalog refers to and that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile
from typing import Literal

from dbt_arctic.errors import CatalogUnavailable


def unreadable_metadata(
    catalog: str, schema: str, name: str, kind: Literal["table", "view"], location: str, error: Exception
) -> CatalogUnavailable:
    """The error for a metadata file of a relation that is missing, unreachable or damaged."""
    relation = f"{catalog}.{schema}.{name}"
    if kind == "view":
        # Spark drops a view whose file is missing, but not one whose file is damaged.
        remedy = f"move it away, `DROP VIEW {relation}` and build it again"
    else:  # Spark cannot drop a table whose metadata it cannot read
        remedy = (
            "delete the table's row from the catalog's own database and register an older metadata file:"
            f" `CALL {catalog}.system.register_table('{schema}.{name}', '<path>')`"
        )
    return CatalogUnavailable(
        f"The metadata of the {kind} `{relation}` cannot be read.",
        where=location or f"the catalog's row of {relation}",
        why=_cause(error),
        fix=_remedy(error, f"restore the file from a backup, or {remedy}"),
    )


def no_answer(catalog: str, address: str, error: Exception) -> CatalogUnavailable:
    """The error for a catalog whose server cannot be reached or refuses the request.

    :param address: of the server, of which the login is not shown.
    """
    return CatalogUnavailable(
        f"The catalog `{catalog}` did not answer.",
        where=address.rpartition("@")[2],
        why=" ".join(_cause(error).split()),
        fix="check the catalog's address and credentials in the profile, and that it is up",
    )


def unreadable_manifest(
    catalog: str, schema: str, name: str, location: str, error: Exception
) -> CatalogUnavailable:
    """The error for a manifest or manifest list that is missing, unreachable or damaged."""
    return CatalogUnavailable(
        f"The list of data files of `{catalog}.{schema}.{name}` cannot be read.",
        where=location,
        why=_cause(error),
        fix=_remedy(
            error,
            "restore the file from a backup, or roll the table back to an older snapshot with"
            f" `CALL {catalog}.system.rollback_to_snapshot('{schema}.{name}', <snapshot id>)`",
        ),
    )


class UnreadableFile(Exception):
    """A file of a table cannot be read. Its cause is the error."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@contextmanager
def reading_file(path: str, *passed: type[Exception]) -> Iterator[None]:
    """Name the file in any error of a reader except ``passed``, since most of them do not name it."""
    try:
        yield
    except Exception as error:  # for damaged bytes, the reader may raise any error
        if isinstance(error, (UnreadableFile, MemoryError, *passed)):
            raise
        raise UnreadableFile(path) from error


def unreadable_rows(name: str, location: str, error: Exception) -> CatalogUnavailable:
    """The error for a data or delete file that is missing, unreachable or damaged.

    :param name: the full name of the table.
    """
    return CatalogUnavailable(
        f"The rows of `{name}` cannot be read.",
        where=location,
        why=_cause(error),
        fix=_remedy(error, "restore the file from a backup, or drop the table if its rows can be spared"),
    )


def _remedy(error: Exception, otherwise: str) -> str:
    if isinstance(error, PermissionError):
        return "give this user the right to read the file, and to enter the folders above it"
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError | BadGzipFile):
        # The store has not answered, or has refused the request. The file may well be complete.
        return (
            "check that the store answers and the credentials are valid, and run again; change nothing else"
        )
    return otherwise


def _cause(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file does not exist"
    return f"{type(error).__name__}: {error}"
