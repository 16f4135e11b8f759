"""Whatever a Python model may return, as a temporary view of a session.

Uses only what pyspark's two kinds of session have in common: the one of this process, and Spark Connect's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_arctic.errors import PythonModelFailed

_KINDS = "a DataFrame of PySpark, pandas-on-Spark, pandas or Polars, or an Arrow table"


def register_frame(session: Any, name: str, frame: Any, model: str) -> None:
    """Make a DataFrame a temporary view. One of Spark stays as lazy as it is.

    :raises PythonModelFailed: it is no DataFrame, or one of another Spark session.
    """
    spark_frame = _to_spark(session, frame, model)
    quoted = "`" + name.replace("`", "``") + "`"
    session.catalog.dropTempView(name)
    spark_frame.createOrReplaceTempView(quoted)
    # A DataFrame's view is made in its own session. Dropping is the cheapest way to learn if that is ours.
    if not session.catalog.dropTempView(name):
        raise PythonModelFailed(
            "the model's DataFrame belongs to another Spark session",
            where=model,
            why="the model created or looked up another session",
            fix="use the second argument of model(dbt, session)",
        )
    spark_frame.createOrReplaceTempView(quoted)


class _RemoteFunctions:
    """How many blocks of code run now whose columns are for a Spark Connect session."""

    _SWITCH = "SPARK_CONNECT_MODE_ENABLED"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: str | None = None

    @contextmanager
    def of(self, session: Any) -> Iterator[None]:
        if not is_remote_session(session):
            yield
            return
        with self._lock:
            if self._count == 0:
                self._before = os.environ.get(self._SWITCH)
                os.environ[self._SWITCH] = "1"
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if self._count == 0:
                    os.environ.pop(self._SWITCH)
                    if self._before is not None:
                        os.environ[self._SWITCH] = self._before


_remote_functions = _RemoteFunctions()


def functions_of(session: Any) -> AbstractContextManager[None]:
    """Inside, `pyspark.sql.functions` makes columns for this kind of session: it asks the environment."""
    return _remote_functions.of(session)


def is_remote_session(session: Any) -> bool:
    """Whether a session is one of Spark Connect."""
    return ".connect." in type(session).__module__


def take_up(session: Any, model: str) -> None:
    """Make the session the active one: pandas-on-Spark is not handed a session, it looks for that one.

    :raises PythonModelFailed: it would find another.
    """
    from pyspark.sql.utils import is_remote

    session.createDataFrame([], "x INT")  # with pyspark of this process: this is what sets it
    if is_remote_session(session) is not is_remote() or type(session).getActiveSession() is not session:
        raise PythonModelFailed(
            "pandas-on-Spark cannot find the model's Spark session",
            where=model,
            why="it uses the Spark session of this process, which is not the one of the profile",
            fix="use pandas, or the DataFrame API of PySpark",
        )


def _to_spark(session: Any, frame: Any, model: str) -> Any:
    import pyarrow as pa

    if hasattr(frame, "createOrReplaceTempView"):
        return frame
    if hasattr(frame, "to_spark"):
        return frame.spark.frame()  # to_spark() warns that the index is left out, as pandas' is too
    try:
        if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
            plain = frame.rename(columns=str)
            plain.attrs = {}  # what Connect's toPandas() leaves there cannot be stored, and Arrow warns
            table = pa.Table.from_pandas(plain, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            raise PythonModelFailed(
                f"model() returned {type(frame).__name__}, which is not a DataFrame",
                where=model,
                fix=f"return {_KINDS}",
            )
    except (pa.ArrowException, ValueError) as error:
        raise PythonModelFailed(
            "the model's DataFrame has a column that cannot be stored",
            where=model,
            why=str(error),
            fix="give each column a unique name and values of a single type",
        ) from error
    return session.createDataFrame(_storable(table))


def _storable(table: Any) -> Any:
    """An Arrow table without the types that Spark does not know: unsigned integers and dictionaries."""
    import pyarrow as pa

    signed = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20),
        pa.float16(): pa.float32(),
    }
    fields = []
    for field in table.schema:
        plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(field.with_type(signed.get(plain, plain)))
    return table.cast(pa.schema(fields))
