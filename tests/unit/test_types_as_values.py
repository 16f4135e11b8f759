"""A column's type is parsed in one place. Elsewhere its text is compared as a whole, or not at all.

``data_type.py`` parses Spark's types. The modules below parse the types of others. Any other module
that takes a type apart as text (``startswith("decimal")``, ``split("(")``, ``"timestamp" in type``) is
reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt_arctic"

PARSERS = {
    "data_type.py": "Spark's types",
    "catalog/types.py": "Iceberg's types, and Spark's descriptions, which do not quote names",
    "databases/mariadb_types.py": "the types of MariaDB",
    "databases/postgres_types.py": "the types of PostgreSQL",
    "adapter/type_names.py": "the type names in a contract, which may be those of another database",
}
"""The modules that parse types, and which ones."""

NAMES = (
    *("tinyint", "smallint", "bigint", "integer", "decimal", "numeric", "float", "double", "varchar", "char"),
    *("string", "timestamp", "timestamp_ntz", "datetime", "binary", "boolean", "interval", "void"),
    *("array", "map", "struct", "variant"),
)
KIND = re.compile(rf"(?:{'|'.join(NAMES)})[(<]?|[(<)>]|,\s*\d+\)", re.IGNORECASE)
"""A literal that is the name of a type, or a part of a type's text."""
_NAME = rf"\b(?:{'|'.join(NAMES)})"
IN_PATTERN = re.compile(rf"{_NAME}(?:<|\\\()|{_NAME}\|{_NAME}\b|{_NAME}\)\\\(", re.IGNORECASE)
"""A pattern over the text of a type: a name before a parenthesis, or several names."""
TYPE = re.compile(r"(?:.*_)?(?:type_?|dtype|kind|simpleString)", re.IGNORECASE)
"""The name of an expression that holds a type."""
OF_STRINGS = frozenset(
    ("startswith", "endswith", "split", "rsplit", "partition", "rpartition", "find", "index")
)
STRIPS = frozenset(("removeprefix", "removesuffix"))
OF_PATTERNS = frozenset(("match", "search", "fullmatch", "sub", "finditer", "findall", "compile"))
TAKES_APART = OF_STRINGS | STRIPS | OF_PATTERNS


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            own = _name(node.func)
            return _name(inner) if own in ("lower", "strip") and inner is not None else own
        case ast.Subscript():
            return _name(node.value).rstrip("s")
    return ""


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Tuple):
            yield from _texts(node.elts)


def _takes_apart(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=args) if method in TAKES_APART:
            texts = list(_texts(args))
            if _name(value) == "re":
                return any(IN_PATTERN.search(text) for text in texts)
            named = any(KIND.fullmatch(text) and text.strip("(<").isalpha() for text in texts)
            marks = any(KIND.fullmatch(text) for text in texts) and TYPE.fullmatch(_name(value)) is not None
            return marks or (named and method.startswith(("starts", "ends", "remove")))
        case ast.Compare(ast.Constant(str(text)), [ast.In() | ast.NotIn()], [where]):
            return KIND.fullmatch(text) is not None and TYPE.fullmatch(_name(where)) is not None
        case ast.Subscript(value=value, slice=ast.Slice()):
            return TYPE.fullmatch(_name(value)) is not None
    return False


def taken_apart(text: str) -> list[str]:
    """The lines that take a type apart."""
    lines = text.splitlines()
    return [
        f"{node.lineno}: {lines[node.lineno - 1].strip()}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.expr) and _takes_apart(node)
    ]


def modules() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "planner"
        and path.relative_to(PACKAGE).as_posix() not in PARSERS
    ]


def test_no_module_takes_a_type_apart() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): lines
        for path in modules()
        if (lines := taken_apart(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("name", PARSERS)
def test_an_exception_is_a_parser(name: str) -> None:
    assert "re.compile(" in (PACKAGE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        'kind.startswith("array<")',
        'type_.startswith(("decimal", "float", "double"))',
        'column.type.startswith(("tinyint", "bit(1)"))',
        'self.dtype.lower().split("(")[0]',
        'produced_type.partition("(")',
        '"timestamp" in kind',
        '"void" not in column.type',
        '"map<" in data_type.simpleString()',
        'kind[:-1].partition(",")',
        'kind.removeprefix("ARRAY<")',
        'self.type.endswith(",0)")',
        're.compile(r"decimal\\((\\d+),(\\d+)\\)")',
        're.compile(r"(tinyint|smallint|int)")',
        're.compile(r"array|map|struct")',
        'types[name].startswith("decimal")',
    ],
)
def test_a_type_that_is_taken_apart_is_found(line: str) -> None:
    assert len(taken_apart(line)) >= 1


@pytest.mark.parametrize(
    "line",
    ['type_ in ("date", "timestamp")', 'kind == "timestamp"', 'text.partition("(")', 'kind_of(type_) == "a"'],
)
def test_a_type_that_is_compared_as_a_whole_is_not(line: str) -> None:
    assert taken_apart(line) == []
