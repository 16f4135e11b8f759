"""What a profile with ``method: thrift`` can and cannot do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_catalog, choose_engine
from dbt_arctic.adapter.python_models import PythonModelsApi
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.thrift import ThriftEngine


def profile(**settings: Any) -> ArcticCredentials:
    return ArcticCredentials(
        **ArcticCredentials.translate_aliases({"host": "h", "method": "thrift", **settings})
    )


def test_the_server_of_the_profile_is_used() -> None:
    chosen = choose_engine(profile(port=1), None)
    assert isinstance(chosen.engine, ThriftEngine)
    assert chosen.description == "Spark Thrift server thrift://h:1"


def test_metadata_is_read_directly_if_the_profile_says_where_the_catalog_is(tmp_path: Path) -> None:
    def by_profile(catalog: Any) -> Any:
        reader = choose_catalog(profile(catalog=catalog), str(tmp_path), lambda sql: [])
        assert isinstance(reader, WithRecords)
        return reader.behind

    assert isinstance(by_profile("lake"), SparkSqlCatalog)
    assert isinstance(by_profile({"type": "rest", "uri": "http://127.0.0.1:1"}), RemoteCatalog)
    with pytest.raises(DbtRuntimeError, match="type 'sqlite' with method: thrift"):
        by_profile({"type": "sqlite"})


def test_a_python_model_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    def refuse(self: object, model: object) -> None:
        raise AssertionError("its computation has begun")

    connection = choose_engine(profile(), None).engine.connect()
    adapter = SimpleNamespace(
        config=SimpleNamespace(project_root=str(tmp_path)),
        connections=SimpleNamespace(get_thread_connection=lambda: SimpleNamespace(name="m")),
        _handle=lambda: connection,
        _note_beginning=refuse,
    )
    model = {"name": "m", "original_file_path": "models/m.py", "raw_code": "", "config": {}}
    with pytest.raises(DbtRuntimeError, match="a Python model cannot be used with method: thrift"):
        PythonModelsApi.submit_python_job(cast(Any, adapter), model, "")
    assert not connection.is_open
