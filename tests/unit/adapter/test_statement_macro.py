"""When a statement of a keyed table passes through the macro: only if a project or a package overrides it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.keyed_api import KeyedApi

MACROS = Path(__file__).parents[3] / "macros"
OWN = ("keyed_statement", "dbt_arctic"), ("arctic__keyed_statement", "dbt_arctic"), ("ref", "dbt")


def run(*macros: tuple[str, str]) -> tuple[list[str], list[str]]:
    """The calls of macros and the statements sent, if a project has these macros (name, package)."""
    called: list[str] = []
    sent: list[str] = []

    def execute_macro(name: str, kwargs: Any) -> str:
        called.append(name)
        return f"{kwargs['sql']} -- {kwargs['step']}"

    def execute(sql: str, auto_begin: bool, fetch: bool) -> tuple[Any, None]:
        sent.append(sql)
        return SimpleNamespace(rows_affected=3), None

    named = {
        f"macro.{package}.{name}": SimpleNamespace(name=name, package_name=package)
        for name, package in macros
    }
    resolver = SimpleNamespace(macros=named) if macros else None
    adapter: Any = SimpleNamespace(
        connections=SimpleNamespace(execute=execute),
        execute_macro=execute_macro,
        get_macro_resolver=lambda: resolver,
    )
    assert KeyedApi._run(adapter, "upsert", "INSERT") == 3
    return called, sent


@pytest.mark.parametrize("macros", [(), OWN], ids=["no project", "a project without the macro"])
def test_the_macro_of_this_package_is_not_called(macros: tuple[tuple[str, str], ...]) -> None:
    assert run(*macros) == ([], ["INSERT"])


@pytest.mark.parametrize("name", ["keyed_statement", "arctic__keyed_statement", "default__keyed_statement"])
@pytest.mark.parametrize("package", ["shop", "dbt_utils"])
def test_a_macro_of_a_project_or_a_package_changes_the_statement(name: str, package: str) -> None:
    assert run(*OWN, (name, package)) == (["keyed_statement"], ["INSERT -- upsert"])


def test_the_macro_of_this_package_returns_the_statement_unchanged() -> None:
    # Otherwise it would have to be called.
    text = (MACROS / "keyed" / "statement.sql").read_text(encoding="utf-8")
    assert re.findall(r"{{ (.*) }}", text) == [
        "return(adapter.dispatch('keyed_statement', 'dbt')(step, sql, table))",
        "return(sql)",
    ]
