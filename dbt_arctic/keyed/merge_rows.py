"""The merge of ``read.merge_on_read`` in memory: of the rows of a base table and of its changes, as Arrow.

Both have the columns of the result, the key, and the sequence if there is one. Keys are compared as Spark
compares them: NaN is equal to NaN, and 0.0 to -0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow
import pyarrow.compute

from dbt_arctic.keyed.table import ACTION, OFFSET

COMMIT = "_last_updated_sequence_number"
"""A column of changes: the number of the commit that wrote the row. No column of a table has this name."""


def latest_changes(changes: pyarrow.Table, key: Sequence[str], sequence_by: str | None) -> pyarrow.Table:
    """The latest change of each key.

    :param changes: with ``_action``, ``_offset`` and ``COMMIT``. Before-images and markers are ignored.
    """
    changes = changes.filter(pyarrow.compute.not_equal(changes.column(ACTION), "-U"))
    if not changes.num_rows:
        return changes
    nothing = changes.slice(0, 0)
    keys, _ = _numbered_keys(changes, nothing, key)
    order = [("key", "ascending")]
    columns = {"key": keys}
    if sequence_by is not None:
        ranks, _ = _ranks(changes.column(sequence_by), nothing.column(sequence_by))
        delete = _is_delete(changes).cast(pyarrow.int8())
        columns |= {"rank": ranks.fill_null(-1), "delete": delete}  # NULL is the least
        order += [("rank", "descending"), ("delete", "descending")]
    columns |= {COMMIT: changes.column(COMMIT), OFFSET: changes.column(OFFSET)}
    order += [(COMMIT, "descending"), (OFFSET, "descending")]
    return changes.take(_first_of_each(pyarrow.table(columns), order))


def merge_rows(
    base: pyarrow.Table, latest: pyarrow.Table, key: Sequence[str], sequence_by: str | None
) -> pyarrow.Table:
    """The base rows that no change overrides, and the latest change of each key unless it is a delete.

    :param latest: the result of ``latest_changes``.
    """
    # A column of one side may already be wider, while columns are being changed.
    return pyarrow.concat_tables(_merged(base, latest, key, sequence_by), promote_options="permissive")


def kept_rows(
    part: pyarrow.Table, latest: pyarrow.Table, key: Sequence[str], sequence_by: str | None
) -> pyarrow.Table:
    """The rows of a part of the base table that no change overrides."""
    return _merged(part, latest, key, sequence_by)[0]


def _merged(
    base: pyarrow.Table, latest: pyarrow.Table, key: Sequence[str], sequence_by: str | None
) -> tuple[pyarrow.Table, pyarrow.Table]:
    """The rows of each side that the merge shows."""
    if not latest.num_rows:
        return base, latest.select(base.column_names)
    keys_of_base, keys = _numbered_keys(base, latest, key)
    place = pyarrow.compute.index_in(keys_of_base, value_set=keys.combine_chunks())
    is_overridden = place.is_valid()
    is_shown = pyarrow.compute.invert(_is_delete(latest))
    if sequence_by is not None:
        # A change may be older than the row of the base table.
        of_base, sequences = _ranks(base.column(sequence_by), latest.column(sequence_by))
        of_change = sequences.take(place)
        is_overridden = pyarrow.compute.greater_equal(of_change, of_base).fill_null(False)
        is_newer = pyarrow.compute.greater(of_base, of_change).fill_null(False)
        has_lost = pyarrow.compute.is_in(keys, value_set=keys.take(place.filter(is_newer)).combine_chunks())
        is_shown = pyarrow.compute.and_(is_shown, pyarrow.compute.invert(has_lost))
    kept = base.filter(pyarrow.compute.invert(is_overridden))
    return kept, latest.filter(is_shown).select(base.column_names)


def with_keys(rows: pyarrow.Table, keys: pyarrow.Table) -> pyarrow.Table:
    """The rows with one of the keys, which are all columns of ``keys``."""
    of_rows, wanted = _numbered_keys(rows, keys, keys.column_names)
    return rows.filter(pyarrow.compute.is_in(of_rows, value_set=wanted.combine_chunks()))


def _numbered_keys(
    one: pyarrow.Table, other: pyarrow.Table, key: Sequence[str]
) -> tuple[pyarrow.ChunkedArray, pyarrow.ChunkedArray]:
    """For each row of two tables the number of its key. Equal keys have the same number."""
    numbers: pyarrow.Array | None = None
    for column in key:
        values = pyarrow.compute.dictionary_encode(_both(one.column(column), other.column(column)))
        of_column = values.indices.cast(pyarrow.int64())
        if numbers is None:
            numbers = of_column
            continue
        pairs = pyarrow.compute.add(
            pyarrow.compute.multiply(numbers, max(len(values.dictionary), 1)), of_column
        )
        # Numbered again, so that the product of the next column is in range.
        numbers = pyarrow.compute.dictionary_encode(pairs).indices.cast(pyarrow.int64())
    assert numbers is not None
    return _apart(numbers, one.num_rows)


def _ranks(
    one: pyarrow.ChunkedArray, other: pyarrow.ChunkedArray
) -> tuple[pyarrow.ChunkedArray, pyarrow.ChunkedArray]:
    """Whole numbers in the order of the values of two columns; NaN is the greatest, and NULL stays NULL."""
    values = pyarrow.compute.dictionary_encode(_both(one, other))
    order = pyarrow.compute.sort_indices(values.dictionary)
    ranks = pyarrow.compute.sort_indices(order).cast(pyarrow.int64())
    return _apart(ranks.take(values.indices), len(one))


def _both(one: pyarrow.ChunkedArray, other: pyarrow.ChunkedArray) -> pyarrow.Array:
    first, second = (pyarrow.table({"value": values.combine_chunks()}) for values in (one, other))
    both = (
        pyarrow.concat_tables([first, second], promote_options="permissive").column("value").combine_chunks()
    )
    if not pyarrow.types.is_floating(both.type):
        return both
    nan, zero = (pyarrow.scalar(value, both.type) for value in (math.nan, 0.0))
    # -0.0 becomes 0.0, and NaN may have other bits.
    return pyarrow.compute.if_else(pyarrow.compute.is_nan(both), nan, pyarrow.compute.add(both, zero))


def _apart(values: pyarrow.Array, rows_of_first: int) -> tuple[pyarrow.ChunkedArray, pyarrow.ChunkedArray]:
    chunked = pyarrow.chunked_array([values])
    return chunked.slice(0, rows_of_first), chunked.slice(rows_of_first)


def _is_delete(changes: pyarrow.Table) -> pyarrow.ChunkedArray:
    return pyarrow.compute.equal(changes.column(ACTION), "D")


def _first_of_each(ranked: pyarrow.Table, order: Sequence[tuple[str, str]]) -> pyarrow.Array:
    """The places of the first row of each key."""
    places = pyarrow.compute.sort_indices(ranked, sort_keys=list(order))
    keys = ranked.column("key").combine_chunks().take(places)
    differs = pyarrow.compute.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    return places.filter(pyarrow.concat_arrays([pyarrow.array([True]), differs]))
