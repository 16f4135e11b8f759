"""Which Java a test's Spark has: one that compiles quickly, unless a user has chosen."""

from __future__ import annotations

import os

import pytest

from tests import java


def test_a_spark_of_minutes_compiles_quickly_and_one_of_hours_with_care(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    java.choose()
    assert "-XX:TieredStopAtLevel=1" in os.environ["JAVA_TOOL_OPTIONS"]
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    java.choose(java.HOURS)
    assert "TieredStopAtLevel" not in os.environ["JAVA_TOOL_OPTIONS"]


def test_java_options_of_the_user_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")
    java.choose()
    assert os.environ["JAVA_TOOL_OPTIONS"] == "-Xint"
