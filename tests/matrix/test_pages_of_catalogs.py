"""What the pages of catalogs show of ``dbt debug`` is what it prints with that catalog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from tests.dbt.keyed.kafka_topics import tools
from tests.matrix.cells import AWS, Cell, running
from tests.matrix.components import NotRun
from tests.pages import HOW_TO, blocks

pytestmark = pytest.mark.long
CELLS = {
    "use-s3": Cell("postgres", "embedded", "s3"),
    "use-postgres": Cell("postgres", "embedded", "file"),
    "use-rest": Cell("rest", "embedded", "file"),
    "use-hive": Cell("hive", "embedded", "file"),
    "use-glue": Cell("glue", "embedded", "s3"),
}


def rows(text: str) -> list[str]:
    """The rows about the catalog, without places and what the page leaves out."""
    row = r"^(?:.*Arctic adapter:)? *([a-z][a-z0-9 ]*: (?:ok|missing) \(.*)$"
    found = re.findall(row, text, re.MULTILINE)
    named = [row for row in found if not row.startswith(("spark:", "jars:", "java:"))]
    return [re.sub(r"(?<=read in )\S+(?=,)|(?<=the server's )warehouse", "..", row) for row in named]


def _open_to_all(folder: Path) -> Path:
    folder.chmod(0o755)  # PostgreSQL runs as a user of its own
    return folder


@pytest.mark.parametrize("page", CELLS)
def test_a_page_shows_what_dbt_debug_prints(page: str) -> None:
    (shown,) = (block.text for block in blocks(HOW_TO / f"{page}.md") if "write: ok" in block.text)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="page-") as name,
            running(CELLS[page], _open_to_all(Path(name)), tools()) as (target, _),
        ):
            project = Path(name, "project")
            project.mkdir()
            for name, document in {
                "dbt_project.yml": {"name": "shop", "version": "1.0", "profile": "shop"},
                "profiles.yml": {"shop": {"target": "dev", "outputs": {"dev": target}}},
            }.items():
                (project / name).write_text(yaml.safe_dump(document), encoding="utf-8")
            printed = subprocess.run(
                [Path(sys.executable).with_name("dbt"), "debug"],
                cwd=project,
                env={**os.environ, **AWS, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            ).stdout
    except NotRun as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    expected, found = rows(shown), rows(printed)
    assert len(expected) >= 9, shown
    for wanted, row in zip(expected, found, strict=True):
        beginning, _, is_cut = wanted.partition(" ..")
        assert row.startswith(beginning) if is_cut or wanted.endswith("..") else row == wanted, printed
