"""The settings of a new session are those that the first session of the engine had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.engine import jvm
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings

CASE = "spark.sql.caseSensitive"


def test_a_spark_of_another_program_is_asked_once_for_the_settings_of_its_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[str] = []

    def text(end: str) -> str:
        reads.append(end)
        return f"{CASE} -> true{end}a -> b -> c"

    conf = SimpleNamespace(getAll=lambda: SimpleNamespace(mkString=text))
    session = SimpleNamespace(_jsparkSession=SimpleNamespace(conf=lambda: conf))
    spark: Any = SimpleNamespace(new_session=lambda settings: session, is_alive=lambda: True)
    monkeypatch.setattr(jvm, "started_spark", lambda settings: spark)
    engine = SessionEngine(SparkSettings(catalog="lake", warehouse="lake"))
    first, second = engine.connect(), engine.connect()
    assert CASE not in second.conf(start=False)
    assert first.session is session
    assert second.conf(start=False) == {CASE: "true", "a": "b -> c"}
    assert not second.is_open
    assert second.session is session
    assert len(reads) == 1
