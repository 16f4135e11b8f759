"""The code blocks, commands and tables of a page: what the tests of the documentation read and run."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how-to"
PROGRAMS = ("dbt", "dbt-arctic")
SHELLS = ("", "sh", "bash", "console")
"""The languages of a block that may have commands."""

_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|^)((?: {4}.*\n)+)", re.MULTILINE)
_SPAN = re.compile(r"`(dbt(?:-arctic)? [^`]+)`")
_LIST_OR_TEXT = re.compile(r"^ *(?:[*-]|\d+\.) ", re.MULTILINE)
_STARTS = re.compile(r"^dbt(-arctic)? |(&&|sh -c) '?dbt(-arctic)? ")
"""How a line begins, or is continued, that is a command and not the output of one."""
_OPERATORS = re.compile(r"[&|;<>()]+")


@dataclass(frozen=True)
class Command:
    """A command of dbt or dbt-arctic, and what the page shows that it prints."""

    words: tuple[str, ...]
    shown: str = ""

    @property
    def program(self) -> str:
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        return list(self.words[1:])

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True)
class Table:
    """A table of a page."""

    heading: str
    """That of its section; empty before the first one."""
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: str
    line: int
    language: str
    text: str
    heading: str = ""
    """That of its section; empty before the first one."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @cached_property
    def commands(self) -> list[Command]:
        """The commands of a block of a shell, in their order."""
        if self.language not in SHELLS:
            return []
        has_prompts = bool(re.search(r"^\$ ", self.text, re.MULTILINE))
        found: list[Command] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if has_prompts and not line.startswith("$ "):
                if found:
                    found[-1] = Command(found[-1].words, f"{found[-1].shown}{line}\n")
                continue
            if has_prompts or _STARTS.search(line):
                found += commands_of(line.removeprefix("$ "))
        return found


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, and the indented ones."""
    text = page.read_text(encoding="utf-8")
    found = [_block(page, text, match.start(), match[2], match[3]) for match in _FENCED.finditer(text)]
    without = _without_fences(text)
    found += [
        _block(page, without, match.start(), "", match[1])
        for match in _INDENTED.finditer(without)
        if not _LIST_OR_TEXT.match(match[1])
    ]
    return sorted(found, key=lambda block: block.line)


def spans(page: Path) -> list[Command]:
    """The commands within the text of a page, with their optional arguments."""
    text = _without_fences(page.read_text(encoding="utf-8"))
    return [
        command
        for span in _SPAN.findall(text)
        for command in commands_of(" ".join(span.split()).replace(" [", " ").replace("]", ""))
    ]


def table(page: Path, column: str, heading: str | None = None) -> Table:
    """The one table with a column of this name, of the section if one is named."""
    (found,) = (one for one in tables(page) if column in one.columns and heading in (None, one.heading))
    return found


def tables(page: Path) -> list[Table]:
    """The tables of a page."""
    text = _without_fences(page.read_text(encoding="utf-8"))
    found: list[Table] = []
    for match in re.finditer(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        columns, _, *rows = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in _ROW.findall(match[0])
        )
        found.append(Table(_heading(text[: match.start()]), columns, rows))
    return found


def commands_of(line: str) -> Iterator[Command]:
    """The commands of dbt and dbt-arctic in a line for a shell.

    >>> [str(one) for one in commands_of("cd /x && flock a sh -c 'dbt build; dbt-arctic lag' > log  # daily")]
    ['dbt build', 'dbt-arctic lag']
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not _OPERATORS.fullmatch(word):
            words.append(word)
            continue
        at = next((at for at, one in enumerate(words) if one in PROGRAMS), None)
        if at is not None:
            yield Command(tuple(words[at:]))
        else:
            for one in words:
                if " " in one and one.startswith(PROGRAMS):
                    yield from commands_of(one)
        words = []


def _block(page: Path, text: str, at: int, language: str, code: str) -> Block:
    line = text.count("\n", 0, at) + 1
    return Block(page.name, line, language, textwrap.dedent(code), _heading(text[:at]))


def _heading(before: str) -> str:
    headings = re.findall(r"^##+ (.*)$", before, re.MULTILINE)
    return headings[-1] if headings else ""


def _without_fences(text: str) -> str:
    return _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)


def section(page: Path, heading: str) -> str:
    """The text of a section, on one line per paragraph, list item or row."""
    text = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.sub(r"(?<=\S)\n(?=[^\s|*#`])| *\n +(?=\S)", " ", text)
