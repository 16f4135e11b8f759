"""Registers the result of a Python model as a temporary view of a session.

Uses only features that pyspark's two kinds of session have in common: classic and Spark Connect.
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
    """Register a DataFrame as a temporary view. A Spark DataFrame is not evaluated.

    :raises PythonModelFailed: it is not a DataFrame, or belongs to another Spark session.
    """
    spark_frame = _to_spark(session, frame, model)
    quoted = "`" + name.replace("`", "``") + "`"
    session.catalog.dropTempView(name)
    spark_frame.createOrReplaceTempView(quoted)
    # A DataFrame creates its view in its own session. Dropping the view is the cheapest test for the right
    # one.
    if not session.catalog.dropTempView(name):
        raise PythonModelFailed(
            "the model's DataFrame belongs to another Spark session",
            where=model,
            why="the model created or looked up another session",
            fix="use the second argument of model(dbt, session)",
        )
    spark_frame.createOrReplaceTempView(quoted)


def in_every_session(frame: Any, name: str) -> str | None:
    """Register a Spark DataFrame as a view that all sessions of its Spark share.

    Returns SQL of the view; ``None`` for any other DataFrame.
    """
    if hasattr(frame, "to_spark"):
        frame = frame.spark.frame()
    if not hasattr(frame, "createGlobalTempView"):
        return None
    frame.createGlobalTempView(name)
    return f"`global_temp`.`{name}`"


class _RemoteFunctions:
    """The number of running code blocks whose columns are for a Spark Connect session."""

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
    """Make `pyspark.sql.functions` create columns for this kind of session.

    The functions read the kind from the environment.
    """
    return _remote_functions.of(session)


def is_remote_session(session: Any) -> bool:
    """Whether a session is a Spark Connect session."""
    return ".connect." in type(session).__module__


def activate_session(session: Any, model: str) -> None:
    """Make the session the active one, because pandas-on-Spark takes that one.

    :raises PythonModelFailed: it would use a different session.
    """
    from pyspark.sql.utils import is_remote

    session.createDataFrame([], "x INT")  # in classic pyspark, this sets the active session
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
        return frame.spark.frame()  # to_spark() warns that the index is lost, as for pandas
    try:
        if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
            plain = frame.rename(columns=str)
            # Connect's toPandas() leaves attributes that cannot be stored, and Arrow warns about them
            plain.attrs = {}
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
            "the DataFrame has a column that cannot be stored",
            where=model,
            why=str(error),
            fix="give each column a unique name and values of a single type",
        ) from error
    return session.createDataFrame(_storable(table, model))


def _storable(table: Any, model: str) -> Any:
    """An Arrow table with types that Spark supports, and with the same values.

    Spark has no unsigned integers and dictionaries. Its times have microseconds: pyspark would cut off what
    is finer, and an overflow would become another time.

    :raises PythonModelFailed: Spark has no such value.
    """
    import pyarrow as pa

    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        wanted = _spark_type(field.type)
        try:
            columns.append(column.cast(wanted))
        except pa.ArrowException as error:
            raise PythonModelFailed(
                f"the column {field.name} has a value that cannot be stored",
                where=model,
                why=f"it is {field.type} in the DataFrame and {wanted} in Spark: {error}",
                fix="round its values to microseconds, as pandas does with dt.round('us'), or return them as "
                "integers or strings",
            ) from error
        fields.append(field.with_type(wanted))
    return pa.table(columns, schema=pa.schema(fields))


def _spark_type(type_: Any) -> Any:
    """The Arrow type with the same values that Spark supports."""
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return _spark_type(type_.value_type)
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_duration(type_):
        return pa.duration("us")
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_spark_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_spark_type(type_.key_type), _spark_type(type_.item_type))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(_element(type_), type_.list_size)
    if pa.types.is_large_list(type_):
        return pa.large_list(_element(type_))
    if pa.types.is_list(type_):
        return pa.list_(_element(type_))
    signed = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20),
        pa.float16(): pa.float32(),
    }
    return signed.get(type_, type_)


def _element(type_: Any) -> Any:
    return type_.value_field.with_type(_spark_type(type_.value_type))
