"""A number in a message has its noun in the right form: 1 row, 2 rows. ``counted`` writes both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt_arctic"
MODULES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    # The planner may not import ``counted``. Its messages count nothing that can be one.
    if path.relative_to(PACKAGE).parts[0] != "planner"
)
_NOUNS = (
    "row|file|key|commit|snapshot|model|table|column|version|schema|message|partition|bucket|generation|change"
    "|operator|statement|item|finding|difference|round|event|value|placeholder|refresh|transaction"
)
_COUNTED = re.compile(rf" (?:[a-z]+ )??(?:{_NOUNS})(?:e?s)\b")
"""A plural right after a number, with at most one word in between."""
_NO_NUMBER = re.compile(
    r" (?:has|have|declares|lists|names|and|of|in|on|keeps|skips|leaves|reads|lacks|without) "
)


def plurals_after_numbers(source: str) -> Iterator[str]:
    """The texts in which a plural follows a value that can be 1.

    A value of a constant in capitals is not one, and neither is the second number in ``1 of 3 rows``.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        parts: list[ast.expr] = list(node.values)
        for place, part in enumerate(parts[:-1]):
            after, before = parts[place + 1], parts[place - 1] if place else None
            if not isinstance(part, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            text = str(after.value)
            if not _COUNTED.match(text) or _NO_NUMBER.match(text):
                continue
            if isinstance(before, ast.Constant) and str(before.value).endswith(" of "):
                continue
            value = ast.unparse(part.value)
            if not value.lstrip("_").isupper() and not value.startswith("counted("):
                yield value + text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_number_and_its_noun_agree(path: Path) -> None:
    found = list(plurals_after_numbers(path.read_text(encoding="utf-8")))
    assert not found, f"write counted(number, noun) of dbt_arctic.human_readable: {found}"


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ('f"{rows} rows"', True),
        ('f"wrote {len(files):,} small files"', True),
        ('f"{keys.count} of {rows} keys"', False),
        ('f"{name} has rows"', False),
        ('f"at most {MAX_KEYS} keys"', False),
        ("f\"{counted(rows, 'row')} of columns\"", False),
    ],
)
def test_a_plural_after_a_number_is_found(text: str, is_found: bool) -> None:
    assert bool(list(plurals_after_numbers(text))) is is_found
