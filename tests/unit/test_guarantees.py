"""The page of guarantees names existing tests for each of its promises, and other pages link to it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "guarantees.md"
NAMED = re.compile(r"`(tests/[^`]+?\.py)`")


def promises() -> dict[str, str]:
    """The sections of what is guaranteed, by title."""
    text = PAGE.read_text().split("\n## Guarantees\n")[1].split("\n## ")[0]
    found = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    assert len(found) > 10
    return found


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(NAMED.findall(PAGE.read_text()))
    assert len(named) > 20
    assert sorted(name for name in named if not (ROOT / name).is_file()) == []


def test_every_promise_says_what_proves_it() -> None:
    proofs = {title: text.partition("*Proved by*")[2] for title, text in promises().items()}
    assert [title for title, proof in proofs.items() if not NAMED.search(proof)] == []


def test_the_page_is_linked_where_people_look() -> None:
    pages = [
        "README.md",
        "docs/README.md",
        "docs/explanation/keyed-table.md",
        "docs/explanation/architecture.md",
    ]
    assert [page for page in pages if "guarantees.md" not in (ROOT / page).read_text()] == []


def test_what_proves_a_promise_is_in_the_short_form_of_the_tests() -> None:
    """Of each file that the page names something runs with every change."""
    files = {name: (ROOT / name).read_text() for name in set(NAMED.findall(PAGE.read_text()))}
    alone = {
        name
        for name, text in files.items()
        if len(re.findall(r"^def test_", text, re.MULTILINE))
        == len(re.findall(r"^@pytest\.mark\.long$", text, re.MULTILINE))
        != 0
    }
    assert alone == set()
