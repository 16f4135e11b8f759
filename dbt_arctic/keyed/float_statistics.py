"""Leaves floating-point columns out of the file statistics of a table.

Iceberg's bounds of a column do not include NaN, which Spark considers greater than any number. By such
bounds, ``WHERE x > 5`` skips files with NaN, and their rows are missing from the result
(apache/iceberg#9130). Counts without bounds are not enough: a file whose values are all NaN is skipped as
well. Row groups of a file are skipped by the statistics of Parquet, which has no bounds for a row group with
NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.keyed.schema_difference import Path

METRICS_OF = "write.metadata.metrics.column."
"""The start of the properties of a table that set the statistics of a column."""


def no_float_statistics(columns: Iterable[tuple[Path, str]]) -> dict[str, str]:
    """The properties of a table without statistics of the floating-point columns among these.

    Fields inside columns keep theirs: if the column is dropped, Iceberg keeps the property of a field, and
    refuses to set any property of the table from then on.

    :param columns: paths with their types.

    >>> no_float_statistics([(("id",), "int"), (("x",), "double"), (("s", "y"), "float")])
    {'write.metadata.metrics.column.x': 'none'}
    """
    floats = [path[0] for path, type_ in columns if len(path) == 1 and type_ in ("float", "double")]
    return {METRICS_OF + name: "none" for name in floats}
