"""Follows a page about data from outside, and notices which code of the page was left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import metadata
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner

from tests.dbt.keyed.followed_pages import Guide, form
from tests.pages import HOW_TO, Block, Command, blocks

EXTRA = re.compile(r"dbt-arctic\[(\w+)\]")


@dataclass
class SourceGuide(Guide):
    """A reader of a page that uses all of its code, in the order of a test."""

    said: list[str] = field(default_factory=list)
    """What the last command of dbt has said, line by line."""
    used: set[int] = field(default_factory=set)
    """The lines at which the blocks begin that were used."""

    def section(self, heading: str) -> None:
        """Do what is left to do in a section, in its order."""
        here = [block for block in self.left() if block.heading == heading]
        assert here, f"{self.page}: nothing to do in {heading}"
        for block in here:
            self.used.add(block.line)
            self.do(block)

    def text(self, part: str) -> str:
        """The text of the one block that contains a part, with the names of this project. It is used."""
        found = self.block(part)
        self.used.add(found.line)
        return self.real(found.text)

    def block(self, part: str) -> Block:
        """The one block that contains a part, which is not used by this."""
        (found,) = (block for block in blocks(HOW_TO / f"{self.page}.md") if part in block.text)
        return found

    @property
    def page_text(self) -> str:
        return (HOW_TO / f"{self.page}.md").read_text(encoding="utf-8")

    def left(self) -> list[Block]:
        return [block for block in blocks(HOW_TO / f"{self.page}.md") if block.line not in self.used]

    def finish(self) -> None:
        """All code of the page was used."""
        assert [str(block) for block in self.left()] == []

    def do(self, block: Block) -> None:
        known = metadata("dbt-arctic").get_all("Provides-Extra") or []
        assert {*EXTRA.findall(block.text)} <= {*known}
        super().do(block)

    def write(self, path: str, text: str) -> None:
        """Write a file; settings of a target are added to those of the same target."""
        text = self.real(text)
        if path != "profiles.yml":
            super().write(path, text)
            return
        project = yaml.safe_load((self.shop.folder / path).read_text(encoding="utf-8"))
        for name, profile in yaml.safe_load(text).items():
            for target, settings in profile["outputs"].items():
                project[name]["outputs"][target].update(settings)
        self.shop.file(path, yaml.safe_dump(project))

    def set(self, path: str, table: str, text: str) -> None:
        """Add settings to those of a table of a source."""
        settings = yaml.safe_load(text)
        self.settings(path, table, lambda known: {**known, **settings.get("arctic", settings)})

    def add(self, path: str, table: str, text: str) -> None:
        """Add a table to a source."""
        content = yaml.safe_load((self.shop.folder / path).read_text(encoding="utf-8"))
        content["sources"][0]["tables"].append({"name": table})
        self.shop.file(path, yaml.safe_dump(content, sort_keys=False))
        self.set(path, table, text)

    def settings(self, path: str, table: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change the settings of a table of a source."""
        content = yaml.safe_load((self.shop.folder / path).read_text(encoding="utf-8"))
        (found,) = (one for source in content["sources"] for one in source["tables"] if one["name"] == table)
        meta = found.setdefault("config", {}).setdefault("meta", {})
        meta["arctic"] = change(meta.get("arctic", {}))
        self.shop.file(path, yaml.safe_dump(content, sort_keys=False))

    def run(self, command: Command) -> None:
        """Run a command; of dbt, the lines that the page shows are among those that it says."""
        if command.program != "dbt":
            super().run(command)
            return
        self.dbt(*map(self.real, command.arguments))
        said = [form(self.paged(line), numbers=self.numbers) for line in self.said]
        for line in filter(None, map(str.strip, command.shown.splitlines())):
            assert form(line, numbers=self.numbers) in said, f"{self.page}: {command}\n" + "\n".join(said)

    def dbt(self, *arguments: str) -> None:
        """Run dbt, and keep what it says."""
        self.said, self.shop.script.ran, self.shop.script.jobs = [], [], 0
        runner = dbtRunner(callbacks=[self._listen])
        folders = ["--project-dir", str(self.shop.folder), "--profiles-dir", str(self.shop.folder)]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.shop.folder)
            outcome = runner.invoke([*arguments, *folders, "--quiet", "--no-use-colors"])
        assert outcome.success, self.shop.messages(outcome)

    def _listen(self, event: Any) -> None:
        """Keep what a reader sees; dbt writes where a line comes from before it."""
        if event.info.level in ("info", "warn", "error"):
            self.said += event.info.msg.removeprefix("Arctic adapter: ").splitlines()

    def says(self, part: str) -> bool:
        return any(part in line for line in self.said)

    def table(self, head: str) -> Iterator[list[str]]:
        """The cells of the rows of the one table whose head begins with a text, without links."""
        page = (HOW_TO / f"{self.page}.md").read_text(encoding="utf-8")
        page = re.sub(r"\]\([^)]*\)", "]", page)
        _, found, rest = page.partition(f"\n| {head}")
        assert found, f"{self.page}: no table {head}"
        assert f"\n| {head}" not in rest
        for line in rest.partition("\n\n")[0].splitlines()[2:]:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| "))]


def spans(cell: str) -> list[str]:
    """The code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


__all__ = ["SourceGuide", "spans"]
