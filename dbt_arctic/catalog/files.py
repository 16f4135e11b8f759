"""Reads metadata files: from the local disk directly, from other storage through pyiceberg.

Metadata files are immutable, so values derived from them can be cached: ``LruCache`` is that cache.
"""

from __future__ import annotations

import gzip
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")  # at least two letters: ``C:`` is a drive
HADOOP = ("hdfs", "viewfs")
"""The schemes of Hadoop's file systems."""
_GZIP_MAGIC = b"\x1f\x8b"

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A cache that drops the least recently used values first. It is thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of ``key``. Two threads may compute it concurrently, which is harmless."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
        return value


_CLIENTS: LruCache[Hashable, FileIO] = LruCache(limit=16)
"""Clients of object stores, by store and settings. Each holds connections."""


def is_in_hadoop(location: str) -> bool:
    """Whether a location is in HDFS. Python reads it only with the libraries of a Hadoop installation."""
    scheme = _SCHEME.match(location)
    return scheme is not None and scheme[1].lower() in HADOOP


def local_path(location: str) -> str | None:
    """The path of a file on this machine; ``None`` for a remote location (``s3://...``)."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return location
    if scheme[1].lower() != "file":
        return None
    return "/" + location[len("file:") :].lstrip("/")  # file:/a, file:///a


def read_bytes(location: str, properties: Mapping[str, str]) -> bytes:
    """The whole file, decompressed if it is gzipped. Raises ``OSError``.

    :param properties: pyiceberg's FileIO properties (credentials), unused for local files.
    """
    path = local_path(location)
    if path is not None:
        with open(path, "rb") as file:
            content = file.read()
    else:
        content = _remote_bytes(location, properties)
    # Spark names gzipped files ``x.gz.metadata.json``, but the content is more reliable.
    return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content


def open_file(location: str, properties: Mapping[str, str]) -> Any:
    """Open a file for reads at any position. Raises ``OSError``, or any error of the client of a store."""
    import pyarrow

    path = local_path(location)
    if path is None:
        return _client(location, properties).new_input(location).open()
    return pyarrow.OSFile(path)


def _client(location: str, properties: Mapping[str, str]) -> FileIO:
    # The client of an object store is loaded only when it is needed.
    from pyiceberg.io import load_file_io

    return _CLIENTS.get(
        (*urlsplit(location)[:2], *sorted(properties.items())),
        lambda: load_file_io(dict(properties), location),
    )


def _remote_bytes(location: str, properties: Mapping[str, str]) -> bytes:
    try:
        with _client(location, properties).new_input(location).open() as stream:
            return stream.read()
    except OSError:
        raise
    except Exception as error:  # of the client, which has errors of its own
        raise OSError(f"{type(error).__name__}: {error}") from error
