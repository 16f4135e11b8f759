"""No exception steers planning: what handles an error in ``auto`` and ``refresh`` makes no plan.

A handler turns the error into a value. Which plan follows a value is decided outside of it, by the fallbacks
that a plan declares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "dbt_arctic"
HANDLING = sorted([*(PACKAGE / "auto").glob("*.py"), *(PACKAGE / "refresh").glob("*.py")])

PLANS = frozenset(
    (
        *(
            "RefreshPlan",
            "IncrementalPlan",
            "Build",
            "Full",
            "ByKeys",
            "BySummaryDelta",
            "OverState",
            "Nothing",
        ),
        *("StatePlan", "PlanT", "Incremental", "SummaryDelta", "AuxiliaryView"),
    )
)
"""The types of plans: of a refresh, and what the planner makes out of a query."""

MAKERS = (
    "planner.delta.plan",
    "planner.auxiliary.aggregate_maintenance",
    "planner.auxiliary.auxiliary_view",
    "planner.auxiliary.nested_view",
    "planner.auxiliary.view_selection",
)
"""Modules of the planner with functions that return plans."""


class Module:
    """The functions of a module, and the names that it has imported."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.tree = name, ast.parse(text)
        self.functions = {
            node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)
        }
        self.imported: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dbt_arctic."):
                origin = (node.module or "").removeprefix("dbt_arctic.")
                self.imported |= {one.asname or one.name: f"{origin}.{one.name}" for one in node.names}

    def called(self, node: ast.AST) -> Iterator[str]:
        """The functions that a part of the module names, and the methods that it calls as ``.name``."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.functions:
                yield f"{self.name}.{part.id}"
            elif isinstance(part, ast.Name) and part.id in self.imported:
                yield self.imported[part.id]
            elif isinstance(part, ast.Attribute):
                owner = part.value.id if isinstance(part.value, ast.Name) else ""
                yield f"{self.imported[owner]}.{part.attr}" if owner in self.imported else f".{part.attr}"


@cache
def loaded() -> Mapping[str, Module]:
    return {
        (name := ".".join(path.relative_to(PACKAGE).with_suffix("").parts)): Module(name, path.read_text())
        for layer in ("auto", "refresh", "store", "planner")
        for path in (PACKAGE / layer).rglob("*.py")
    }


def makes_a_plan(function: ast.FunctionDef) -> bool:
    returned = ast.walk(function.returns) if function.returns else ()
    return any(isinstance(node, ast.Name) and node.id in PLANS for node in returned)


def makers(modules: Mapping[str, Module]) -> set[str]:
    """Functions that return a plan, the classes of plans, and methods of plans that return another one."""
    found = {f"auto.plan.{kind}" for kind in PLANS}
    for module in modules.values():
        if module.name.startswith("auto.") or module.name in MAKERS:
            made = {name for name, function in module.functions.items() if makes_a_plan(function)}
            found |= {f"{module.name}.{name}" for name in made}
    plans = [node for node in modules["auto.plan"].tree.body if isinstance(node, ast.ClassDef)]
    methods = {part for one in plans for part in one.body if isinstance(part, ast.FunctionDef)}
    is_property = {one for one in methods if one.decorator_list}
    return found | {f".{one.name}" for one in methods - is_property if makes_a_plan(one)} | {".plan"}


@cache
def all_makers() -> set[str]:
    return makers(loaded())


def plans_made_by_handlers(module: Module, modules: Mapping[str, Module]) -> list[str]:
    made, found = all_makers(), set()
    for handler in (node for node in ast.walk(module.tree) if isinstance(node, ast.ExceptHandler)):
        waiting, reached = [*_of_body(handler, module)], set()
        while waiting:
            one = waiting.pop()
            if one in made:
                found.add(f"{module.name}:{handler.lineno}: {one}")
            if one in reached or one in made:
                continue
            reached.add(one)
            origin, _, name = one.rpartition(".")
            other = modules.get(origin)
            if other is not None and name in other.functions:
                waiting += other.called(other.functions[name])
    return sorted(found)


def _of_body(handler: ast.ExceptHandler, module: Module) -> Iterator[str]:
    for statement in handler.body:
        yield from module.called(statement)


@pytest.mark.parametrize("path", HANDLING, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_handler_of_an_error_makes_a_plan(path: Path) -> None:
    modules = loaded()
    module = modules[f"{path.parent.name}.{path.stem}"]
    assert plans_made_by_handlers(module, modules) == []


def test_the_makers_of_plans_are_found() -> None:
    wanted = {
        "auto.plan_model.plan_refresh",
        "auto.plan_model.plan_over_state",
        "auto.plan_model.plan_without_state",
        "auto.plan_model.plan_without_hidden",
        "auto.plan_table.choose_refresh",
        "auto.plan.Full",
        ".full",
        "planner.delta.plan.plan_incremental",
        "planner.auxiliary.aggregate_maintenance.plan_summary_delta",
        "planner.auxiliary.view_selection.find_shared_view",
    }
    assert wanted - all_makers() == set()


@pytest.mark.parametrize(
    "handles",
    [
        "return plan_without_state(catalog, state, schema)",
        "return helper(catalog)",
        "return plan.full(reason)",
        "return Full(header)",
        "plan = fallback.plan(error)",
        "return plan_model.plan_refresh(catalog)",
    ],
)
def test_a_handler_that_makes_a_plan_is_found(handles: str) -> None:
    text = (
        "from dbt_arctic.auto import plan_model\n"
        "from dbt_arctic.auto.plan import Full\n"
        "from dbt_arctic.auto.plan_model import plan_without_state\n"
        "def helper(catalog):\n"
        "    return plan_without_state(catalog)\n"
        "def run(catalog):\n"
        "    try:\n"
        "        return catalog.load()\n"
        f"    except StatementError:\n        {handles}\n"
    )
    module = Module("auto.other", text)
    assert len(plans_made_by_handlers(module, {**loaded(), "auto.other": module})) == 1
