"""Counts of jobs and bytes are Spark's: where it is too busy to have kept them, they are not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from dbt_arctic.engine import jvm
from dbt_arctic.engine.jvm import SparkProcess


class Failed(Py4JJavaError):
    """As py4j raises it, without the JVM that it asks for its text."""

    def __init__(self, error: str) -> None:
        self.java_exception = error

    def __str__(self) -> str:
        return str(self.java_exception)


def process(failing: str = "") -> SparkProcess:
    def wait(milliseconds: int) -> None:
        assert milliseconds > 0
        if failing:
            raise Failed(failing)

    bus = SimpleNamespace(waitUntilEmpty=wait)
    scala = SimpleNamespace(listenerBus=lambda: bus, isStopped=lambda: False)
    tracker = SimpleNamespace(getJobIdsForGroup=lambda group: [1, 2, 3])
    java = SimpleNamespace(sc=lambda: scala, statusTracker=lambda: tracker)
    context: Any = SimpleNamespace(_gateway=None, _jsc=java)
    return SparkProcess(SimpleNamespace(sparkContext=context), {}, None)


def test_jobs_are_counted_once_listeners_have_heard_of_them() -> None:
    assert process().job_count("statement") == 3


def test_a_spark_that_is_too_busy_does_not_fail_a_statement_that_has_run() -> None:
    busy = process("java.util.concurrent.TimeoutException: the event queue is not empty after 10000 ms")
    assert busy.job_count("statement") is None
    assert busy.traffic(["statement"]) is None


def test_statements_that_spark_has_forgotten_have_no_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(store: Any, jobs: set[int]) -> None:
        raise Failed("java.util.NoSuchElementException: 17")

    monkeypatch.setattr(jvm, "traffic_of", forgotten)
    spark = process()
    state = SimpleNamespace(statusStore=lambda: None)
    spark.root._jsparkSession = SimpleNamespace(sharedState=lambda: state)
    monkeypatch.setattr(SparkProcess, "_arrays", SimpleNamespace(toString=str))
    assert spark.traffic(["statement"]) is None


def test_another_error_is_one() -> None:
    with pytest.raises(Py4JJavaError, match="stopped"):
        process("java.lang.IllegalStateException: stopped").job_count("statement")
