"""The page that lists all modules is up to date."""

from __future__ import annotations

from tests.packaging.module_index import ORDER, PACKAGE, PAGE, page


def test_the_page_lists_the_modules_as_they_are() -> None:
    assert PAGE.read_text() == page(), "write it again: python -m tests.packaging.module_index"


def test_every_package_has_a_section() -> None:
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    assert folders == {folder or "." for folder in ORDER}
