"""What holds for every file: sizes, docstrings, one code an error, no machine's own paths."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from pathlib import Path

import pytest

from dbt_arctic import errors

ROOT = Path(__file__).parents[2]
ERROR_PAGE = ROOT / "docs" / "reference" / "errors.md"
MACHINE_PATH = re.compile(r"(?<![\w.$}/~-])/(home|root|Users|work)/(?!linuxbrew/)[A-Za-z_.]")


def tracked() -> list[Path]:
    """The files under version control; in a source archive, all of them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return [path for path in found if path.is_file()]


def error_classes() -> list[type[errors.ArcticError]]:
    return [
        member
        for _, member in inspect.getmembers(errors, inspect.isclass)
        if issubclass(member, errors.ArcticError) and member is not errors.ArcticError
    ]


def test_no_source_file_is_longer_than_400_lines() -> None:
    sources = [
        path
        for folder in ("dbt_arctic", "macros")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sql"}
    ]
    assert sources
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_every_python_file_says_what_it_is_for() -> None:
    python = [path for path in tracked() if path.suffix == ".py" and path.read_text().strip()]
    without = [path for path in python if not ast.get_docstring(ast.parse(path.read_text()))]
    silent = [str(path.relative_to(ROOT)) for path in without]
    assert silent == []


def test_every_folder_of_modules_is_a_package() -> None:
    # find_packages leaves out a folder without __init__.py, and the wheel with it.
    folders = {path.parent for path in (ROOT / "dbt_arctic").rglob("*.py")}
    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []


def test_every_error_has_a_code_of_its_own_and_a_title() -> None:
    classes = error_classes()
    codes = [error.code for error in classes]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"AR-[1-9]\d\d", code)] == []
    titles = [error.title for error in classes]
    assert len(set(titles)) == len(titles)
    assert errors.ArcticError.title not in titles


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: str(error.code))
def test_every_error_is_on_the_page_of_errors(error: type[errors.ArcticError]) -> None:
    assert f"### {error.code} {error.title}\n" in ERROR_PAGE.read_text()


def test_the_page_of_errors_names_no_error_that_is_gone() -> None:
    named = set(re.findall(r"^### (AR-\d+)", ERROR_PAGE.read_text(), re.MULTILINE))
    assert named == {error.code for error in error_classes()}


def test_no_file_contains_a_path_of_a_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked()
        if path.suffix in {".py", ".sql", ".yml", ".md", ".toml", ".cfg", ".sh", ""}
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_a_docstring_begins_with_a_summary() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in (ROOT / "dbt_arctic").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and (ast.get_docstring(node) or "").startswith(":")
    ]
    assert found == []
