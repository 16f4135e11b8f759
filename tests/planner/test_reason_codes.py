"""The page of reason codes has those that the source raises, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dbt_arctic.planner import determined

ROOT = Path(__file__).parents[2]


def raised() -> set[str]:
    """The codes given to ``CannotPlan`` and ``Reason`` as literals, and those of a table."""
    found = {code for code, _, _ in determined._CAUSES.values()}
    for folder in ("planner", "refresh"):
        for path in (ROOT / "dbt_arctic" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _name(node.func) in ("CannotPlan", "Reason") and node.args:
                    first = node.args[0]
                    if isinstance(first, ast.Constant):
                        found.add(str(first.value))
    return found


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def test_each_code_is_documented() -> None:
    page = (ROOT / "docs/reference/planner.md").read_text()
    documented = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == raised()
