"""``dbt-arctic server status`` says why a target does not use the running server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from dbt_arctic.cli.server import _why_unused


def target(use_server: bool) -> Any:
    return cast(Any, SimpleNamespace(name="dev", credentials=SimpleNamespace(use_server=use_server)))


def test_a_profile_that_uses_no_server_is_named_as_the_reason() -> None:
    assert _why_unused(target(False)) == "Target dev uses no server: the profile sets use_server: false."


def test_another_server_is_to_be_restarted() -> None:
    assert "dbt-arctic server stop, then dbt-arctic server start" in _why_unused(target(True))
