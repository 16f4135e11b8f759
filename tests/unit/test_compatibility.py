"""The page on compatibility against what it speaks of: dbt's adapter suite, and our classes of it.

No test of the suite runs here. A base class of the suite counts as passing when a class of ours inherits it
and each of its tests is still there: as it is, or as our statement of Spark's behaviour, which can fail. What
another class of the suite put in a test's place is not that test.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import dbt.tests.adapter
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
SUITE = "dbt.tests.adapter."
WANTED = 180


def names_of_tests(found: type[Any]) -> set[str]:
    return {name for name, _ in inspect.getmembers(found, inspect.isfunction) if name.startswith("test")}


@functools.cache
def base_classes() -> dict[str, type[Any]]:
    """The classes with tests that the suite offers to adapters; its own ``Test`` classes are PostgreSQL's."""
    root = Path(next(iter(dbt.tests.adapter.__path__)))
    found: dict[str, type[Any]] = {}
    for path in sorted(root.rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        module = importlib.import_module((SUITE + name).rstrip("."))
        for class_name, member in vars(module).items():
            if not inspect.isclass(member) or member.__module__ != module.__name__:
                continue
            if not class_name.startswith("Test") and names_of_tests(member):
                found[f"{name}.{class_name}"] = member
    return found


@functools.cache
def our_classes() -> list[type[Any]]:
    """Every class of tests/dbt/suite that pytest collects."""
    return [
        member
        for path in sorted((ROOT / "tests" / "dbt" / "suite").glob("test_*.py"))
        for module in [importlib.import_module(f"tests.dbt.suite.{path.stem}")]
        for name, member in vars(module).items()
        if inspect.isclass(member) and name.startswith("Test") and member.__module__ == module.__name__
    ]


def skipped(member: Any) -> bool:
    marks = getattr(member, "pytestmark", [])
    return any(mark.name in ("skip", "skipif", "xfail") for mark in marks)


def can_fail(test: Any) -> bool:
    """Whether a test asserts or calls anything, and does not leave by itself."""
    if skipped(test):
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(test)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(ast.unparse(call.func) in ("pytest.skip", "pytest.xfail", "skip", "xfail") for call in calls):
        return False
    body = [node for statement in tree.body[0].body for node in ast.walk(statement)]  # type: ignore[attr-defined]
    return any(isinstance(node, (ast.Assert, ast.Call)) for node in body)


def runs(ours: type[Any], base: type[Any]) -> bool:
    if not issubclass(ours, base) or skipped(ours):
        return False
    return all(
        not skipped(test)
        if test is getattr(base, name)
        else can_fail(test) and not test.__module__.startswith(SUITE)
        for name in names_of_tests(base)
        for test in [getattr(ours, name)]
    )


@functools.cache
def passing() -> set[str]:
    return {name for name, base in base_classes().items() if any(runs(ours, base) for ours in our_classes())}


@functools.cache
def rows() -> dict[str, list[str]]:
    """The page's table of classes that do not pass: class, then the other cells of its row."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        for name in re.findall(r"`([\w.]+\.[A-Z]\w+)`", cells[0]) if line.startswith("| `") else []:
            assert name not in found, f"{name} has two rows"
            found[name] = cells[1:]
    return found


def test_every_base_class_passes_or_has_a_row() -> None:
    assert sorted(set(base_classes()) - passing() - set(rows())) == []


def test_no_row_is_of_a_class_that_passes_or_does_not_exist() -> None:
    assert sorted(set(rows()) & passing()) == []
    assert sorted(set(rows()) - set(base_classes())) == []


def test_every_row_has_a_reason_and_says_what_to_do_instead() -> None:
    assert [name for name, cells in rows().items() if len(cells) != 2 or not all(cells)] == []


def test_the_page_counts_right() -> None:
    counted = re.search(r"\*\*(\d+) of (\d+)\*\*", PAGE.read_text(encoding="utf-8"))
    assert counted is not None
    assert (int(counted[1]), int(counted[2])) == (len(passing()), len(base_classes()))


def test_enough_base_classes_pass() -> None:
    assert len(passing()) >= WANTED


class Base:
    def test_one(self) -> None:
        assert True

    def test_two(self) -> None:
        sorted([])


class Complete(Base):
    pass


class Emptied(Base):
    def test_one(self) -> None:
        """Nothing left."""


class Skipping(Base):
    def test_two(self) -> None:
        pytest.skip("no")


@pytest.mark.skip(reason="no")
class Marked(Base):
    pass


def test_a_class_whose_tests_are_disabled_does_not_count() -> None:
    assert runs(Complete, Base)
    assert [ours for ours in (Emptied, Skipping, Marked) if runs(ours, Base)] == []
