"""Creates a temporary view over literal rows, on any kind of pyspark session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def create_temp_view(session: Any, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Create a temporary view over literal rows with string columns (or NULL)."""
    import pyarrow as pa
    from pyspark.sql.types import StringType, StructField, StructType

    arrays = [
        pa.array([None if row[at] is None else str(row[at]) for row in rows], pa.string())
        for at in range(len(columns))
    ]
    schema = StructType([StructField(column, StringType()) for column in columns])
    frame = session.createDataFrame(pa.table(arrays, names=list(columns)), schema)
    frame.createOrReplaceTempView("`" + name.replace("`", "``") + "`")
