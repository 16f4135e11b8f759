"""The pages for contributors name files and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
NAMED = re.compile(r"`((?:dbt_arctic|tests|macros)/[\w./]+)(?::([\w.]+))?`")


def defined(path: Path) -> set[str]:
    """Functions, classes, and the methods of these."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_a_page_names_what_is_there(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert named
    gone = [path for path, _ in named if not (ROOT / path).exists()]
    assert gone == []
    missing = [f"{path}:{name}" for path, name in named if name and name not in defined(ROOT / path)]
    assert missing == []


@pytest.mark.parametrize("index", ["CONTRIBUTING.md", "docs/README.md"])
def test_the_indexes_link_each_page(index: str) -> None:
    text = (ROOT / index).read_text()
    assert [page.name for page in PAGES if f"contributing/{page.name})" not in text] == []
