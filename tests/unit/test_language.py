"""The documentation uses plain words and short sentences, and its links lead to headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SINGLE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "example_project/README.md")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in _SINGLE)])
INSTEAD = {
    r"told|tells?|asked|asks of": "reported, requested; or name who does what",
    r"somebody|someone|anybody|nobody|everybody|whoever": "the user, another run, another program",
    r"anew": "again; rebuild, recompute, rewrite",
    r"(?<!as )such(?! as)": "like this; or name it",
    r"at work|hands? (?:it |them |deletes )?on": "running, in progress; passes downstream",
    r"by hand": "yourself, manually",
    r"of a view that": "if a view",
    r"otherwise than|besides": "differently from; in addition",
    r"not as good as|let alone|in vain|as ever": "a plain statement",
}
"""Words that the style of the documentation avoids, and what to write."""
LONGEST = 45
"""Words in a sentence. Longer ones are easier to read as two, or as a list."""

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\([^)]*\)")


def prose(page: Path) -> list[str]:
    """The paragraphs, list items and table cells of a page, without code and the targets of links."""
    text = _CODE.sub("CODE", _FENCE.sub("\n", page.read_text(encoding="utf-8")))
    text = _LINK.sub(lambda link: "" if link[1] else link[2], text)
    text = re.sub(r"^( {4}\S.*|#.*)$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*(?:[*-]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^\|(.*)\|$", lambda row: "\n\n" + row[1].replace("|", "\n\n"), text, flags=re.MULTILINE)
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_avoids_the_words_of_the_list(page: Path) -> None:
    found = [
        f"{match[0]!r} in {block[max(match.start() - 40, 0) : match.end() + 40]!r}; write: {instead}"
        for block in prose(page)
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(rf"\b(?:{pattern})\b", block, re.IGNORECASE)
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    sentences = [one for block in prose(page) for one in re.split(r"(?<=[.:;?!)*]) +(?=\S)", block)]
    assert [one for one in sentences if len(one.split()) > LONGEST] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings(page: Path) -> None:
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        if not linked.is_file() or anchor not in anchors(linked):
            broken.append(f"{target}#{anchor}")
    assert broken == []


def test_the_words_are_found_in_prose_and_not_in_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Told\n\nIt is `told` to\n[nobody](such.md).\n\n```\nanew\n```\n\n| a | by hand |\n")
    assert prose(page) == ["It is CODE to nobody.", "a", "by hand"]
    with pytest.raises(AssertionError, match="nobody"):
        test_a_page_avoids_the_words_of_the_list(page)


def test_an_anchor_is_the_one_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## `dbt-arctic compact [TABLE]...`\n```\n# no heading\n```\n### Late, and `lost`\n")
    assert anchors(page) == {"dbt-arctic-compact-table", "late-and-lost"}
