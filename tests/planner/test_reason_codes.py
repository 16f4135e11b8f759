"""The page of reason codes has exactly the codes that the source raises or reports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dbt_arctic.auto.reason_advice import ADVICE
from dbt_arctic.planner.properties import determinism
from dbt_arctic.store.refresh_outcome import Choice

ROOT = Path(__file__).parents[2]


PLACES = {
    "CannotPlan": 0,
    "_Missing": 0,
    "Reason": 0,
    "Choice": list(Choice.__dataclass_fields__).index("reason"),
}
"""Where a call has its code, if not by name."""
TELLS = {"Choice", "AutoResponse"}
"""What has a code by the name ``reason``."""


def raised() -> set[str]:
    """The codes in the calls of the source, as literals or by a local name, and those of a table."""
    found = {code for code, _, _ in determinism._CAUSES.values()}
    for path in (ROOT / "dbt_arctic").rglob("*.py"):
        found |= codes_in(ast.parse(path.read_text()))
    return found


def codes_in(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for around in [tree, *functions]:
        named: dict[str, list[ast.expr]] = {}
        for node in ast.walk(around) if around is not tree else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                named.setdefault(node.targets[0].id, []).append(node.value)
        for node in ast.walk(around):
            if isinstance(node, ast.Call) and (code := _code(node)) is not None:
                values = named.get(code.id, []) if isinstance(code, ast.Name) else [code]
                found.update(text for value in values for text in _texts(value))
    return found - {""}


def _code(call: ast.Call) -> ast.expr | None:
    name = _name(call.func)
    if name in TELLS:
        by_name = next((one.value for one in call.keywords if one.arg == "reason"), None)
        if by_name is not None:
            return by_name
    place = PLACES.get(name)
    return call.args[place] if place is not None and len(call.args) > place else None


def _texts(value: ast.expr) -> list[str]:
    """The texts that an expression can be."""
    if isinstance(value, ast.IfExp):
        return [*_texts(value.body), *_texts(value.orelse)]
    if isinstance(value, ast.BoolOp):
        return [text for one in value.values for text in _texts(one)]
    return [value.value] if isinstance(value, ast.Constant) and isinstance(value.value, str) else []


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def test_codes_are_found_wherever_one_is_reported() -> None:
    text = """
def run(plan):
    told = plan.code if plan.code else "by-name"
    if plan.code == "compared":
        raise CannotPlan("raised", "what")
    return Choice("full", told), Choice("skip", how="words"), Choice("skip", reason=plan.code or "given")

tells = AutoResponse(strategy="skip", reason="response")
"""
    assert codes_in(ast.parse(text)) == {"by-name", "raised", "given", "response"}


def test_each_code_is_documented() -> None:
    page = (ROOT / "docs/reference/planner.md").read_text()
    documented = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == raised()


def test_each_code_has_an_advice() -> None:
    assert ADVICE.keys() == raised()
    for advice in ADVICE.values():
        assert advice[0].isupper()
        assert advice.endswith(".")
