"""The page on faster starts: its commands print what it shows, and what they start is used by dbt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.adapter.connections import ArcticConnectionManager
from dbt_arctic.cli.main import main
from dbt_arctic.engine.class_archive import CACHE_VARIABLE, USE
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.server import read_server
from tests.connect.conftest import ends_with_this_process
from tests.connect.test_server import run_dbt, write_project
from tests.pages import HOW_TO, Block, blocks, spans

PAGE = HOW_TO / "start-warm.md"
MASKS = (
    (re.compile(r"\S+(?=/dbt-arctic/classes-)"), "<cache>"),
    (re.compile(r"classes-[0-9a-f]{16}\.jsa \(\d+(?:\.\d)? MB\)"), "<archive>"),
    (re.compile(r"(process|port) \d+"), r"\1 <number>"),
)


def masked(text: str) -> list[str]:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return [line for line in text.splitlines() if line.strip()]


class Reader:
    """Types the commands of the page in a project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> str:
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        more = [] if arguments[0] == "class-archive" else folders
        done = CliRunner().invoke(main, [*arguments, *more], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.stdout

    def follow(self, block: Block) -> None:
        for command in block.commands:
            printed = self(*command.arguments)
            assert not command.shown or masked(printed) == masked(command.shown), printed


@pytest.mark.long
@pytest.mark.timeout(600)
def test_spark_starts_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CACHE_VARIABLE, "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    warehouse, project = tmp_path / "lake", tmp_path / "shop"
    project.mkdir()
    write_project(project, warehouse)
    read = Reader(project)
    create, small, start, after = (block for block in blocks(PAGE) if block.text.strip())
    (show,) = (one for one in spans(PAGE) if one.words[1:] == ("class-archive", "show"))
    (remove,) = (one for one in spans(PAGE) if one.words[1:] == ("class-archive", "remove"))
    read.follow(create)
    (archive,) = (tmp_path / "cache" / "dbt-arctic").glob("*.jsa")
    assert str(archive) in read(*show.arguments)

    write_project(project, warehouse, **yaml.safe_load(small.text))
    read.follow(start)
    server = read_server(project)
    assert server is not None
    with ends_with_this_process(server.pid):
        assert f"{USE}{archive}" in Path(f"/proc/{server.pid}/cmdline").read_text(encoding="utf-8")
        status, stop = after.commands
        assert "target dev" in read(*status.arguments)
        assert [result.message for result in run_dbt(project).result.results] == ["BUILD 3 rows"]
        (engine,) = ArcticConnectionManager._engines.values()
        assert isinstance(engine, ConnectEngine), "dbt uses the server"
        # Other settings, or `use_server: false`: the server is not used.
        for changes in ({"driver_memory": "2g"}, {"spark_conf": {}}, {"use_server": False}):
            write_project(project, warehouse, **{**yaml.safe_load(small.text), **changes})
            read(*status.arguments, code=1)
        write_project(project, warehouse, **yaml.safe_load(small.text))
        assert f"Stopped process {server.pid}" in read(*stop.arguments)
    assert "no running server" in read(*status.arguments, code=1)
    assert str(archive) in read(*remove.arguments)
    assert not archive.exists()
