"""Data sources of Spark as views."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.api import FileRead, SourceRead
from dbt_arctic.engine.connectors import CONNECTORS
from dbt_arctic.engine.source_view import with_reader
from dbt_arctic.errors import DependencyError, StatementError

MISSING = [
    "AnalysisException: Failed to find data source: kafka. Please deploy the application",
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka. Make sure the provider name is correct",
]


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_connector_is_an_error_that_names_its_jars(missing: str) -> None:
    with pytest.raises(DependencyError) as error, with_reader(SourceRead("kafka", {})):
        raise StatementError("Spark rejected a statement", where="the source kafka", why=missing)
    assert all(jar in error.value.fix for jar in CONNECTORS["kafka"])
    no_driver = "java.lang.ClassNotFoundException: org.mariadb.jdbc.Driver"
    with (
        pytest.raises(DependencyError, match="cannot read from mariadb"),
        with_reader(SourceRead("jdbc", {})),
    ):
        raise StatementError("x", why=no_driver)
    avro = FileRead("avro", ["/a.avro"], "/", "", {})
    with pytest.raises(DependencyError, match="cannot read from avro"), with_reader(avro):
        raise StatementError("x", why="Failed to find data source: avro. Avro is built-in but external data")
    with pytest.raises(StatementError, match="another reason"), with_reader(SourceRead("kafka", {})):
        raise StatementError("another reason")
