"""Which Java a test's Spark has: one that stays compiles with care, a child's does not; a user's wins."""

from __future__ import annotations

import os

import pytest

from tests import java


def test_a_child_compiles_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    java.choose()
    assert "TieredStopAtLevel" not in os.environ["JAVA_TOOL_OPTIONS"]
    assert java.environment_of_child() == {**os.environ, "JAVA_TOOL_OPTIONS": java.ENDS_SOON}


def test_what_a_user_has_told_java_holds_for_children_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")
    java.choose()
    assert os.environ["JAVA_TOOL_OPTIONS"] == java.environment_of_child()["JAVA_TOOL_OPTIONS"] == "-Xint"
