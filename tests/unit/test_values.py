"""Parts that have a meaning have names, and what is unknown is ``None``: no pair of strings is returned, no
empty string is one of several values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt_arctic"

PAIRS = {
    "refresh/plain_config.py:named_columns": "names and types of columns",
    "store/publish_view.py:_names_and_types": "names and types of columns",
    "maintenance/clean.py:_identity": "a key of a dict, of which no part is read",
}
"""Functions that return tuples of strings, and what these are."""

PAIRS_IN_FIELDS = {
    "auto/upstreams.py:columns": "names and types of columns",
    "planner/frontend/pivots_and_generators.py:stored": "names and types of columns",
    "store/publish_view.py:columns": "names and types of columns",
    "adapter/other_schema.py:sources": "a key of a dict: schema and identifier",
}
"""Fields of classes that hold tuples of strings, and what these are."""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "str"


def _holds_pair(annotation: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "tuple"
        and isinstance(node.slice, ast.Tuple)
        and len(node.slice.elts) > 1
        and all(map(_is_text, node.slice.elts))
        for node in ast.walk(annotation)
    )


def returned_pairs(tree: ast.AST) -> Iterator[str]:
    """The functions that return tuples of strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None and _holds_pair(node.returns):
            yield node.name


def pairs_in_fields(tree: ast.AST) -> Iterator[str]:
    """The fields of classes that hold tuples of strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and _holds_pair(field.annotation):
                    yield ast.unparse(field.target)


def empty_values(tree: ast.AST) -> Iterator[int]:
    """The lines of ``Literal["", ..]``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(one, ast.Constant) and one.value == "" for one in values):
                yield node.lineno


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def test_no_function_returns_a_tuple_of_strings() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}"
        for path in modules()
        for name in returned_pairs(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(PAIRS)


def test_no_field_holds_a_tuple_of_strings() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}"
        for path in modules()
        for name in pairs_in_fields(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(PAIRS_IN_FIELDS)


def test_no_empty_string_is_one_of_several_values() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{line}"
        for path in modules()
        for line in empty_values(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    "annotation", ["tuple[str, str]", "Iterator[tuple[str, str, str]]", "tuple[str, str] | None"]
)
def test_a_tuple_of_strings_is_found(annotation: str) -> None:
    assert list(returned_pairs(ast.parse(f"def read() -> {annotation}: ..."))) == ["read"]
    assert list(pairs_in_fields(ast.parse(f"class Read:\n    of: {annotation}"))) == ["of"]


@pytest.mark.parametrize("annotation", ["tuple[str, ...]", "tuple[str, int]", "list[str]", "Pair"])
def test_other_tuples_are_not(annotation: str) -> None:
    assert list(returned_pairs(ast.parse(f"def read() -> {annotation}: ..."))) == []
    assert list(pairs_in_fields(ast.parse(f"class Read:\n    of: {annotation}"))) == []


def test_an_empty_value_is_found() -> None:
    assert list(empty_values(ast.parse('Way = Literal["", "strict"]\nOther = Literal["a", "b"]'))) == [1]
