"""The positions of deleted rows in data files, from files of positions and from deletion vectors.

One file of deletes may be for thousands of data files, so those that were read last stay in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial

import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import Footer, PuffinFile

from dbt_arctic.catalog.damage import reading_file
from dbt_arctic.catalog.files import LruCache, open_file
from dbt_arctic.catalog.manifests import ScannedFile

PARQUET, PUFFIN = "PARQUET", "PUFFIN"
POSITIONS = 1
"""The content of a file of deletes that are described by their positions."""
PATH_OF_DELETE = 2147483546
"""The field id of the column of data files in a file of positions, whose bounds say which it is for."""
_KEPT = 32
"""How many files of deletes stay in memory."""


class NotSupported(Exception):
    """Only Spark can read the table. The text says why."""


class DeletedRows:
    """The deleted rows of a snapshot.

    :param files: its files of deletes.
    :param properties: pyiceberg FileIO properties.
    """

    def __init__(self, files: Sequence[ScannedFile], properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._of_one: dict[str, list[ScannedFile]] = defaultdict(list)
        self._of_several: list[ScannedFile] = []
        for file in files:
            if file.content != POSITIONS:
                raise NotSupported("another engine has deleted rows by their values (equality deletes)")
            if file.referenced is None:
                self._of_several.append(file)
            else:
                self._of_one[file.referenced].append(file)
        self._puffins: LruCache[str, PuffinFile] = LruCache(_KEPT)
        self._positions: LruCache[str, pyarrow.Table] = LruCache(_KEPT)

    def of(self, file: ScannedFile) -> pyarrow.Array | None:
        """The positions of the deleted rows of a data file; ``None`` if it has none."""
        own = [one for one in self._of_one.get(file.path, ()) if one.sequence >= file.sequence]
        # A deletion vector replaces older files of positions, which its writer has merged into it.
        vectors = [one for one in own if one.file_format == PUFFIN]
        if vectors:
            return pyarrow.concat_arrays(self._vector(one, file.path) for one in vectors)
        path = file.path.encode()
        own += [one for one in self._of_several if one.sequence >= file.sequence and _may_refer_to(one, path)]
        found = [self._read(one, file.path) for one in own]
        return pyarrow.concat_arrays(found) if found else None

    def _vector(self, delete: ScannedFile, path: str) -> pyarrow.Array:
        with reading_file(delete.path):
            return self._vector_in(delete, path)

    def _vector_in(self, delete: ScannedFile, path: str) -> pyarrow.Array:
        puffin = self._puffins.get(delete.path, partial(self._puffin, delete.path))
        for blob in puffin.footer.blobs:
            # The path alone is not enough: the vector may have been replaced by another one in this file.
            if delete.offset in (None, blob.offset) and blob.properties.get("referenced-data-file") == path:
                alone = copy(puffin)
                alone.footer = Footer(blobs=[blob])
                (vector,) = deletion_vectors_from_puffin_file(alone)
                return vector.to_vector().combine_chunks().cast(pyarrow.int64())
        raise ValueError(f"{delete.path} has no deletion vector of {path}")

    def _puffin(self, location: str) -> PuffinFile:
        with open_file(location, self._properties) as stream:
            return PuffinFile(stream.read())

    def _read(self, delete: ScannedFile, path: str) -> pyarrow.Array:
        if delete.file_format != PARQUET:
            raise NotSupported(f"it has files of the format {delete.file_format}")
        with reading_file(delete.path):
            table = self._positions.get(delete.path, partial(self._table, delete.path))
            of_file = pyarrow.compute.equal(table.column("file_path"), path)
            return table.filter(of_file).column("pos").combine_chunks().cast(pyarrow.int64())

    def _table(self, location: str) -> pyarrow.Table:
        with open_file(location, self._properties) as stream:
            return pyarrow.parquet.read_table(stream, columns=["file_path", "pos"])


def _may_refer_to(delete: ScannedFile, path: bytes) -> bool:
    """Whether the bounds of a file of positions include a data file."""
    low, high = delete.lower.get(PATH_OF_DELETE), delete.upper.get(PATH_OF_DELETE)
    return low is None or high is None or low <= path <= high
