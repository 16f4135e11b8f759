"""Reading why Spark did not start from what it wrote."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.startup import log_tail, start_error
from dbt_arctic.errors import ArcticError, DependencyError, JavaError, SparkStartError

UNRESOLVED = """
:: problems summary ::
		module not found: com.example#no-such-thing;1.0
		::          UNRESOLVED DEPENDENCIES         ::
		:: com.example#no-such-thing;1.0: not found
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: com.example#no-such-thing;1.0]
	at org.apache.spark.util.MavenUtils$.resolve(MavenUtils.scala:1)
"""


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (UNRESOLVED, DependencyError),
        ("java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main", JavaError),
        ("java.lang.module.FindException: Module jdk.incubator.vector not found", JavaError),
        ("Invalid maximum heap size: -Xmx2x", SparkStartError),
        ("", SparkStartError),
    ],
)
def test_a_start_failure_is_known_by_the_log(log: str, kind: type[ArcticError]) -> None:
    assert type(start_error(log, "/log", SparkSettings("lake", "/w"), "Java 17")) is kind


def test_what_could_not_be_resolved_is_named() -> None:
    error = start_error(
        UNRESOLVED, "/log", SparkSettings("lake", "/w", repositories=("https://r",)), "Java 17"
    )
    assert "com.example:no-such-thing:1.0" in error.what
    assert "https://r" in error.where
    assert "proxy" in error.fix


def test_the_tail_leaves_out_stack_and_noise() -> None:
    log = "WARNING: Using incubator modules: x\nfirst\n\tat a.b(C.java)\n\nlast"
    assert log_tail(log) == "first\nlast"
