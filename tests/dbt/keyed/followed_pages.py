"""Follows a page of the documentation: writes its files, runs its commands, compares the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.cli import changes, keep_report, output
from dbt_arctic.cli.main import main
from tests.dbt.keyed.conftest import Shop
from tests.pages import HOW_TO, Block, Command, blocks
from tests.terminals import on_terminal

WIDTH = 200
"""Of the terminal: wider than all tables of pages, because folders and schemas have longer names here."""
FILE = re.compile(r"\A(?:--|#) ([\w/]+\.(?:sql|yml|py))\n")
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d+)?)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d+\.\d{7,}(?:\.\d+)?"), "<version>"),
    (re.compile(r"\b[0-9a-f]{8}(?=:)"), "<run>"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|min|h|B|kB|MB|GB)\b"), "<size>"),
    (re.compile(r"__(base|change)_\d+"), r"__\1_<generation>"),
)
"""What differs each time: times, versions, runs, durations and sizes, generations."""
MAX_WORD = 40
AGE = re.compile(r"\d+ (?:s|min)")
COPIED = re.compile(r"[\w.:-]{3,90}|\d{4}-\d\d-\d\d [\d:.]+")
"""Names, numbers, ids, versions and times."""
NUMBER = re.compile(r"(?<![\w.<])-?\d[\d,]*(?:\.\d+)?(?![\w>])")


def form(line: str, *, numbers: bool) -> str:
    """A line without what differs each time, and with single spaces.

    :param numbers: whether the numbers are compared.
    """
    for pattern, mask in MASKS:
        line = pattern.sub(mask, line)
    return " ".join((line if numbers else NUMBER.sub("<number>", line)).split())


def is_read_only(command: Command) -> bool:
    """Whether a command shows a table and changes nothing, so that it can be run again."""
    name, *rest = command.arguments
    shows = {"--dry-run", "--plan", "plan"} & {*rest} and name != "sql"
    return bool(shows) or name in ("status", "history", "why", "changes", "lag", "diff", "plan")


def check_widths(shop: Shop, arguments: list[str]) -> None:
    """Compare what a command prints on terminals of 80 and 120 columns with what it prints in a pipe.

    In a pipe, values are complete and have no padding. On a terminal nothing is wider than it, no heading and
    no value is lost, and a name, a time or an id is in one piece, so that it can be copied.
    """
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    piped = CliRunner().invoke(main, [*arguments, *folders]).stdout
    rows = [line.split("\t") for line in piped.splitlines() if "\t" in line]
    assert [cell for row in rows for cell in row if cell != cell.strip()] == [], "padding"
    for columns in (80, 120) if rows else ():
        lines = on_terminal([*arguments, *folders], columns)
        printed = "\n".join(lines)
        assert [line for line in lines if len(line) > columns] == []
        words = {*printed.split()}
        for cell in (cell for row in rows for cell in row if not AGE.fullmatch(cell)):
            if COPIED.fullmatch(cell):
                # A terminal has the first digits of the ids of versions and runs.
                short = re.sub(r"(?<=^\d\.\d{7})[\d.]+|(?<=^[0-9a-f]{8})-[0-9a-f-]+", "", cell)
                assert any(short in line for line in lines), f"{columns}: {cell}\n{printed}"
            else:
                # Values of a list have semicolons in a pipe, and lines on a terminal. A path may wrap.
                # A heading has a colon if its column is below the row.
                missing = {word for word in cell.split() if len(word) <= MAX_WORD} - words
                missing = {word.rstrip(";") for word in missing} - words
                assert {f"{word}:" for word in missing} <= words, f"{columns}: {cell}\n{printed}"


@dataclass
class Guide:
    """A reader of a page."""

    shop: Shop
    page: str
    schema: str = "shop"
    """What the page calls the schema of the target."""
    known: dict[str, str] = field(default_factory=dict)
    """What the page calls something, for instance a version, and what it is here."""
    more: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """More arguments of a command."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The file of the SQL or YAML of a section, for blocks that do not name it."""
    only: Mapping[str, int] = field(default_factory=dict)
    """How many of its first lines are compared for a command whose rows are others here."""
    subset: tuple[str, ...] = ()
    """Commands that may print fewer of the page's kinds of lines than the page shows."""
    numbers: bool = False
    """Whether numbers are those of the page."""
    narrow: bool = True
    """Whether commands that change nothing are also run on narrow terminals."""
    printed: dict[str, str] = field(default_factory=dict)
    """What each command has printed, in a pipe if it was compared."""

    def follow(self, before: Mapping[str, Callable[[], None]] | None = None) -> None:
        """Do what the page says, section by section.

        :param before: what happens before a section, by its heading.
        """
        waiting = dict(before or {})
        for block in blocks(HOW_TO / f"{self.page}.md"):
            if block.heading in waiting:
                waiting.pop(block.heading)()
            self.do(block)
        assert not waiting, f"no such section with code: {[*waiting]}"

    def follow_section(self, heading: str) -> None:
        """Do what one section says."""
        for block in blocks(HOW_TO / f"{self.page}.md"):
            if block.heading == heading:
                self.do(block)

    def text(self, part: str) -> str:
        """The text of the one block that contains a part."""
        (found,) = (block for block in blocks(HOW_TO / f"{self.page}.md") if part in block.text)
        return found.text

    def do(self, block: Block) -> None:
        """Write the file of a block, or run its commands."""
        path = self.files.get(block.heading) if block.language in ("sql", "yaml") else None
        if match := FILE.match(block.text):
            path = match[1]
        if path is not None:
            self.write(path, block.text)
        for command in block.commands:
            self.run(command)

    def write(self, path: str, text: str) -> None:
        """Write a file; settings of the project are added to those that it has."""
        if path != "dbt_project.yml":
            self.shop.file(path, text)
            return
        project = yaml.safe_load((self.shop.folder / path).read_text(encoding="utf-8"))
        self.shop.file(path, yaml.safe_dump({**project, **yaml.safe_load(text)}))

    def run(self, command: Command) -> None:
        """Run a command, and compare what it prints with what the page shows."""
        arguments = [self.real(word) for word in command.arguments]
        arguments += next((more for start, more in self.more.items() if str(command).startswith(start)), ())
        if command.program == "dbt":
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self.shop.folder)
                self.shop.dbt(*arguments)
            return
        self.printed[str(command)] = printed = self.type_in(arguments)
        if self.narrow and is_read_only(command):
            check_widths(self.shop, arguments)
        shown = [line for line in command.shown.splitlines() if line.strip()]
        if not shown:
            return
        wanted = [form(line, numbers=self.numbers) for line in shown]
        found = [
            form(self.paged(line), numbers=self.numbers) for line in printed.splitlines() if line.strip()
        ]
        if self.subset and str(command).startswith(self.subset):
            assert found
            assert {*found} <= {*wanted}, f"{self.page}: {command}\n{printed}"
            return
        compared = next((n for start, n in self.only.items() if str(command).startswith(start)), None)
        # A long text may have its line break at another place.
        assert " ".join(found[:compared]) == " ".join(wanted[:compared]), f"{self.page}: {command}\n{printed}"

    def type_in(self, arguments: list[str]) -> str:
        """Run a command of ours on the terminal of the page, and answer its question with yes."""
        folders = ["--project-dir", str(self.shop.folder), "--profiles-dir", str(self.shop.folder)]
        with pytest.MonkeyPatch.context() as patch:
            for module in (output, keep_report, changes):
                patch.setattr(module, "terminal_width", lambda: WIDTH)
            patch.chdir(self.shop.folder)
            result = CliRunner().invoke(main, [*arguments, *folders], input="y\n")
        assert result.exit_code == 0, f"{arguments}\n{result.output}{result.exception!r}"
        return result.output

    def real(self, word: str) -> str:
        """A word of a command, with the names of this project."""
        for name, here in self.known.items():
            word = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", here, word)
        return re.sub(rf"\b{self.schema}(?=\.\w)", self.shop.schema, word)

    def paged(self, line: str) -> str:
        """A line of output, with the name that the page gives to the schema."""
        return line.replace(str(self.shop.folder), "/shop").replace(self.shop.schema, self.schema)
