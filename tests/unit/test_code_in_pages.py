"""Pages name files and functions that exist. The page on architecture covers all commands and strategies."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from dbt_arctic.adapter.impl import ArcticAdapter
from dbt_arctic.cli.main import COMMANDS
from dbt_arctic.compaction.plan import Kind

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ADDITIONS = sorted((DOCS / "contributing").glob("*.md"))
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md"])
ARCHITECTURE = DOCS / "explanation" / "architecture.md"
GLOSSARY = DOCS / "reference" / "glossary.md"
NAMED = re.compile(r"`((?:[\w-]+/)+(?:[\w-]+\.(?:py|sql))?)(?::([\w.]+))?`")
"""A file, a function of a file, or a folder."""
IN_A_PICTURE = re.compile(r"\b(\w+) \((\w+/\w+\.py)\)")
"""A function, and its file in parentheses."""
OURS = {path.name for path in (ROOT / "dbt_arctic").iterdir()}
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
MACRO = re.compile(r"\{%-? *(?:macro|materialization) +(\w+)")
CITED = re.compile(r"\b([A-Z]\w+)(?:(?:,| and)\s+[A-Z]\w+)*(?:\s+et\s+al\.)?\s+((?:19|20)\d\d)\b")
"""A paper in a docstring: its first author and its year."""
ROW = re.compile(r"^\| (.*?) \|", re.MULTILINE)


def places(page: Path) -> list[tuple[Path, str]]:
    """The files and folders of the repository that a page names, each with the name of a function or class.

    A path is relative to the root of the repository or to the package.
    """
    text = page.read_text()
    return [
        ((ROOT if path.split("/")[0] in FOLDERS else ROOT / "dbt_arctic") / path, name)
        for path, name in [*NAMED.findall(text), *(found[::-1] for found in IN_A_PICTURE.findall(text))]
        if path.split("/")[0] in OURS | FOLDERS
    ]


def defined(path: Path) -> set[str]:
    """Functions, classes, and the methods of these; macros."""
    if path.suffix == ".sql":
        return set(MACRO.findall(path.read_text()))
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def wrong_places(page: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{name}"
        for path, name in places(page)
        if not path.exists() or (name and name not in defined(path))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_what_exists(page: Path) -> None:
    assert wrong_places(page) == []


@pytest.mark.parametrize("page", [*ADDITIONS, ARCHITECTURE, GLOSSARY], ids=lambda page: str(page.stem))
def test_a_page_for_contributors_names_code(page: Path) -> None:
    assert len(places(page)) > 4


def test_a_wrong_name_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`auto/plan.py:Full` `auto/plan.py:Gone` `auto/gone.py` `planner/gone/` `macros/gone.sql`"
    )
    assert wrong_places(page) == [
        "dbt_arctic/auto/plan.py:Gone",
        "dbt_arctic/auto/gone.py:",
        "dbt_arctic/planner/gone:",
        "macros/gone.sql:",
    ]


@pytest.mark.parametrize("page", ADDITIONS, ids=lambda page: str(page.stem))
def test_an_excerpt_is_in_the_code(page: Path) -> None:
    code = {
        line.strip() for path in (ROOT / "dbt_arctic").rglob("*.py") for line in path.read_text().splitlines()
    }
    excerpts = re.findall(r"^ {4,}(\S.*)$", page.read_text(), re.MULTILINE)
    assert [line for line in excerpts if line not in code] == []


@pytest.mark.parametrize("index", ["CONTRIBUTING.md", "docs/README.md", "docs/explanation/architecture.md"])
def test_the_indexes_link_each_page(index: str) -> None:
    text = (ROOT / index).read_text()
    assert [page.name for page in ADDITIONS if f"contributing/{page.name})" not in text] == []


def section(heading: str) -> str:
    """A section of the page on architecture."""
    return ARCHITECTURE.read_text().partition(f"\n### {heading}\n")[2].partition("\n### ")[0]


def rows(heading: str) -> set[str]:
    """The terms in code font in the first column of the table of a section."""
    return {term for first in ROW.findall(section(heading)) for term in re.findall(r"`([^`]+)`", first)}


def test_each_command_has_a_row() -> None:
    assert rows("The commands of `dbt-arctic`") == set(COMMANDS)


def test_each_materialization_and_strategy_has_a_row() -> None:
    found = rows("What dbt runs")
    macros = (ROOT / "macros" / "materializations").rglob("*.sql")
    texts = [path.read_text() for path in macros]
    materializations = {name for text in texts for name in re.findall(r"\{%-? *materialization (\w+)", text)}
    # dbt calls the materialization of functions itself, and finds a macro of the adapter.
    assert materializations | {"function"} <= found
    strategies = ArcticAdapter.valid_incremental_strategies(None)  # type: ignore[arg-type] # reads no adapter
    assert set(strategies) <= found


def test_each_macro_for_users_has_a_row() -> None:
    files = [*(ROOT / "macros" / "keyed").glob("*.sql"), *(ROOT / "macros" / "operations").glob("*.sql")]
    macros = {f"{name}()" for path in files for name in defined(path) if not name.startswith("arctic__")}
    assert len(macros) > 10
    assert macros <= rows("What dbt runs")


def test_each_setting_of_a_recipe_has_a_section() -> None:
    recipes = (ROOT / "docs" / "how-to" / "recipes.md").read_text(encoding="utf-8")
    models = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)(?:=(?:'(\w+)')?|`\]\(\.\./reference/models\.md)", recipes)
    assert len(named) > 8
    sections = set(re.findall(r"^#### `(\w+)`", models, re.MULTILINE))
    for setting, value in named:
        if setting == "incremental_strategy":
            assert f"| `{value}`" in models, value
        else:
            assert setting in sections, setting


def test_each_kind_of_compaction_is_named() -> None:
    assert [kind for kind in get_args(Kind) if f"`{kind}`" not in section("Compaction and maintenance")] == []


def test_the_papers_of_docstrings_are_those_of_the_page() -> None:
    text = (DOCS / "explanation" / "automatic-incremental.md").read_text()
    table = text.partition("\n## Ideas from the literature\n")[2].partition("\n## ")[0]
    listed = {
        (path, *re.findall(r"^([A-Z]\w+).* (\d{4})$", paper)[0])
        for paths, paper in re.findall(r"^\|[^|]*\| ([^|]*) \| (.*) \|$", table, re.MULTILINE)[1:]
        for path in re.findall(r"`([^`]+)`", paths)
    }
    cited = {
        (str(path.relative_to(ROOT / "dbt_arctic")), *paper)
        for path in (ROOT / "dbt_arctic").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for paper in CITED.findall(ast.get_docstring(node) or "")
    }
    assert listed == cited
