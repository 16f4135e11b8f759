"""Tests that replace a name of a module must replace one that exists.

A replacement in a test of minutes, such as a mutant, would otherwise fail only there when the name moves.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

_TESTS = Path(__file__).parents[1]
_FILES = sorted(_TESTS.rglob("*.py"))


def _product_modules(tree: ast.Module) -> Iterator[tuple[str, ModuleType]]:
    """(local name, module) of each module of the product that a test imports by name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("dbt_arctic"):
            continue
        for one in node.names:
            name = f"{node.module}.{one.name}"
            if importlib.util.find_spec(
                str(node.module)
            ).submodule_search_locations and importlib.util.find_spec(name):
                yield one.asname or one.name, importlib.import_module(name)


def _missing(tree: ast.Module) -> list[str]:
    variables = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    variables |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    modules = {name: module for name, module in _product_modules(tree) if name not in variables}
    missing = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=local), attr=attribute):
                pass
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[ast.Name(id=local), ast.Constant(value=str(attribute)), *_],
            ):
                pass
            case _:
                continue
        if local in modules and not hasattr(modules[local], attribute):
            missing.append(f"line {node.lineno}: {modules[local].__name__}.{attribute}")
    return missing


def test_tests_use_names_that_the_modules_of_the_product_have() -> None:
    missing = {
        str(file.relative_to(_TESTS)): names
        for file in _FILES
        if (names := _missing(ast.parse(file.read_text(encoding="utf-8"))))
    }
    assert not missing


def test_a_name_that_moved_is_reported() -> None:
    text = (
        "from dbt_arctic.adapter import planning\npatch.setattr(planning, 'dbtRunner', 1)\nplanning.invoke\n"
    )
    assert _missing(ast.parse(text)) == ["line 2: dbt_arctic.adapter.planning.dbtRunner"]
